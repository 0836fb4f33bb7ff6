"""Heads of single attention modules, of PyTorch or transformers, read as a model runs."""
