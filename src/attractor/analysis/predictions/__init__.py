"""The margin problem that theory predicts for a run, and the outcome of comparing them."""
