"""The record of a result: what was run, on which data, with which versions."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

from attractor.results.provenance.fingerprint import differences as differing_settings
from attractor.support.checks import check_items, check_kinds
from attractor.support.containers import parse_json
from attractor.support.errors import FileFormatError, InvalidInputError
from attractor.support.loaded import is_of_loaded
from attractor.version import __version__

KINDS = ("figure", "claim", "report")
"""The kinds of results that can be run again."""

_FORMAT = "attractor provenance 1"
_PACKAGES = ("jax", "numpy", "optax", "scipy")


@dataclasses.dataclass(frozen=True)
class Provenance:
    """Where a result comes from.

    Settings and arguments are plain values of JSON. Tuples and arrays become lists, and numbers
    that JSON does not know become the texts "inf", "-inf" and "nan", from which ``float`` makes
    them again.

    Attributes:
        kind: What was run, one of ``KINDS``.
        name: Its name.
        arguments: What it was called with; enough to run it again.
        data: ``data_hash`` of the data, or None where there are none.
        seeds: The seeds, in order.
        settings: Every setting that was in force, defaults included.
        bibtex: BibTeX entries of the statements used, each once.
        version: Version of Attractor.
        packages: Versions of the packages that bear on the numbers, by name.
        platform: System, processor and JAX backend, such as "linux-x86_64-cpu".
    """

    kind: str
    name: str
    arguments: Mapping[str, Any]
    data: str | None
    seeds: tuple[int, ...]
    settings: Mapping[str, Any]
    bibtex: tuple[str, ...]
    version: str
    packages: Mapping[str, str]
    platform: str

    def __post_init__(self) -> None:
        """Checks the kind, and turns every value into one of JSON."""
        if self.kind not in KINDS:
            raise InvalidInputError(
                "kind", f"{self.kind!r} cannot be run again", f"Give one of {', '.join(KINDS)}"
            )
        made = {
            "arguments": _plain("arguments", self.arguments),
            "settings": _plain("settings", self.settings),
            "packages": dict(self.packages),
            "seeds": tuple(int(seed) for seed in self.seeds),
            "bibtex": _entries(self.bibtex),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    @classmethod
    def record(
        cls,
        kind: str,
        name: str,
        *,
        arguments: Mapping[str, Any],
        data: str | None = None,
        seeds: Iterable[int] = (),
        settings: Mapping[str, Any] | None = None,
        bibtex: Iterable[str] = (),
    ) -> Provenance:
        """The provenance of something run here and now, by what is installed here.

        Args:
            kind: What is run, one of ``KINDS``.
            name: Its name.
            arguments: What it is called with.
            data: ``data_hash`` of the data.
            seeds: The seeds.
            settings: Every setting in force.
            bibtex: BibTeX entries of the statements used; repeated ones are kept once.

        Raises:
            InvalidInputError: If the kind is unknown, or a value is none of JSON.
        """
        import jax

        check_kinds(
            kind=(kind, str),
            name=(name, str),
            data=(data, str | None),
            arguments=(arguments, Mapping),
            settings=(settings, Mapping | None),
        )
        seeds = _items("seeds", seeds, int | np.integer)
        bibtex = _entries(bibtex)
        return cls(
            kind,
            name,
            arguments,
            data,
            tuple(seeds),
            {} if settings is None else settings,
            bibtex,
            __version__,
            dict(_installed()),
            f"{platform.system()}-{platform.machine()}-{jax.default_backend()}".lower(),
        )

    def to_json(self) -> str:
        """The provenance as one line of JSON in ASCII; equal ones give the same text."""
        contents = {"format": _FORMAT, **dataclasses.asdict(self)}
        return json.dumps(contents, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Provenance:
        """The provenance that ``to_json`` gave as a text.

        Raises:
            FileFormatError: If the text is no provenance of a version that is known here.
        """
        check_kinds(text=(text, str))
        try:
            contents = parse_json(text)
        except ValueError as error:
            raise FileFormatError(f"The provenance is damaged: it is no JSON ({error}).") from None
        if not isinstance(contents, dict) or contents.pop("format", None) != _FORMAT:
            raise FileFormatError(f"The provenance is not of the form {_FORMAT!r}.")
        names = [field.name for field in dataclasses.fields(cls)]
        wrong = [name for name in names if not _FIELDS[name](contents.get(name, _MISSING))]
        wrong += sorted(contents.keys() - _FIELDS.keys())
        if wrong:
            raise FileFormatError(f"The provenance is damaged: {wrong[0]} cannot be used.")
        try:
            return cls(**contents)
        except InvalidInputError as error:
            raise FileFormatError(f"The provenance is damaged: {error}") from None


def _items(argument: str, given: Any, kind: Any) -> list[Any]:
    """The items of an iterable that is neither a text nor a mapping."""
    ends = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | np.ndarray)
    return check_items(argument, list(given) if ends else given, kind)


def differences(old: Provenance, new: Provenance) -> list[str]:
    """Says in words what differs between two provenances; empty where nothing does.

    What bears on the numbers comes first: the thing run, its data, arguments and settings; then
    the versions and the platform.
    """
    check_kinds(old=(old, Provenance), new=(new, Provenance))
    words = _changed("what was run", f"{old.kind} {old.name}", f"{new.kind} {new.name}")
    if old.data != new.data:
        words.append(f"the data were {_short(old.data)} and are {_short(new.data)}")
    words += _nested("argument", old.arguments, new.arguments)
    if old.seeds != new.seeds:
        words.append(f"the seeds were {_listed(old.seeds)} and are {_listed(new.seeds)}")
    words += _nested("setting", old.settings, new.settings)
    words += _changed("Attractor", old.version, new.version)
    for package in sorted(old.packages.keys() | new.packages.keys()):
        before, now = (p.packages.get(package, "not recorded") for p in (old, new))
        words += _changed(package, before, now)
    words += _changed("the platform", old.platform, new.platform)
    words += [f"no longer cited: {entry}" for entry in old.bibtex if entry not in new.bibtex]
    words += [f"newly cited: {entry}" for entry in new.bibtex if entry not in old.bibtex]
    return words


_MISSING = object()


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(entry) is int for entry in value)


_FIELDS = {
    **dict.fromkeys(("kind", "name", "version", "platform"), lambda one: isinstance(one, str)),
    **dict.fromkeys(("arguments", "settings"), lambda one: isinstance(one, dict)),
    "data": lambda value: value is None or isinstance(value, str),
    "seeds": _numbers,
    "bibtex": _texts,
    "packages": lambda value: isinstance(value, dict) and _texts(list(value.values())),
}
"""Whether a value read from JSON can be the field of that name."""


def _entries(bibtex: Iterable[str]) -> tuple[str, ...]:
    """The entries, each once."""
    if isinstance(bibtex, str):
        raise InvalidInputError("bibtex", "it is one text", "Give a list of BibTeX entries")
    return tuple(dict.fromkeys(_items("bibtex", bibtex, str)))


@functools.cache
def _installed() -> Mapping[str, str]:
    """Versions of the packages that results rest on, read once: a millisecond for each."""
    return {package: version(package) for package in _PACKAGES}


def _plain(place: str, value: Any) -> Any:
    """A value of JSON, where ``place`` is its dotted name."""
    if isinstance(value, np.ndarray | np.generic) or is_of_loaded(value, "jax", "Array"):
        value = np.asarray(value).tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        plain = {str(name): _plain(f"{place}.{name}", entry) for name, entry in value.items()}
        return dict(sorted(plain.items()))  # so that equal ones print alike
    if isinstance(value, list | tuple):
        return [_plain(f"{place}[{number}]", entry) for number, entry in enumerate(value)]
    raise InvalidInputError(
        place,
        f"a {type(value).__name__} is no value of JSON",
        "Give a number, a text, True, False, None, or lists and dictionaries of these",
    )


def _nested(what: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return [f"the {what} {words}" for words in differing_settings(old, new)]


def _changed(what: str, old: str, new: str) -> list[str]:
    return [] if old == new else [f"{what} was {old} and is {new}"]


def _short(data: str | None) -> str:
    return "none" if data is None else f"those of hash {data[:12]}"


def _listed(seeds: tuple[int, ...]) -> str:
    """Seeds in words; consecutive ones as a range."""
    span = seeds[-1] + 1 - seeds[0] if seeds else 0
    if 2 < len(seeds) == span and seeds == tuple(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(str(seed) for seed in seeds) or "none"
