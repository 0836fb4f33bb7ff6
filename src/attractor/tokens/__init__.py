"""Tokens: data sets of attention rows."""

from attractor.tokens.tokens import Tokens

__all__ = ["Tokens"]
