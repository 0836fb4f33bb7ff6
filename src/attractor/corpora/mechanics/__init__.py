"""Next-token prediction with self-attention and labels that conflict.

Samples with the same last token may have different labels. Their token-priority graphs then have
cycles; training keeps whole components, composes within them, and retrieves them by a direction
to infinity. Source: *Mechanics of Next Token Prediction with Self-Attention* (arXiv 2403.08081).
"""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.corpora.mechanics._ball_path import BallPath as BallPath, ball_path as ball_path
    from attractor.corpora.mechanics._conflicting_corpora import (
        ConflictingCorpora as ConflictingCorpora,
        conflicting_corpora as conflicting_corpora,
    )
    from attractor.corpora.mechanics._cyclic_subspace import (
        CyclicSubspace as CyclicSubspace,
        cyclic_subspace as cyclic_subspace,
    )
    from attractor.corpora.mechanics._graph_problem import graph_problem as graph_problem
    from attractor.corpora.mechanics._local_limits import (
        LocalLimits as LocalLimits,
        local_limits as local_limits,
        local_priority_graphs as local_priority_graphs,
    )
    from attractor.corpora.mechanics.convexity import (
        ChordTest as ChordTest,
        chord_test as chord_test,
    )
    from attractor.corpora.mechanics.finite_part import FinitePart as FinitePart
    from attractor.corpora.mechanics.limits import (
        AttentionLimits as AttentionLimits,
        attention_limits as attention_limits,
    )
    from attractor.corpora.mechanics.measures import (
        measure_limits as measure_limits,
        measure_matrices as measure_matrices,
    )
    from attractor.corpora.mechanics.tokens_of_corpora import (
        label_mass_tokens as label_mass_tokens,
        squared_miss as squared_miss,
        vocabulary_tokens as vocabulary_tokens,
    )

import_on_first_use(__name__)
