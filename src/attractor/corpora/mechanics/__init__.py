"""Next-token prediction with self-attention and labels that conflict.

Samples with the same last token may have different labels. Their token-priority graphs then have
cycles; training keeps whole components, composes within them, and retrieves them by a direction
to infinity. Source: *Mechanics of Next Token Prediction with Self-Attention* (arXiv 2403.08081).
"""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.corpora.mechanics._ball_path import BallPath as BallPath, ball_path as ball_path
    from attractor.corpora.mechanics.cyclic_part import (
        ChordTest as ChordTest,
        CyclicSubspace as CyclicSubspace,
        FinitePart as FinitePart,
        chord_test as chord_test,
        cyclic_subspace as cyclic_subspace,
        graph_problem as graph_problem,
    )
    from attractor.corpora.mechanics.labels import (
        ConflictingCorpora as ConflictingCorpora,
        conflicting_corpora as conflicting_corpora,
        label_mass_tokens as label_mass_tokens,
        squared_miss as squared_miss,
        vocabulary_tokens as vocabulary_tokens,
    )
    from attractor.corpora.mechanics.limits import (
        AttentionLimits as AttentionLimits,
        LocalLimits as LocalLimits,
        attention_limits as attention_limits,
        local_limits as local_limits,
        local_priority_graphs as local_priority_graphs,
        measure_limits as measure_limits,
        measure_matrices as measure_matrices,
    )

import_on_first_use(__name__)
