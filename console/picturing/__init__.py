"""What a station and a replay share to put what is recorded into pictures and words. Holds no state, starts nothing."""
