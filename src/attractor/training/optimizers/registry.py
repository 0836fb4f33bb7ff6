"""Optimizers by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from attractor.support.checks import check_text, suggest
from attractor.support.errors import InvalidInputError
from attractor.training.optimizers._joined import joined
from attractor.training.optimizers.hyperparameters import Numbers
from attractor.training.optimizers.optimizer import Optimizer
from attractor.training.optimizers.schedules import scheduled_settings, split

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_SHORT_WITH_NUMBER = re.compile(r"(.+) ([\d.]+)")
_OWN_RATE = re.compile(r"(^|,)\s*learning[_-]rate\s*=")
DEFAULT_LEARNING_RATE = 0.1
_WORDS = {"true": True, "false": False, "none": None}

Factory = Callable[..., Optimizer]
_Factory = TypeVar("_Factory", bound=Factory)


class RegisteredOptimizer(NamedTuple):
    """An optimizer that is known by name.

    Attributes:
        name: Its name in full.
        short: Its short names.
        factory: The function that makes one.
        number: The setting that a number behind a short name is, as in "md-1.75"; None if it
            takes no such number.
    """

    name: str
    short: tuple[str, ...]
    factory: Factory
    number: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """Its name in full, and its short names."""
        return (self.name, *self.short)

    @property
    def settings(self) -> tuple[str, ...]:
        """Its settings beside the learning rate."""
        every = inspect.signature(self.factory).parameters
        return tuple(setting for setting in every if setting != "learning_rate")

    @property
    def takes_learning_rate(self) -> bool:
        """Whether it has a learning rate."""
        return "learning_rate" in inspect.signature(self.factory).parameters

    @property
    def spelling(self) -> str:
        """Its names, as errors list them."""
        forms = [*self.short, *(f"{short}-<{self.number}>" for short in self.short if self.number)]
        return f"{self.name} ({', '.join(forms)})" if forms else self.name


_REGISTERED: dict[str, RegisteredOptimizer] = {}


def register_optimizer(
    name: str, *short: str, number: str | None = None
) -> Callable[[_Factory], _Factory]:
    """Makes an optimizer known by name; used as a decorator of the function that makes it.

    Args:
        name: Its name in full, in words.
        short: Short names.
        number: The setting that a number behind a short name is.
    """

    def register(factory: _Factory) -> _Factory:
        _REGISTERED[name] = RegisteredOptimizer(name, short, factory, number)
        return factory

    return register


def registered_optimizers() -> tuple[RegisteredOptimizer, ...]:
    """The optimizers that are known by name."""
    return tuple(_REGISTERED.values())


def get_optimizer(
    name: str | Optimizer, learning_rate: Numbers | None = None, **settings: Any
) -> Optimizer:
    """The optimizer of that name; an optimizer is handed back as it is.

    A name is one in full, such as "normalized gradient descent" (underscores or hyphens will do
    for spaces, and capitals do not matter), or a short one, such as "ngd". Settings may follow a
    colon, as in "mirror descent:p=1.75,normalize=false"; where a short name takes a number, that
    is "md-1.75". "joined muon" joins the arrays of attention heads (``joined``). Behind the name of
    a number, "_exponent" and "_offset" make it a ``power_decay``, and "_steps" one that ends, as
    ``until``: "signum:learning_rate_exponent=0.5".

    Args:
        name: The name, perhaps with settings, the learning rate among them.
        learning_rate: The learning rate, for those that have one; it overrides one in the name.
        settings: Further settings; they override those in the name.

    Raises:
        InvalidInputError: If no optimizer has that name, or a setting is none of its own.
    """
    if isinstance(name, Optimizer):
        return name
    if alone := _joined_name(str(name)):
        return joined(get_optimizer(alone, learning_rate, **settings))
    words, _, written = str(name).partition(":")
    found, number = _find(words)
    if found is None:
        known = "; ".join(entry.spelling for entry in _REGISTERED.values())
        names = [one for entry in _REGISTERED.values() for one in entry.names]
        raise InvalidInputError(
            "optimizer", f"none is called {name!r}", f"{suggest(words, names)}Known: {known}"
        )
    given = number | _read_settings(found, written) | settings
    if learning_rate is not None:
        given["learning_rate"] = learning_rate
    if "learning_rate" in given and not found.takes_learning_rate:
        raise InvalidInputError(
            "learning_rate",
            f"{found.name} has none",
            f"Leave it out; it has: {', '.join(found.settings)}",
        )
    names = [*(["learning_rate"] if found.takes_learning_rate else []), *found.settings]
    for setting in given:
        if split(setting)[0] not in names:
            raise InvalidInputError(
                "optimizer",
                f"{found.name} has no setting {setting!r}",
                f"{suggest(setting, names)}It has: {', '.join(names)}",
            )
    if found.takes_learning_rate and given.get("learning_rate") is None:
        raise InvalidInputError("learning_rate", f"{found.name} needs one", "Give 0.1, say")
    required = [
        setting.name
        for setting in inspect.signature(found.factory).parameters.values()
        if setting.default is setting.empty and setting.name not in given
    ]
    if required:
        raise InvalidInputError(
            "optimizer",
            f"{found.name} needs {', '.join(required)}",
            f"Write it behind a colon, as in {found.name}:{required[0]}=...",
        )
    return found.factory(**scheduled_settings(given))


def named_optimizer(spelling: str, learning_rate: Numbers | None = None) -> Optimizer:
    """A registered optimizer by name; its learning rate is 0.1 by default.

    Unlike ``load_method`` it never imports anything, so that the name may come from anywhere.

    Args:
        spelling: A name that ``get_optimizer`` knows, with its settings.
        learning_rate: Overrides one in the name.

    Raises:
        InvalidInputError: If there is no such optimizer.
    """
    spelling = check_text("spelling", spelling)
    name, _, settings = spelling.partition(":")
    found, _ = _find(_joined_name(name) or name)
    takes_rate = found is None or found.takes_learning_rate
    if learning_rate is None and takes_rate and not _OWN_RATE.search(settings):
        learning_rate = DEFAULT_LEARNING_RATE
    return get_optimizer(spelling, learning_rate)


def _joined_name(name: str) -> str:
    """What stands behind "joined", empty in names of other optimizers."""
    found = re.fullmatch(r"\s*joined[\s_-]+(.+)", name, re.IGNORECASE)
    return found[1] if found else ""


def _find(words: str) -> tuple[RegisteredOptimizer | None, dict[str, float]]:
    """The optimizer that some words name, and the setting that a number among them gives."""
    plain = _plain(words)
    with_number = _SHORT_WITH_NUMBER.fullmatch(plain)
    for entry in _REGISTERED.values():
        names = set(map(_plain, entry.names))
        if plain in names:
            return entry, {}
        if with_number and entry.number and with_number[1] in names and _is_number(with_number[2]):
            return entry, {entry.number: float(with_number[2])}
    return None, {}


def _read_settings(entry: RegisteredOptimizer, written: str) -> dict[str, Any]:
    """Reads settings such as "p=1.75,normalize=false"."""
    settings: dict[str, Any] = {}
    for item in filter(None, written.split(",")):
        setting, equals, value = (part.strip() for part in item.partition("="))
        if not (equals and value):
            raise InvalidInputError(
                "optimizer",
                f"{item!r} sets nothing",
                f"Write a value after =, for one of: {', '.join(entry.settings)}",
            )
        settings[setting.replace("-", "_")] = _read_value(value)
    return settings


def _read_value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if not _is_number(text):
        return text
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name.strip()).casefold()
