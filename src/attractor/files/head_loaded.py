"""What a head file holds, ready for use."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attractor.prompt.head import Head
    from attractor.prompt.measures import Empirical, Gaussian


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LoadedHead:
    """What a head file holds.

    Attributes:
        head: The score matrix ``U = W_K^T W_Q``, divided as the file says, and the value matrix.
        tokens: The law of the tokens: Gaussian, or the samples in the file.
        queries: The law of the queries likewise; that of the tokens where the file has none.
    """

    head: Head
    tokens: Gaussian | Empirical
    queries: Gaussian | Empirical

    def __repr__(self) -> str:
        """What it holds, on one line."""
        U = self.head.score_matrix.shape
        laws = ", ".join(
            f"{name} {_law(law)}"
            for name, law in (("tokens", self.tokens), ("queries", self.queries))
        )
        return f"LoadedHead(d={U[0]}, e={U[1]}, v={self.head.value_matrix.shape[0]}, {laws})"


def _law(law: Gaussian | Empirical) -> str:
    points = getattr(law, "points", None)
    return "Gaussian" if points is None else f"{len(points):,} samples"
