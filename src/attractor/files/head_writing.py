"""Writing head files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attractor.checks import check_kinds, check_path
from attractor.errors import InvalidInputError
from attractor.files.arrays_writing import write_arrays
from attractor.files.head_arrays import interpret_head
from attractor.files.head_layout import DIVISION
from attractor.files.layout import SUFFIXES
from attractor.prompt.head import Head

if TYPE_CHECKING:
    from attractor.prompt.measures import Measure


def save_head(
    path: str | os.PathLike[str], head: Head, tokens: Measure, queries: Measure | None = None
) -> None:
    """Writes a head with the laws of its tokens and queries, so that ``load`` gives the same.

    The score matrix is kept as it is: as ``W_Q``, beside the identity as ``W_K``, not divided.

    Args:
        path: The destination, ending in ``.npz`` or ``.safetensors``; replaced atomically.
        head: The head.
        tokens: The law of the tokens: ``Gaussian``, or ``Empirical`` with samples as its points.
        queries: The law of the queries likewise; None for that of the tokens.

    Raises:
        InvalidInputError: If the name ends in anything else, a law is another one, or shapes do
            not fit; nothing is written then.
    """
    check_kinds(head=(head, Head))
    path = check_path("path", path)
    file = Path(path)
    if file.suffix not in SUFFIXES:
        raise InvalidInputError(
            "path", f"{file.name} ends in neither .npz nor .safetensors", "Choose one of the two"
        )
    given = {
        "W_Q": head.score_matrix,
        "W_K": np.eye(head.token_dimension),
        "W_V": head.value_matrix,
        DIVISION: np.array(False),
        **_law("tokens", "", tokens),
    }
    if queries is not None and queries is not tokens:
        given |= _law("queries", "query_", queries)
    arrays = {name: np.asarray(array) for name, array in given.items()}
    interpret_head(arrays, file.name)
    write_arrays(file, arrays)


def _law(samples: str, prefix: str, law: Measure) -> dict[str, np.ndarray]:
    from attractor.prompt.measures import Empirical, Gaussian

    if isinstance(law, Gaussian):
        return {f"{prefix}mean": law.mean, f"{prefix}covariance": law.covariance}
    if isinstance(law, Empirical) and law.weights is None and law.points.ndim == 2:
        return {samples: law.points}
    raise InvalidInputError(
        samples,
        f"a head file does not hold this {type(law).__name__}",
        "Give Gaussian, or Empirical with points (n, d) of equal weight",
    )
