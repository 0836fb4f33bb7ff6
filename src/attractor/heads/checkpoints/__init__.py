"""Heads over checkpoints of one training run: where they move, and what they learn."""
