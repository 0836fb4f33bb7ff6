"""*Optimizing Attention with Mirror Descent*: the synthetic experiments."""
