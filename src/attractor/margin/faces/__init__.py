"""Whether a solution is the only one, and the rank that all of them have."""
