"""What the user gave: a token file, and the options of the command line that override it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attractor.attention import get_parameterization
from attractor.attention.labels import check_labels, check_loss_name, is_margin_loss
from attractor.attention.readout import LinearReadout
from attractor.files import LoadedTokens, load_tokens
from attractor.geometry import Frobenius, Geometry
from attractor.margin.selection import Selection, optimal_tokens
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens

if TYPE_CHECKING:
    from attractor.attention import LinearHead

BEST = "the tokens with the highest scores"
NAMED = "the tokens that the file names"
GIVEN = "the tokens given with --selection"


def read_tokens(
    file: Path, loss: str = "logistic", parameterization: str | None = None
) -> LoadedTokens:
    """Reads a token file whose labels suit a loss, with rows as what is trained speaks of them.

    Args:
        file: The file.
        loss: Name of the loss.
        parameterization: What is trained, in place of what the file says.

    Raises:
        InvalidInputError: If anything in it cannot be used.
    """
    check_loss_name(loss)
    loaded = load_tokens(file)
    if loaded.from_scores and not is_margin_loss(loss):
        raise InvalidInputError(
            "loss",
            f"{file.name} holds scores, and {loss} is not made less by higher ones",
            "Take logistic, exponential or linear, or give labels and head in place of scores",
        )
    if loaded.tokens.labels is not None:
        check_labels(loss, loaded.tokens.labels)
    own = get_parameterization(loaded.parameterization)
    layer = own if parameterization is None else get_parameterization(parameterization)
    if loaded.initial is not None and set(layer.shapes(1, 1)) != set(own.shapes(1, 1)):
        raise InvalidInputError(
            "parameterization",
            f"{layer.name!r} is requested, but {file.name} says where {own.name!r} starts",
            "Leave the option out, or initial out of the file",
        )
    return dataclasses.replace(
        loaded, tokens=layer.prepare(loaded.tokens), parameterization=layer.name
    )


def descended(loaded: LoadedTokens) -> Geometry | None:
    """The norm that training descends as the file says or as documented; None if not known."""
    if loaded.optimizer is None:  # then no optimizer has to be loaded to know it
        return get_parameterization(loaded.parameterization).effective_geometry(Frobenius())
    from attractor.cli.plans import plan

    return plan(loaded).method.own_norm


def need_head(loaded: LoadedTokens, file: Path) -> LinearHead:
    """Returns the head.

    Raises:
        InvalidInputError: If there is none; says how to add one.
    """
    need_readout(loaded, file)
    assert loaded.head is not None
    return loaded.head


def need_readout(loaded: LoadedTokens, file: Path, *, or_selection: bool = False) -> LinearReadout:
    """Returns the head as margin problems need it.

    Raises:
        InvalidInputError: If there is none; says how to add one.
    """
    if loaded.readout is not None:
        return loaded.readout
    d = loaded.tokens.value_dimension
    if get_parameterization(loaded.parameterization).trains_head:
        raise InvalidInputError(
            "initial_head",
            f"{file.name} has no such array, so it is not known where training of the head starts",
            f"Add initial_head ({d},), the vector v that training starts from",
        )
    other = ". Or say which tokens to keep, such as --selection 0,2,1" if or_selection else ""
    raise InvalidInputError(
        "head",
        f"{file.name} has no such array, so it is not known what the attention output is used for",
        f"Add head ({d},), the fixed vector v that turns the attention output x into the "
        f"prediction v^T x: numpy.savez({file.name!r}, keys=..., queries=..., labels=..., "
        f"head=v). Or give scores (n, T), one for each token, in place of labels and head{other}",
    )


def known_beforehand(loaded: LoadedTokens, numbers: str | None) -> bool:
    """Whether the tokens to keep are known before training.

    A head that is trained has no scores to choose them by: those of its start say nothing of where
    it goes.
    """
    given = numbers is not None or loaded.selection is not None
    return given or not get_parameterization(loaded.parameterization).trains_head


def select(loaded: LoadedTokens, file: Path, numbers: str | None) -> tuple[Selection, str]:
    """Returns the tokens to keep, and what they are in words.

    Raises:
        InvalidInputError: If they are not known beforehand, there is neither a head nor a
            selection, or it does not fit.
    """
    if not known_beforehand(loaded, numbers):
        raise InvalidInputError(
            "selection",
            f"{file.name} trains the head, and where that goes decides which tokens attention "
            "keeps",
            "Say which tokens to keep, such as --selection 0,2,1, or train with `attractor check`, "
            "which solves for the tokens reached",
        )
    if numbers is None and loaded.selection is not None:
        return loaded.selection, NAMED
    if numbers is None:
        return optimal_tokens(loaded.tokens, need_readout(loaded, file, or_selection=True)), BEST
    return _parse(numbers, loaded.tokens), GIVEN


def _parse(numbers: str, tokens: Tokens) -> Selection:
    rows = tokens.mask.shape[:-1]
    per_set = rows[-2:]
    try:
        values = np.array([int(number) for number in numbers.split(",")])
    except ValueError:
        raise InvalidInputError(
            "selection", f"{numbers!r} is no list of numbers", "Give integers such as 0,2,1"
        ) from None
    if values.size not in (np.prod(per_set), np.prod(rows)):
        raise InvalidInputError(
            "selection",
            f"it has {values.size} numbers",
            f"Give {np.prod(per_set)}, one for each sequence"
            + (f" and query, or {np.prod(rows)}" if len(rows) > 2 else ""),
        )
    shape = rows if values.size == np.prod(rows) else per_set
    index = np.broadcast_to(values.reshape(shape), rows)
    # Without the axis of a single query: of one sequence it would pass for another axis.
    return Selection.from_index(tokens, index[..., 0] if rows[-1] == 1 else index)


def one_data_set(loaded: LoadedTokens, file: Path, number: int | None) -> LoadedTokens:
    """The data set requested, where a file holds several."""
    count = loaded.tokens.instances
    if count is None and number in (None, 0):
        return loaded
    if count is None or (number is None and count > 1) or (number or 0) >= count:
        raise InvalidInputError(
            "data_set",
            f"{file.name} holds {count or 1} data sets",
            f"Choose one with --data-set, from 0 to {(count or 1) - 1}",
        )
    return loaded[number or 0]
