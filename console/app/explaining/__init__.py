"""Why every figure on screen is what it is: formula, counts, window, n, interval, what was left out, and the SQL."""
