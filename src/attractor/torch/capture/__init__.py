"""The heads of models of transformers on texts, as the models themselves compute them."""

from attractor.torch.capture._capture_heads import capture_heads

__all__ = ["capture_heads"]
