"""Tokens: data sets of attention rows."""

from attractor.tokens.arrangement import split_heads
from attractor.tokens.tokens import Tokens

__all__ = ["Tokens", "split_heads"]
