"""Tokens: data sets of attention rows."""

from attractor.support.settings import all_in_own_settings
from attractor.tokens.arrangement import split_heads
from attractor.tokens.tokens import Tokens

__all__ = ["Tokens", "split_heads"]

all_in_own_settings(__name__)
