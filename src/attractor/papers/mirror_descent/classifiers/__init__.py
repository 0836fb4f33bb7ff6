"""Classifiers trained by several optimizers, each with a learning rate from the same search."""
