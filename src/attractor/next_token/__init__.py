"""Next-token prediction: corpora, the orders and graphs they hide, and where training takes it."""

from attractor.next_token.assumptions import AssumptionCheck
from attractor.next_token.collocation import Collocation, collocation
from attractor.next_token.corpus import Corpus
from attractor.next_token.graphs import QueryGraphs
from attractor.next_token.orders import (
    PartialOrders,
    TokenClass,
    partial_orders,
    token_priority_graphs,
)
from attractor.next_token.structure import CorpusStructure, corpus_structure

__all__ = [
    "AssumptionCheck",
    "Collocation",
    "Corpus",
    "CorpusStructure",
    "PartialOrders",
    "QueryGraphs",
    "TokenClass",
    "collocation",
    "corpus_structure",
    "partial_orders",
    "token_priority_graphs",
]
