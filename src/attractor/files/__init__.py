"""The files that users keep their token sequences in."""

from attractor.files.layout import LAYOUT
from attractor.files.loaded import LoadedTokens
from attractor.files.reading import load
from attractor.files.writing import save_tokens

__all__ = ["LAYOUT", "LoadedTokens", "load", "save_tokens"]
