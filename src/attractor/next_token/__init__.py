"""Next-token prediction: corpora, the orders and graphs they hide, and where training takes it."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.next_token import linear, mechanics
    from attractor.next_token._collocation import Collocation, collocation
    from attractor.next_token._realizable_part import RealizablePart, realizable_part
    from attractor.next_token.assumptions import AssumptionCheck
    from attractor.next_token.corpus import Corpus
    from attractor.next_token.embeddings import (
        are_orthonormal,
        gaussian,
        one_hot,
        orthonormality_error,
    )
    from attractor.next_token.generators import Drawn, order_first_corpus, rolled_out_corpus
    from attractor.next_token.graphs import QueryGraphs
    from attractor.next_token.orders import (
        PartialOrders,
        TokenClass,
        partial_orders,
        token_priority_graphs,
    )
    from attractor.next_token.problems import (
        attention_problem,
        complete_orders_solution,
        feed_forward_problem,
    )
    from attractor.next_token.samples import Samples, attention_tokens, distinct_samples
    from attractor.next_token.structure import CorpusStructure, corpus_structure
    from attractor.next_token.two_stage import train_jointly, train_two_stages
    from attractor.next_token.two_stage_measures import (
        attention_solutions,
        direction_distance,
        feed_forward_solutions,
        measure_two_stages,
    )
    from attractor.next_token.two_stage_trajectory import TwoStageTrajectory
    from attractor.next_token.unseen import Unseen, UnseenKind, draw_unseen, log_predictions

__all__ = [
    "AssumptionCheck",
    "Collocation",
    "Corpus",
    "CorpusStructure",
    "Drawn",
    "PartialOrders",
    "QueryGraphs",
    "RealizablePart",
    "Samples",
    "TokenClass",
    "TwoStageTrajectory",
    "Unseen",
    "UnseenKind",
    "are_orthonormal",
    "attention_problem",
    "attention_solutions",
    "attention_tokens",
    "collocation",
    "complete_orders_solution",
    "corpus_structure",
    "direction_distance",
    "distinct_samples",
    "draw_unseen",
    "feed_forward_problem",
    "feed_forward_solutions",
    "gaussian",
    "linear",
    "log_predictions",
    "measure_two_stages",
    "mechanics",
    "one_hot",
    "order_first_corpus",
    "orthonormality_error",
    "partial_orders",
    "realizable_part",
    "rolled_out_corpus",
    "token_priority_graphs",
    "train_jointly",
    "train_two_stages",
]

import_on_first_use(__name__)
