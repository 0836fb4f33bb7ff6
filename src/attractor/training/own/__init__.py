"""Optimizers of anybody's: by name, from a module, or as objects, of optax or of PyTorch."""
