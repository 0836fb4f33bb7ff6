"""Gradient flows of heads on in-context regression, and their limits."""
