"""Data of the claims and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from attractor.attention import LinearHead
from attractor.datasets.torch_stream import TorchNormalStream
from attractor.files.case import Case
from attractor.papers.figure import stacked
from attractor.tokens import Tokens
from attractor.training import Optimizer, train


def one_sequence(*, equal_scores: bool) -> Case:
    """Three tokens in the plane, scores (1, .9, .9) or (1, .9, 0).

    With unequal scores the second token is locally optimal beside the first.
    """
    keys = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]]
    scores = [[1.0, 0.9, 0.9 if equal_scores else 0.0]]
    kind = "equal" if equal_scores else "unequal"
    return Case.from_scores(keys, scores, about=f"one sequence, {kind} scores")


def three_sequences() -> Case:
    """Three sequences of seven tokens in the plane: the best ones lie right, the others left.

    Keys are normal with standard deviation 0.2 about (1, 0), (-1, 1) and (-.5, -.5); the best
    token has score 1, all others .5. The normal numbers are those of PyTorch's seed 0.
    """
    keys = TorchNormalStream(0).normal(3, 7, 3)[..., :2] * np.float32(0.2)
    centers = [[1.0, 0.0]] + 3 * [[-1.0, 1.0]] + 3 * [[-0.5, -0.5]]
    keys = keys + np.array(centers, dtype=np.float32)
    scores = np.where(np.arange(7) == 0, 1.0, 0.5)
    return Case.from_scores(keys, np.tile(scores, (3, 1)), about="three sequences")


def joint_training(*, all_labels_support: bool) -> Case:
    """Three sequences of two tokens, for training the prompt and the head together.

    Where not all labels support the head, the third sequence lies beyond its margin.
    """
    height = 1.0 if all_labels_support else 1.5
    keys = [[[0, 0], [1, 1]], [[0, 0], [1, -1]], [[0, 0], [0.5, height]]]
    tokens = Tokens(np.array(keys, float), np.ones((3, 1)), np.array([1.0, -1.0, 1.0]))
    kind = "all labels" if all_labels_support else "two of three labels"
    head = LinearHead(np.array([0.0, 1.0]))
    return Case(tokens, head, "v, p", about=f"joint training, {kind} at the margin")


def two_scores(score: float) -> Case:
    """Two sequences whose best tokens (1, 1) and (1, -1) have scores ``score`` and 1."""
    keys = [[[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, -1.0]]]
    scores = [[0.0, score], [0.0, 1.0]]
    return Case.from_scores(keys, scores, about=f"score {score:g} against 1")


def three_scores_apart() -> Case:
    """Two sequences of tokens of three scores, the middle one beyond the margin of the best."""
    keys = [[[1.0, 0], [0, 0], [-1, 0]], [[-2, 3], [0, 0], [-1, -4]]]
    return Case.from_scores(keys, [[1.0, 0.0, 0.5], [1.0, 0.0, 0.5]])


def random_prompt_data(seed: int, n: int = 6, T: int = 8, d: int = 10) -> Case:
    """Random unit tokens and a random unit head, for a prompt vector."""
    random = np.random.default_rng(seed)
    keys = random.standard_normal((n, T, d))
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    v = random.standard_normal(d)
    labels = np.sign(random.standard_normal(n))
    tokens = Tokens(keys, np.ones((n, 1)), labels)
    head = LinearHead(v / np.linalg.norm(v))
    return Case(tokens, head, "p", about=f"random data ({n}, {T}, {d}), seed {seed}")


def trapped_sequence(start: tuple[float, float] = (5.0, 0.0)) -> Case:
    """Two sequences of two tokens, from whose far side training keeps a wrong token for ever.

    Scores of the other tokens are equal and all of them are support tokens, so that there is no
    stationary point; still, from (5, 0) the direction reached is (1, 0) and not (1, 1).
    """
    keys = [[[1.0, 0.0], [0.0, 0.0]], [[-2.0, 3.0], [0.0, 0.0]]]
    return Case.from_scores(
        keys,
        [[1.0, 0.0], [1.0, 0.0]],
        initial=np.array(start),
        about=f"trapped sequence from ({start[0]:g}, {start[1]:g})",
    )


EXACT, PUBLISHED = "exact", "as published"


class Kernel(NamedTuple):
    """A way to train.

    Attributes:
        name: What figures call it.
        optimizer: The steps.
        kernel: How gradients are taken.
        dtype: In which precision.
    """

    name: str
    optimizer: Optimizer
    kernel: str = "exact"
    dtype: str = "float64"


def kernels(exact: Optimizer, published: Optimizer, *, both: bool) -> list[Kernel]:
    """The exact way, and beside it the published one: plain gradients in single precision.

    Args:
        exact: The steps.
        published: The same as the published code takes them.
        both: Whether the published way is wanted.
    """
    ways = [Kernel(EXACT, exact), Kernel(PUBLISHED, published, "plain", "float32")]
    return ways if both else ways[:1]


def run(case: Case, ways: Sequence[Kernel], **arguments: Any) -> xr.Dataset:
    """The records of training on a case in several ways, over ``kernel``, without instances."""
    head = arguments.pop("head", case.head)
    runs = [
        train(
            case.tokens,
            LinearHead(head) if not isinstance(head, LinearHead) else head,
            way.optimizer,
            parameterization=case.parameterization,
            kernel=way.kernel,
            dtype=way.dtype,
            **arguments,
        )
        for way in ways
    ]
    panels = [each.data.isel(instance=0, drop=True) for each in runs]
    return stacked(panels, "kernel", [way.name for way in ways])
