"""Text classifiers trained by several optimizers: what they know, where they look, how sparse."""
