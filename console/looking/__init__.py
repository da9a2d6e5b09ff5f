"""What trace files there are and what is in them, for the Traces screen: asked of a station or of a replay."""
