"""Tokens: data sets of attention rows."""

from attractor.tokens.arrangement import Arrangement, head_matrices
from attractor.tokens.tokens import Tokens

__all__ = ["Arrangement", "Tokens", "head_matrices"]
