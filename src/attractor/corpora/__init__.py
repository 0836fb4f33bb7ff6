"""Next-token prediction: corpora, the orders and graphs they hide, and where training takes it."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.corpora import linear as linear, mechanics as mechanics
    from attractor.corpora.corpus import Corpus as Corpus
    from attractor.corpora.embeddings import (
        are_orthonormal as are_orthonormal,
        gaussian as gaussian,
        one_hot as one_hot,
        orthonormality_error as orthonormality_error,
    )
    from attractor.corpora.files.corpus import (
        CORPUS_LAYOUT as CORPUS_LAYOUT,
        CorpusCase as CorpusCase,
        load_corpus as load_corpus,
        save_corpus as save_corpus,
    )
    from attractor.corpora.generators import (
        RandomCorpus as RandomCorpus,
        order_first_corpus as order_first_corpus,
        rolled_out_corpus as rolled_out_corpus,
    )
    from attractor.corpora.parts import (
        RealizablePart as RealizablePart,
        realizable_part as realizable_part,
    )
    from attractor.corpora.problems import (
        attention_problem as attention_problem,
        complete_orders_solution as complete_orders_solution,
        feed_forward_problem as feed_forward_problem,
    )
    from attractor.corpora.samples import (
        Samples as Samples,
        attention_tokens as attention_tokens,
        distinct_samples as distinct_samples,
    )
    from attractor.corpora.structures.occurrences import (
        Collocation as Collocation,
        collocation as collocation,
    )
    from attractor.corpora.structures.orders import (
        PartialOrders as PartialOrders,
        QueryGraphs as QueryGraphs,
        TokenClass as TokenClass,
        partial_orders as partial_orders,
        token_priority_graphs as token_priority_graphs,
    )
    from attractor.corpora.structures.structure import (
        AssumptionCheck as AssumptionCheck,
        CorpusStructure as CorpusStructure,
        corpus_structure as corpus_structure,
    )
    from attractor.corpora.two_stages.two_stage import (
        TwoStageTrajectory as TwoStageTrajectory,
        train_two_stages as train_two_stages,
    )
    from attractor.corpora.two_stages.two_stage_measures import (
        attention_solutions as attention_solutions,
        direction_distance as direction_distance,
        feed_forward_solutions as feed_forward_solutions,
        measure_two_stages as measure_two_stages,
    )

import_on_first_use(__name__)
