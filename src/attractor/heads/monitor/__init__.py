"""Attention heads watched while the user's own loop trains them, in PyTorch, JAX or NumPy."""
