"""The files that users keep their token sequences and corpora in."""

from attractor.files.corpus_layout import CORPUS_LAYOUT
from attractor.files.corpus_loaded import LoadedCorpus
from attractor.files.corpus_writing import save_corpus
from attractor.files.layout import LAYOUT
from attractor.files.loaded import LoadedTokens
from attractor.files.reading import load, load_corpus, load_tokens
from attractor.files.writing import save_tokens

__all__ = [
    "CORPUS_LAYOUT",
    "LAYOUT",
    "LoadedCorpus",
    "LoadedTokens",
    "load",
    "load_corpus",
    "load_tokens",
    "save_corpus",
    "save_tokens",
]
