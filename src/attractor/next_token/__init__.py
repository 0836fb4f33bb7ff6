"""Next-token prediction: corpora, the orders and graphs they hide, and where training takes it."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.next_token import linear as linear, mechanics as mechanics
    from attractor.next_token._collocation import (
        Collocation as Collocation,
        collocation as collocation,
    )
    from attractor.next_token._realizable_part import (
        RealizablePart as RealizablePart,
        realizable_part as realizable_part,
    )
    from attractor.next_token.assumptions import AssumptionCheck as AssumptionCheck
    from attractor.next_token.corpus import Corpus as Corpus
    from attractor.next_token.embeddings import (
        are_orthonormal as are_orthonormal,
        gaussian as gaussian,
        one_hot as one_hot,
        orthonormality_error as orthonormality_error,
    )
    from attractor.next_token.generators import (
        RandomCorpus as RandomCorpus,
        order_first_corpus as order_first_corpus,
        rolled_out_corpus as rolled_out_corpus,
    )
    from attractor.next_token.graphs import QueryGraphs as QueryGraphs
    from attractor.next_token.orders import (
        PartialOrders as PartialOrders,
        TokenClass as TokenClass,
        partial_orders as partial_orders,
        token_priority_graphs as token_priority_graphs,
    )
    from attractor.next_token.problems import (
        attention_problem as attention_problem,
        complete_orders_solution as complete_orders_solution,
        feed_forward_problem as feed_forward_problem,
    )
    from attractor.next_token.samples import (
        Samples as Samples,
        attention_tokens as attention_tokens,
        distinct_samples as distinct_samples,
    )
    from attractor.next_token.structure import (
        CorpusStructure as CorpusStructure,
        corpus_structure as corpus_structure,
    )
    from attractor.next_token.two_stage import (
        train_two_stages as train_two_stages,
    )
    from attractor.next_token.two_stage_measures import (
        attention_solutions as attention_solutions,
        direction_distance as direction_distance,
        feed_forward_solutions as feed_forward_solutions,
        measure_two_stages as measure_two_stages,
    )
    from attractor.next_token.two_stage_trajectory import TwoStageTrajectory as TwoStageTrajectory

import_on_first_use(__name__)
