"""Heads of which it is known where they are: what an audit of margin solutions says of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from attractor.attention import KeyQuery, LinearHead
from attractor.heads.audit._audit_heads import audit_heads
from attractor.heads.audit.result import Margin
from attractor.heads.captured.captured import CAPTURED_BY, Captured, Projections
from attractor.heads.captured.rows import LEAST_CANDIDATES
from attractor.heads.statistics.multiple import check_draws
from attractor.support.checks import check_count, check_function, check_kind
from attractor.support.progress import progress_bar
from attractor.support.randomness import check_seed, generator, random_rotation, seeded
from attractor.tokens import Tokens
from attractor.training import gradient_descent, normalized_gradient_descent, train

if TYPE_CHECKING:
    import xarray as xr

DATA_SETS, HEADS = 8, 3
"""Heads of a data set differ in their labels."""
_HIDDEN = 3
"""Hidden states in units of the width of a head: three heads fill them."""
_MOST_SEQUENCES = 32
_STEPS, _EARLY = 2000, 20
_RATE, _SCALE, _DECAY = 1.0, 0.1, 1e-3

Load = Callable[[np.ndarray, np.ndarray, np.ndarray], Captured]
"""From hidden states ``(n, T, hidden)`` and the matrices of keys and of queries of each head,
``(heads, width, hidden)``, to what is captured of them in one layer."""


@dataclasses.dataclass(frozen=True)
class ControlSizes:
    """Sizes of heads to train.

    Attributes:
        width: Entries of a key.
        tokens: Tokens of a sequence.
        sequences: Sequences of a data set, a query each; no more than a head is wide, so that its
            rank suffices.
    """

    width: int
    tokens: int
    sequences: int

    def __post_init__(self) -> None:
        """Checks that heads of these sizes can be trained and captured.

        Raises:
            InvalidInputError: If a size is no count, or out of range.
        """
        check_count("width", self.width, 2)
        check_count("tokens", self.tokens, LEAST_CANDIDATES)
        check_count("sequences", self.sequences, 2, self.width)

    @classmethod
    def of(cls, captured: Captured) -> ControlSizes:
        """The sizes of captured heads: those of the first layer, as far as a control can have them.

        Raises:
            InvalidInputError: If the heads are of width 1.
        """
        check_kind("captured", captured, Captured, CAPTURED_BY)
        layer = captured.layer(captured.layers[0])
        width, seen = layer.queries.shape[-1], layer.allowed.sum(-1)
        return cls(
            width=width,
            tokens=max(LEAST_CANDIDATES, int(np.median(seen))),
            sequences=max(2, min(width, len(seen), _MOST_SEQUENCES)),
        )


@dataclasses.dataclass(frozen=True)
class Arm:
    """Heads of one making.

    Attributes:
        name: How they were made.
        expected: What an audit should say of them; None for anything but that they are at a margin
            solution.
    """

    name: str
    expected: str | None = None

    def right(self, verdict: str) -> bool:
        """Whether a verdict is what it should be."""
        if self.expected is None:
            return not verdict.startswith(Margin.AT)
        return verdict == self.expected


ARMS = (
    Arm("W, trained to the end", f"{Margin.AT} (frobenius)"),
    Arm("K and Q, trained to the end", f"{Margin.AT} (nuclear)"),
    Arm("K and Q, stopped early"),
    Arm("K and Q, with weight decay"),
    Arm("K and Q to the end, pairing rotated"),
    Arm("K and Q to the end, queries exchanged"),
    Arm("K and Q to the end, on other texts"),
)


def positive_control(
    sizes: ControlSizes,
    *,
    draws: int = 19,
    alpha: float = 0.05,
    load: Load | None = None,
    seed: int = 0,
    progress: bool = False,
) -> xr.Dataset:
    """Trains heads to where theory says they go, and audits them: what is found, and what is not.

    Random tokens, labels and values; normalized gradient descent on ``W`` goes to the Frobenius
    margin solution, on its factors ``K`` and ``Q`` to the nuclear one (*Transformers as Support
    Vector Machines*). Gradients are exact however saturated attention is: a head trained in plain
    floating point stops on the way. Beside them stand heads that are not there.

    Args:
        sizes: Sizes of the heads.
        draws: Draws that margin ratios are compared with.
        alpha: Level of the tests, for the heads of a data set together.
        load: Captures heads; None for ``Captured.from_arrays``, where no model is in between.
        seed: Names all that is random.
        progress: Whether to show progress.

    Returns:
        Over ``arm`` and ``control_head``: ``verdict`` and whether it is ``right``, and over
        ``norm`` too ``margin_ratio`` and ``margin_cosine``; ``expected`` says of which ``arm``
        heads are at a margin solution.

    Raises:
        InvalidInputError: If an argument is of the wrong kind, or draws are too few for the level.
    """
    check_kind("sizes", sizes, ControlSizes, "Give ControlSizes(width, tokens, sequences)")
    draws, alpha = check_draws(draws, alpha)
    seed = check_seed("seed", seed)
    if load is None:
        load = _as_arrays(seed)
    else:
        check_function("load", load, "Give a function of states, K and Q, or None")
        load = seeded(seed, purpose="heads that are loaded", alone=False)(load)
    norms = ("frobenius", "nuclear")
    found: dict[str, list[Any]] = {"verdict": [], "margin_ratio": [], "margin_cosine": []}
    with progress_bar("control", len(ARMS) + 3, enabled=progress, lines_every=30) as advance:
        for heads in _made(sizes, load, seed, advance):
            verdicts, ratios, cosines = [], [], []
            for number in range(DATA_SETS):
                chosen = slice(number * HEADS, (number + 1) * HEADS)
                data = audit_heads(
                    load(heads.states[number], heads.K[chosen], heads.Q[chosen]),
                    draws=draws, alpha=alpha, training_texts=True, norms=norms,
                    margin_draws=draws, seed=seed,
                ).data.sel(layer=0)  # fmt: skip
                verdicts += data["margin"].to_numpy().tolist()
                ratios.append(data["margin_ratio"].to_numpy())
                cosines.append(data["margin_cosine"].sel(estimator=list(norms)).to_numpy())
            found["verdict"].append(verdicts)
            found["margin_ratio"].append(np.concatenate(ratios))
            found["margin_cosine"].append(np.concatenate(cosines))
            advance(1)
    names = ("arm", "control_head", "norm")
    right = [
        [arm.right(one) for one in verdicts]
        for arm, verdicts in zip(ARMS, found["verdict"], strict=True)
    ]
    arrays = {name: np.array(value) for name, value in (found | {"right": right}).items()}
    return xr.Dataset(
        {name: (names[: array.ndim], array) for name, array in arrays.items()},
        coords={
            "arm": [arm.name for arm in ARMS],
            "expected": ("arm", [arm.expected is not None for arm in ARMS]),
            "norm": list(norms),
        },
        attrs=dataclasses.asdict(sizes) | {"steps": _STEPS, "draws": draws, "alpha": alpha},
    )


@dataclasses.dataclass(frozen=True)
class _Heads:
    """Hidden states of each data set, and the matrices of all heads of all of them."""

    states: Float[np.ndarray, "sets n T hidden"]
    K: Float[np.ndarray, "heads width hidden"]
    Q: Float[np.ndarray, "heads width hidden"]


def _made(
    sizes: ControlSizes, load: Load, seed: int, advance: Callable[[float], None]
) -> Iterator[_Heads]:
    """The heads of every arm in turn."""
    states, others = (_states(sizes, seed, which) for which in ("trained on", "others"))
    hidden = states.shape[-1]
    random = generator(seed, purpose="heads of a control")
    start = random.standard_normal((HEADS, sizes.width, hidden))
    position = np.stack([load(one, start, start).position for one in states])
    tokens = _tokens(states, position, random)
    values = LinearHead(random.standard_normal(hidden))

    def trained(optimizer: Any, parameterization: Any, initial: float) -> Any:
        found = train(
            tokens, values, optimizer, steps=_STEPS, parameterization=parameterization,
            initial=initial, record=[_EARLY, _STEPS], seed=seed,
        )  # fmt: skip
        advance(1)
        return lambda step: _factors(found.W(step=step)[:, 0], sizes.width)

    normalized, factors = normalized_gradient_descent(_RATE), KeyQuery(sizes.width)
    yield _Heads(states, *trained(normalized, "W", 0.0)(_STEPS))
    descended = trained(normalized, factors, _SCALE)
    K, Q = descended(_STEPS)
    yield _Heads(states, K, Q)
    yield _Heads(states, *descended(_EARLY))
    decaying = gradient_descent(_RATE, weight_decay=_DECAY)
    yield _Heads(states, *trained(decaying, factors, _SCALE)(_STEPS))
    turns = np.stack([random_rotation(random, sizes.width) for _ in K])
    yield _Heads(states, K, turns @ Q)
    rows = np.arange(sizes.sequences)
    exchanged = states.copy()
    for number, places in enumerate(position):
        exchanged[number, rows, places] = np.roll(states[number, rows, places], 1, axis=0)
    yield _Heads(exchanged, K, Q)
    yield _Heads(others, K, Q)


def _states(sizes: ControlSizes, seed: int, which: str) -> Float[np.ndarray, "sets n T hidden"]:
    """Random hidden states of mean zero and variance one, which layer norms leave as they are."""
    random = generator(seed, purpose=f"hidden states {which}")
    shape = (DATA_SETS, sizes.sequences, sizes.tokens, _HIDDEN * sizes.width)
    states = random.standard_normal(shape)
    states -= states.mean(-1, keepdims=True)
    return states / states.std(-1, keepdims=True)


def _tokens(
    states: Float[np.ndarray, "sets n T hidden"],
    position: Int[np.ndarray, "sets n"],
    random: np.random.Generator,
) -> Tokens:
    """A data set for every head: hidden states of length one, random labels."""
    unit = states / np.sqrt(states.shape[-1])
    rows = np.arange(states.shape[1])
    queries = np.stack([one[rows, places] for one, places in zip(unit, position, strict=True)])
    labels = random.choice([-1.0, 1.0], (DATA_SETS * HEADS, states.shape[1]))
    return Tokens(np.repeat(unit, HEADS, axis=0), np.repeat(queries, HEADS, axis=0), labels)


def _factors(
    W: Float[np.ndarray, "heads hidden hidden"], width: int
) -> tuple[Float[np.ndarray, "heads width hidden"], Float[np.ndarray, "heads width hidden"]]:
    """Keys and queries of matrices of low rank, for hidden states of variance one."""
    left, singular, right = np.linalg.svd(W / W.shape[-1])
    size = np.sqrt(singular[:, :width, None])
    return size * np.swapaxes(left, 1, 2)[:, :width], size * right[:, :width]


def _as_arrays(seed: int) -> Load:
    def load(
        states: Float[np.ndarray, "n T hidden"],
        K: Float[np.ndarray, "heads width hidden"],
        Q: Float[np.ndarray, "heads width hidden"],
    ) -> Captured:
        count, tokens, _ = states.shape
        position = generator(seed, purpose="queries of a control").integers(tokens, size=count)
        at_queries = states[np.arange(count), position]
        return Captured.from_arrays(
            np.einsum("ntd,hwd->nhtw", states, K),
            np.einsum("nd,hwd->nhw", at_queries, Q),
            position=position,
            projections=Projections(query=Q, key=K),
        )

    return load
