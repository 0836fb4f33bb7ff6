"""What a corpus file holds, ready for use."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float

    from attractor.next_token import Corpus


@dataclasses.dataclass(frozen=True, eq=False)
class LoadedCorpus:
    """What a corpus file holds.

    Attributes:
        corpus: The sentences.
        embeddings: The vector of every token, or None where the file has none.
        notices: What was left out or changed while reading, in a sentence each.
    """

    corpus: Corpus
    embeddings: Float[np.ndarray, "V d"] | None = None
    notices: tuple[str, ...] = ()


def left_out(empty: int, single: int, what: str = "sentence") -> list[str]:
    """Says how many sentences were left out because they hold no sample."""
    notices = []
    if empty:
        notices.append(f"Skipped: {empty:,} empty {what}{'s' if empty > 1 else ''}.")
    if single:
        notices.append(
            f"Left out: {single:,} {what}{'s' if single > 1 else ''} of one token, without a "
            "sample."
        )
    return notices
