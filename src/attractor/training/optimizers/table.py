"""The table of optimizers: a row for each that is known by name."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from attractor.geometry import Geometry
from attractor.support.checks import check_flag, check_text, suggest
from attractor.support.errors import InvalidInputError
from attractor.training.optimizers.hyperparameters import Check, Maker, hyperparameters as as_data
from attractor.training.optimizers.joined_heads import JOINED, joined
from attractor.training.optimizers.optimizer import UNNAMED, GradientScale, Optimizer
from attractor.training.optimizers.schedules import Numbers, schedule_settings, with_schedule

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
DEFAULT_LEARNING_RATE = 0.1
_RATE = "learning_rate"
_JOINED = JOINED.strip()
"""The setting that every optimizer has: whether the arrays of attention heads are one for it."""
_WORDS = {"true": True, "false": False, "none": None}


class RegisteredOptimizer(NamedTuple):
    """An optimizer that is known by name.

    Attributes:
        name: Its name in full.
        short: Its short names.
        maker: The function that makes one.
        hyperparameters: Its settings that are numbers, which may have several values or follow a
            schedule.
    """

    name: str
    short: tuple[str, ...]
    maker: Callable[..., Optimizer]
    hyperparameters: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Its name in full, and its short names."""
        return (self.name, *self.short)

    @property
    def arguments(self) -> Mapping[str, inspect.Parameter]:
        """The learning rate, if it has one, and its settings."""
        return inspect.signature(self.maker).parameters

    @property
    def settings(self) -> tuple[str, ...]:
        """Its settings beside the learning rate."""
        return tuple(setting for setting in self.arguments if setting != _RATE)

    @property
    def takes_learning_rate(self) -> bool:
        """Whether it has a learning rate."""
        return _RATE in self.arguments

    @property
    def required(self) -> tuple[str, ...]:
        """The arguments that have no default."""
        return tuple(name for name, one in self.arguments.items() if one.default is one.empty)

    @property
    def norm(self) -> Geometry | None:
        """The norm that it descends by default; None if a setting names it, or none is known."""
        return self._default and self._default.geometry

    @property
    def gradient_scale(self) -> GradientScale | None:
        """The scale of gradients that it takes by default; None if that is up to a setting."""
        return self._default and self._default.gradient_scale

    @property
    def _default(self) -> Optimizer | None:
        """The optimizer with settings as they are; None if one has to be given."""
        if {*self.required} - {_RATE}:
            return None
        return self.maker(*(DEFAULT_LEARNING_RATE for _ in self.required))


SPELLING = "name:key=value,key=value"
"""How an optimizer is written with settings."""

_TABLE: dict[str, RegisteredOptimizer] = {}


def register_optimizer(
    name: str, *short: str, hyperparameters: tuple[str, ...] = (), **checks: Check
) -> Callable[[Maker], Maker]:
    """Makes an optimizer known by name; used as a decorator of the function that makes it.

    Args:
        name: Its name in full, in words.
        short: Short names.
        hyperparameters: The arguments of the function that are numbers: they may then have several
            values or follow a schedule, and the function is given one, traced perhaps.
        **checks: Functions of name and value that check further arguments, and return them as the
            function is to be given them.

    Raises:
        InvalidInputError: If another optimizer has one of the names, or there are checks and no
            hyperparameters that they stand beside.
    """
    taken = {one: row.name for row in _TABLE.values() if row.name != name for one in row.names}
    for one in (name, *short):
        if one in taken:
            raise InvalidInputError("name", f"{one!r} is that of {taken[one]}", "Give another one")
    if checks and not hyperparameters:
        raise InvalidInputError("checks", "there are no hyperparameters", "Name them")

    def register(make: Maker) -> Maker:
        @functools.wraps(make)
        def make_named(*settings: Any, **further: Any) -> Optimizer:
            optimizer = make(*settings, **further)
            if optimizer.name == UNNAMED:
                optimizer.name = name
            return optimizer

        maker: Any = make_named
        if hyperparameters:
            maker = as_data(*hyperparameters, **checks)(maker)
        _TABLE[name] = RegisteredOptimizer(name, short, maker, hyperparameters)
        return maker

    return register


def registered_optimizers() -> tuple[RegisteredOptimizer, ...]:
    """The optimizers that are known by name."""
    return tuple(_TABLE.values())


def get_optimizer(
    name: str | Optimizer, learning_rate: Numbers | None = None, **settings: Any
) -> Optimizer:
    """The optimizer of that name; an optimizer is handed back as it is.

    A name is one in full, such as "normalized gradient descent", or a short one, such as "ngd".
    Settings may follow a colon, as in "mirror descent:p=1.75,normalize=false". A number follows a
    schedule where its numbers are given beside it, by the names that they have in results:
    "signum:learning_rate_exponent=0.5" is a ``power_decay``, as is one with
    "learning_rate_offset", and "ngd:weight_decay=0.01,weight_decay_steps=100" ends, as ``until``.
    "muon:joined=true" joins the arrays of attention heads (``joined``).

    Args:
        name: The name, perhaps with settings, the learning rate among them.
        learning_rate: The learning rate, for those that have one; it overrides one in the name.
        settings: Further settings; they override those in the name.

    Raises:
        InvalidInputError: If no optimizer has that name, or a setting is none of its own.
    """
    if isinstance(name, Optimizer):
        return name
    row, given = _read(str(name))
    given |= settings
    if learning_rate is not None:
        given[_RATE] = learning_rate
    if _RATE in given and not row.takes_learning_rate:
        remedy = f"Leave it out; it has: {', '.join(row.settings)}"
        raise InvalidInputError(_RATE, f"{row.name} has none", remedy)
    known = [*([_RATE] if row.takes_learning_rate else []), *row.settings, _JOINED]
    scheduled = [own for number in row.hyperparameters for own in schedule_settings(number)]
    for setting in given:
        if setting not in (*known, *scheduled):
            raise InvalidInputError(
                "optimizer",
                f"{row.name} has no setting {setting!r}",
                f"{suggest(setting, [*known, *scheduled])}It has: {', '.join(known)}",
            )
    if row.takes_learning_rate and given.get(_RATE) is None:
        raise InvalidInputError(_RATE, f"{row.name} needs one", "Give 0.1, say")
    required = [setting for setting in row.required if setting not in given]
    if required:
        raise InvalidInputError(
            "optimizer",
            f"{row.name} needs {', '.join(required)}",
            f"Write it behind a colon, as in {row.name}:{required[0]}=...",
        )
    for number in row.hyperparameters:
        given = with_schedule(number, given)
    joins = check_flag(_JOINED, given.pop(_JOINED, False))
    optimizer = row.maker(**given)
    return joined(optimizer) if joins else optimizer


def named_optimizer(spelling: str, learning_rate: Numbers | None = None) -> Optimizer:
    """A registered optimizer by name; its learning rate is 0.1 by default.

    Unlike ``load_method`` it never imports anything, so that the name may come from anywhere.

    Args:
        spelling: A name that ``get_optimizer`` knows, with its settings.
        learning_rate: Overrides one in the name.

    Raises:
        InvalidInputError: If there is no such optimizer.
    """
    row, given = _read(check_text("spelling", spelling))
    if learning_rate is None and row.takes_learning_rate and _RATE not in given:
        learning_rate = DEFAULT_LEARNING_RATE
    return get_optimizer(spelling, learning_rate)


def spelling_of(name: str, settings: Mapping[str, Any]) -> str:
    """What ``get_optimizer`` reads as an optimizer, given the name and settings that a run has."""
    alone = name.removeprefix(JOINED)
    every = {**settings, **({} if alone == name else {_JOINED: True})}
    return f"{alone}:{','.join(f'{setting}={value}' for setting, value in every.items())}"


def _read(spelling: str) -> tuple[RegisteredOptimizer, dict[str, Any]]:
    """The optimizer that a spelling such as "md:p=1.75,normalize=false" names, and its settings."""
    name, _, written = (part.strip() for part in spelling.partition(":"))
    row = next((row for row in _TABLE.values() if name in row.names), None)
    if row is None:
        known = "; ".join(
            f"{row.name} ({', '.join(row.short)})" if row.short else row.name
            for row in _TABLE.values()
        )
        near = suggest(name, [one for row in _TABLE.values() for one in reversed(row.names)])
        raise InvalidInputError(
            "optimizer",
            f"none is called {spelling!r}",
            f"{near}Known: {known}; settings follow a colon: {SPELLING}",
        )
    settings: dict[str, Any] = {}
    for item in filter(None, written.split(",")):
        setting, equals, value = (part.strip() for part in item.partition("="))
        if not (equals and value):
            raise InvalidInputError(
                "optimizer",
                f"{item!r} sets nothing",
                f"Write a value after =, for one of: {', '.join(row.settings)}",
            )
        settings[setting] = _value(value)
    return row, settings


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if not _NUMBER.fullmatch(text):
        return text
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
