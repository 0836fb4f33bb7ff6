"""The state of tokens and a head: what a page can show, and what it cannot, which is refused."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from attractor.attention import Joint, KeyQuery, get_parameterization
from attractor.attention.heads.named import is_linear
from attractor.attention.parameterization import Parameterization
from attractor.explorer.answers import optimizer_of
from attractor.explorer.projection import projected
from attractor.explorer.state import (
    LOSSES,
    MOST_NUMBERS,
    MOST_SEQUENCES,
    MOST_STEPS,
    MOST_TOKENS,
    OPTIMIZERS,
    PARAMETERIZATIONS,
    THEMES,
    VERSION,
    State,
    check_state,
    is_flat,
    size_of,
)
from attractor.geometry import Geometry, get_geometry
from attractor.margin.selection import Selection, token_scores
from attractor.support.checks import (
    as_number,
    check_choice,
    check_count,
    check_kind,
    check_kinds,
    check_text,
    naming,
)
from attractor.support.errors import AttractorWarning, InvalidInputError
from attractor.tokens import Tokens
from attractor.training import Optimizer
from attractor.training.initial import check_initial
from attractor.training.optimizers import named_optimizer

KERNELS = ("exact", "plain")


def state_of(
    tokens: Tokens,
    head: Any,
    optimizer: Any = None,
    *,
    parameterization: str | Parameterization | None = None,
    start: Any = None,
    steps: int = 2000,
    loss: str = "logistic",
    norm: Geometry | str | None = None,
    selection: Any = None,
    kernel: str | Sequence[str] = "exact",
    projection: Any = "solutions",
    title: str | None = None,
    theme: str = "auto",
) -> State:
    """What a page of tokens and a head shows, as plain JSON: takes what ``explore`` takes.

    Raises:
        InvalidInputError: If an argument cannot be used, or a page cannot show it.

    Example:
        >>> import attractor as at
        >>> keys = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]]
        >>> tokens = at.Tokens.prompt_vector(keys, labels=[1])
        >>> at.explorer.state_of(tokens, at.LinearHead([0.5, 1.0]))["scores"]
        [[0.95, 0.5, 0.0]]
    """
    check_kinds(tokens=(tokens, Tokens))
    layer = _layer(parameterization, tokens)
    what = next(short for short, name in PARAMETERIZATIONS.items() if name == layer.name)
    steps = check_count("steps", steps, 1, MOST_STEPS)
    check_choice("loss", loss, LOSSES)
    check_choice("theme", theme, THEMES)
    trainings = _trainings(optimizer, kernel)
    _check_head(head)
    tokens, scores = _one_data_set(layer.prepare(tokens), head)
    _check_sizes(tokens, what)
    weight = _trained_head(tokens, head) if what == "pv" else None
    mask = tokens.mask[:, 0]
    state: State = {
        "version": VERSION,
        "keys": [keys[real].tolist() for keys, real in zip(tokens.keys, mask, strict=True)],
        "queries": tokens.queries[:, 0].tolist() if what in ("W", "KQ") else [],
        "parameterization": what,
        "start": _start(start, layer, tokens, weight),
        "loss": loss,
        "trainings": trainings,
        "steps": steps,
        "theme": theme,
    }
    if what == "pv":
        assert tokens.labels is not None
        state["labels"] = tokens.labels[:, 0].tolist()
    else:
        state["scores"] = [row[real].tolist() for row, real in zip(scores, mask, strict=True)]
    if title is not None:
        state["title"] = check_text("title", title)
    if norm is not None:
        with naming(geometry="norm", p="norm"):
            state["norm"] = get_geometry(get_geometry(norm).name).name
    if selection is not None:
        state["selection"] = _selected(selection, tokens)
    if not is_flat(what, tokens.key_dimension, tokens.query_dimension):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AttractorWarning)
            state |= projected(state, projection)
    with naming(**{f"state.{name}": name for name in ("title", "norm", "steps", "start")}):
        return check_state(state)


def _layer(parameterization: Any, tokens: Tokens) -> Parameterization:
    """What is trained; default: a prompt where queries are the number one, else ``W``."""
    if parameterization is None:
        parameterization = "p" if tokens.query_dimension == 1 else "W"
    layer = get_parameterization(parameterization)
    if layer.name not in PARAMETERIZATIONS.values():
        known = ", ".join(repr(name) for name in PARAMETERIZATIONS.values())
        raise InvalidInputError(
            "parameterization", f"a page does not train {layer.name!r}", f"It trains {known}"
        )
    factors = layer.attention if isinstance(layer, Joint) else layer
    if isinstance(factors, KeyQuery) and factors.width not in (None, tokens.key_dimension):
        raise InvalidInputError(
            "parameterization",
            f"its factors have {factors.width} columns",
            f"Leave the width out: it is {tokens.key_dimension} on a page",
        )
    return layer


def _trainings(optimizer: Any, kernel: Any) -> list[dict[str, Any]]:
    """One or two trainings of the optimizers and kernels given, of which one may serve both."""
    optimizers = list(optimizer) if _is_several(optimizer) else [optimizer]
    kernels = list(kernel) if _is_several(kernel) else [kernel]
    count = max(len(optimizers), len(kernels))
    for name, given in (("optimizer", optimizers), ("kernel", kernels)):
        if len(given) not in (1, count) or not 1 <= count <= 2:
            raise InvalidInputError(name, f"there are {len(given)}", "Give one, or two of each")
    plain = [check_choice("kernel", one, KERNELS) == "plain" for one in kernels]
    trainings = [training_from(one) for one in optimizers]
    return [
        trainings[k % len(trainings)] | ({"plain": True} if plain[k % len(plain)] else {})
        for k in range(count)
    ]


def _is_several(value: Any) -> bool:
    # An optimizer is a pair of functions, and so a tuple.
    return isinstance(value, list | tuple) and not isinstance(value, Optimizer)


def training_from(optimizer: Any) -> dict[str, Any]:
    """How a state names an optimizer and its settings.

    Raises:
        InvalidInputError: If a page has no such optimizer, or not with such settings.
    """
    if optimizer is None:
        optimizer = "normalized gradient descent"
    if isinstance(optimizer, str):
        with naming(spelling="optimizer"):
            optimizer = named_optimizer(optimizer)
    check_kind("optimizer", optimizer, Optimizer, "Give one of the library, or its name")
    name = optimizer.name.replace(" ", "_")
    if name not in OPTIMIZERS:
        known = ", ".join(one.replace("_", " ") for one in OPTIMIZERS)
        raise InvalidInputError(
            "optimizer", f"a page does not have {optimizer.name}", f"It has {known}"
        )
    training: dict[str, Any] = {"optimizer": name}
    for setting in ("learning_rate", "p", "weight_decay"):
        if setting in optimizer.settings:
            training[setting] = as_number(optimizer.settings[setting])
    if not np.isfinite(list(training.values())[1:]).all():
        raise InvalidInputError(
            "optimizer", f"{optimizer!r} has settings that are no numbers", "Give one number each"
        )
    usual = optimizer_of(training).settings
    for setting in {*optimizer.settings, *usual} - {*training}:
        if optimizer.settings.get(setting) != usual.get(setting):
            raise InvalidInputError(
                "optimizer",
                f"a page does not have {optimizer.name} with {setting}="
                f"{optimizer.settings.get(setting)}",
                "Give the learning rate, p and weight_decay alone",
            )
    return training


def _check_head(head: Any) -> None:
    """A page averages scores, which is what a head says of an average only if it is linear."""
    if not is_linear(head):
        raise InvalidInputError(
            "head", "it is not linear, so that the average of scores is not its answer",
            "Give LinearHead(v)",
        )  # fmt: skip


def _one_data_set(tokens: Tokens, head: Any) -> tuple[Tokens, np.ndarray]:
    """The single data set there is, and its scores."""
    if tokens.instances not in (None, 1):
        raise InvalidInputError(
            "tokens", f"they are {tokens.instances} data sets", "Give one, such as tokens[0]"
        )
    if tokens.queries_per_sequence != 1:
        raise InvalidInputError(
            "tokens",
            f"each sequence has {tokens.queries_per_sequence} queries",
            "A page shows one query a sequence",
        )
    if tokens.weights is not None:
        raise InvalidInputError(
            "tokens", "some rows count more than others", "Give tokens without weights and rows"
        )
    scores = token_scores(tokens, head)[..., 0, :]
    if tokens.instances == 1:
        assert tokens.labels is not None
        values = None if tokens.values is tokens.keys else tokens.values[0]
        one = tokens.keys[0], tokens.queries[0], tokens.labels[0], tokens.mask[0], values
        tokens, scores = Tokens(*one), scores[0]
    assert tokens.labels is not None
    if (np.abs(tokens.labels) != 1).any():
        raise InvalidInputError("tokens", "some labels are neither -1 nor 1", "Give these")
    return tokens, scores


def _check_sizes(tokens: Tokens, what: str) -> None:
    count, d, e = int(tokens.mask.sum()), tokens.key_dimension, tokens.query_dimension
    if tokens.sequences > MOST_SEQUENCES or count > MOST_TOKENS:
        raise InvalidInputError(
            "tokens",
            f"they are {tokens.sequences} sequences with {count:,} tokens",
            f"A page shows at most {MOST_SEQUENCES} sequences and {MOST_TOKENS} tokens",
        )
    if d < 2:
        raise InvalidInputError("tokens", "keys have one number", "Give two or more")
    if size_of(what, d, e) > MOST_NUMBERS:
        raise InvalidInputError(
            "tokens",
            f"{size_of(what, d, e):,} numbers would be trained",
            f"A page holds at most {MOST_NUMBERS:,}",
        )


def _trained_head(tokens: Tokens, head: Any) -> np.ndarray:
    """Where a head starts that is trained beside a prompt in the plane."""
    if tokens.key_dimension != 2 or not np.array_equal(tokens.values, tokens.keys):
        raise InvalidInputError(
            "parameterization",
            "the head is trained, which a page shows for tokens of two numbers that are their own "
            "values",
            "Give such tokens, or train 'p' alone",
        )
    weight = getattr(head, "weight", None)
    if weight is None:
        raise InvalidInputError("head", "it has no vector of its own", "Give LinearHead(v)")
    return np.ravel(weight)


def _start(
    start: Any, layer: Parameterization, tokens: Tokens, weight: np.ndarray | None
) -> list[float]:
    """Where training starts: zero, but small factors where zero is a saddle point."""
    d, e = tokens.key_dimension, tokens.query_dimension
    shapes = layer.shapes(d, e)
    if start is None:
        arrays = {
            "W": np.zeros((d, e)),
            "p": np.zeros(d),
            "K": 0.1 * np.eye(d),
            "Q": 0.1 * np.eye(e, d),
        }
    else:
        with naming(initial="start"):
            found = check_initial(start, layer, tokens, 1)
        assert found is not None
        arrays = {name: array[0, 0] for name, array in found.items()}
    parts = [np.ravel(arrays[name]) for name in shapes]
    return np.concatenate(parts if weight is None else [*parts, weight]).tolist()


def _selected(selection: Any, tokens: Tokens) -> list[int]:
    """Numbers of the tokens to keep, among those that are not masked."""
    chosen = selection if isinstance(selection, Selection) else None
    if chosen is None:
        chosen = Selection.from_index(tokens, selection)
    mask = chosen.mask
    while mask.ndim > 3 and mask.shape[0] == 1:
        mask = mask[0]
    if mask.shape != tokens.mask.shape or (mask.sum(-1) != 1).any():
        raise InvalidInputError(
            "selection", "it does not keep one token of each sequence", "Give one number each"
        )
    before = np.cumsum(tokens.mask[:, 0], -1) - 1
    return [int(row[place]) for row, place in zip(before, mask[:, 0].argmax(-1), strict=True)]
