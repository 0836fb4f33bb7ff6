"""Corpora drawn at random."""

from attractor.next_token.generators.order_first import Drawn, order_first_corpus
from attractor.next_token.generators.rolled_out import rolled_out_corpus

__all__ = ["Drawn", "order_first_corpus", "rolled_out_corpus"]
