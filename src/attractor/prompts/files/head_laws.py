"""The laws of tokens and queries in a head file: their entries, read, checked and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attractor.files.contents import text_list
from attractor.prompts import measures
from attractor.support.checks import suggest
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_shaped

if TYPE_CHECKING:
    from attractor.prompts.measures.contract import Measure

COORDINATE_LAWS = {
    "normal": "standard deviation",
    "uniform": "half width",
    "signs": "size",
    "laplace": "mean size",
}
"""The laws of a coordinate around its mean, and what the scale of each is."""

FORMS: Mapping[str, Mapping[str, bool]] = {
    "tokens": {"weights": False, "noise": False},
    "covariance": {"mean": False},
    "mixture_means": {"mixture_weights": True, "mixture_covariances": True},
    "coordinate_laws": {"coordinate_scales": True, "mean": False},
}
"""The entry that marks each form of a law, with those beside it: True for what it needs."""

LAYOUT = {
    "tokens": ("(n, d)", "sampled tokens x; or one of the other laws in their place"),
    "weights": ("(n,)", "optional, with tokens: relative; these are all of the law"),
    "noise": (
        "()",
        "optional, with tokens: variance of Gaussian noise added; these are all of the law",
    ),
    "covariance": ("(d, d)", "of Gaussian tokens"),
    "mean": ("(d,)", "optional, with covariance or coordinate_laws; default: zero"),
    "mixture_weights": ("(K,)", "with mixture_means: relative weights of Gaussian components"),
    "mixture_means": ("(K, d)", "of Gaussian components"),
    "mixture_covariances": ("(K, d, d)", "with mixture_means"),
    "coordinate_laws": ("(d,)", f"texts, of independent coordinates: {', '.join(COORDINATE_LAWS)}"),
    "coordinate_scales": (
        "(d,)",
        f"with coordinate_laws, for each its {', '.join(COORDINATE_LAWS.values())}",
    ),
}
"""The entries for the law of tokens; those for queries have ``query_`` in front."""

FEWEST_QUERIES = 2
"""The fewest sampled queries."""


def fewest_tokens(dimension: int) -> int:
    """The fewest sampled tokens: a covariance of full rank from either half of them."""
    return 2 * (dimension + 1)


class Names(NamedTuple):
    """How the law of tokens, or that of queries, is named in a file.

    Attributes:
        samples: The entry of samples.
        prefix: In front of all other entries.
        letters: The number of samples and the dimension, in shapes.
    """

    samples: str
    prefix: str
    letters: str

    def __call__(self, entry: str) -> str:
        """The name of an entry of ``LAYOUT``."""
        return self.samples if entry == "tokens" else f"{self.prefix}{entry}"

    def shape(self, entry: str) -> str:
        """Its shape, in words."""
        return LAYOUT[entry][0].translate(str.maketrans(TOKENS.letters, self.letters))

    def form(self, given: Mapping[str, Any], file: str) -> str | None:
        """The entry that marks the form of the law; None where there is no law.

        Raises:
            InvalidInputError: If there are several, or one is beside a form that it is not for, or
                without what it needs.
        """
        forms = [form for form in FORMS if self(form) in given]
        if len(forms) > 1:
            raise self._beside(forms[1], forms[0])
        present = [entry for entry in LAYOUT if self(entry) in given and entry not in FORMS]
        if not forms:
            for entry in present:
                needed = next(form for form, beside in FORMS.items() if entry in beside)
                raise InvalidInputError(
                    self(needed), f"{file} has {self(entry)} without it", f"Add {self(needed)}"
                )
            return None
        (form,) = forms
        for entry in present:
            if entry not in FORMS[form]:
                raise self._beside(entry, form)
        for entry, needed in FORMS[form].items():
            if needed and self(entry) not in given:
                raise InvalidInputError(
                    self(entry),
                    f"{file} has {self(form)} without them",
                    f"Add {self(entry)} {self.shape(entry)}",
                )
        return form

    def _beside(self, entry: str, form: str) -> InvalidInputError:
        return InvalidInputError(
            self(entry),
            f"it stands beside {self(form)}, which have their own",
            "Keep one of the two",
        )


TOKENS = Names("tokens", "", "nd")
QUERIES = Names("queries", "query_", "me")


def read_law(
    arrays: Mapping[str, np.ndarray],
    texts: Mapping[str, str],
    names: Names,
    form: str,
    dimension: int,
    fewest: int,
) -> Measure:
    """The law of tokens or queries of a form that the file has.

    Args:
        arrays: The arrays of the file.
        texts: Its texts, where ``.safetensors`` have lists of texts.
        names: Which of the two laws.
        form: What ``Names.form`` says.
        dimension: Numbers of a token or query.
        fewest: The fewest samples from a law that is not known.

    Raises:
        InvalidInputError: If an entry cannot be used.
    """

    def numbers(entry: str, *shape: int | str) -> Float[np.ndarray, "..."]:
        return as_shaped(names(entry), arrays[names(entry)], shape)

    if form == "tokens":
        return _samples(arrays, names, dimension, fewest, numbers)
    if form == "covariance":
        numbers("covariance", dimension, dimension)
    mean = names("mean")
    center = numbers("mean", dimension) if mean in arrays else np.zeros(dimension)
    if form == "covariance":
        # In its own type, whose rounding is allowed for.
        return _gaussian(names("covariance"), center, arrays[names("covariance")])
    if form == "coordinate_laws":
        laws = _laws(arrays, texts, names, dimension)
        scales = numbers("coordinate_scales", dimension)
        if not (scales > 0).all():
            raise InvalidInputError(
                names("coordinate_scales"), f"one is {scales.min():g}", "Give numbers above 0"
            )
        return _Coordinates(laws, scales, center).law()
    return _mixture(names, arrays[names("mixture_covariances")], dimension, numbers)


def law_entries(names: Names, law: Measure) -> dict[str, np.ndarray]:
    """The entries of a file from which ``read_law`` gives the law.

    Blocks of independent coordinates come back as the blocks of those that are alike.

    Raises:
        InvalidInputError: If a file holds no such law.
    """
    found = _entries(law)
    if found is None:
        raise InvalidInputError(
            names.samples,
            f"a head file does not hold this {type(law).__name__}",
            "Give Gaussian, Empirical with points (n, d), with noise or without, a Mixture of "
            "Gaussian components, or a Product of coordinates that are Gaussian, Uniform, "
            "Rademacher or Laplace",
        )
    return {names(entry): np.asarray(value) for entry, value in found.items()}


def of_coordinates(law: Measure, kept: Int[np.ndarray, "k"]) -> Measure:
    """The law of some coordinates, of a form that a file holds where that of all is."""
    coordinates = None if isinstance(law, measures.Gaussian) else _Coordinates.of(law)
    if coordinates is not None:
        laws = [coordinates.laws[place] for place in kept]
        return _Coordinates(laws, coordinates.scales[kept], coordinates.mean[kept]).law()
    chosen = np.eye(law.dimension)[kept]
    if isinstance(law, measures.Convolution):
        return measures.Convolution(law.first.pushforward(chosen), law.second.pushforward(chosen))
    return law.pushforward(chosen)


def coordinate_names(law: Measure) -> list[str] | None:
    """The names of the laws of independent coordinates; None for other laws."""
    coordinates = _Coordinates.of(law)
    return None if coordinates is None else coordinates.laws


def _entries(law: Measure) -> dict[str, Any] | None:

    if isinstance(law, measures.Gaussian):
        return {"mean": law.mean, "covariance": law.covariance}
    if isinstance(law, measures.Empirical) and law.points.ndim == 2:
        return {"tokens": law.points} | ({} if law.weights is None else {"weights": law.weights})
    if isinstance(law, measures.Convolution) and isinstance(law.first, measures.Empirical):
        samples, variance = _entries(law.first), _noise(law.second)
        return None if samples is None or variance is None else samples | {"noise": variance}
    if isinstance(law, measures.Mixture):
        parts = [one for one in law.components if isinstance(one, measures.Gaussian)]
        return None if len(parts) < len(law.components) else {
            "mixture_weights": law.weights,
            "mixture_means": np.stack([one.mean for one in parts]),
            "mixture_covariances": np.stack([one.covariance for one in parts]),
        }  # fmt: skip
    coordinates = _Coordinates.of(law)
    return None if coordinates is None else coordinates.entries()


def _noise(law: Measure) -> float | None:
    """The variance of Gaussian noise alike in all directions; None for another law."""
    if not isinstance(law, measures.Gaussian):
        return None
    variance = np.asarray(law.covariance)[0, 0]
    alike = np.array_equal(law.covariance, variance * np.eye(law.dimension))
    return float(variance) if variance > 0 and alike and not np.any(law.mean) else None


class _Coordinates(NamedTuple):
    """Independent coordinates: the law of each by its name, its scale and its mean."""

    laws: list[str]
    scales: Float[np.ndarray, "d"]
    mean: Float[np.ndarray, "d"]

    @classmethod
    def of(cls, law: Measure) -> _Coordinates | None:
        """Those of a law, or None where its coordinates are not of those known."""
        d = law.dimension
        if isinstance(law, measures.Pushforward) and np.array_equal(law.matrix, np.eye(d)):
            source = cls.of(law.source)
            return None if source is None else source._replace(mean=source.mean + law.shift)
        if isinstance(law, measures.Product):
            blocks = [cls.of(factor) for factor in law.factors]
            known = [block for block in blocks if block is not None]
            if len(known) < len(blocks):
                return None
            scales, means = ([block[part] for block in known] for part in (1, 2))
            laws = [name for block in known for name in block.laws]
            return cls(laws, np.concatenate(scales), np.concatenate(means))
        if isinstance(law, measures.Gaussian):
            variances = np.diag(law.covariance)
            if not np.array_equal(law.covariance, np.diag(variances)) or not (variances > 0).all():
                return None
            return cls(["normal"] * d, np.sqrt(variances), np.asarray(law.mean))
        match law:
            case measures.Uniform():
                name, scale = "uniform", law.half_width
            case measures.Rademacher():
                name, scale = "signs", law.scale
            case measures.Laplace():
                name, scale = "laplace", law.scale
            case _:
                return None
        return cls([name] * d, np.full(d, float(scale)), np.zeros(d))

    def law(self) -> Measure:
        """The law: blocks of coordinates that are alike, moved to their mean."""
        starts = [place for place in range(len(self.laws)) if place == 0 or not self._alike(place)]
        ends = [*starts[1:], len(self.laws)]
        blocks = [self._block(start, end) for start, end in zip(starts, ends, strict=True)]
        whole = blocks[0] if len(blocks) == 1 else measures.Product(blocks)
        if not self.mean.any():
            return whole
        return whole.pushforward(np.eye(len(self.laws)), self.mean)

    def entries(self) -> dict[str, Any]:
        """The entries of a file."""
        found = {"coordinate_laws": np.array(self.laws), "coordinate_scales": self.scales}
        return found | ({"mean": self.mean} if self.mean.any() else {})

    def _alike(self, place: int) -> bool:
        """Whether a coordinate has the law of the one before it; normal ones form one block."""
        same = self.laws[place] == self.laws[place - 1]
        alike = self.scales[place] == self.scales[place - 1] or self.laws[place] == "normal"
        return bool(same and alike)

    def _block(self, start: int, end: int) -> Measure:

        scale, count = float(self.scales[start]), end - start
        match self.laws[start]:
            case "normal":
                return measures.Gaussian(np.zeros(count), np.diag(self.scales[start:end] ** 2))
            case "uniform":
                return measures.Uniform(scale, count)
            case "signs":
                return measures.Rademacher(count, scale)
            case _:
                return measures.Laplace(scale, count)


def _samples(
    arrays: Mapping[str, np.ndarray],
    names: Names,
    dimension: int,
    fewest: int,
    numbers: Callable[..., Float[np.ndarray, "..."]],
) -> Measure:
    """Samples; with weights or noise the law itself, of however few."""
    points = numbers("tokens", "n", dimension)
    weighted, noisy = (names(entry) in arrays for entry in ("weights", "noise"))
    if len(points) < fewest and not (weighted or noisy):
        raise InvalidInputError(
            names.samples,
            f"there are {len(points)} of dimension {dimension}, too few for their covariance",
            f"Give at least {fewest}, or {names('weights')} if they are all that there is",
        )
    weights = numbers("weights", len(points)) if weighted else None
    law: measures.Empirical = _named(names("weights"), lambda: measures.Empirical(points, weights))
    if not noisy:
        return law
    variance = numbers("noise")
    if not variance > 0:
        raise InvalidInputError(
            names("noise"), f"it is {float(variance):g}", "Give a variance above 0, or leave it out"
        )
    return law.with_noise(float(variance))


def _mixture(
    names: Names,
    covariances: np.ndarray,
    dimension: int,
    numbers: Callable[..., Float[np.ndarray, "..."]],
) -> Measure:

    means = numbers("mixture_means", "K", dimension)
    count = len(means)
    numbers("mixture_covariances", count, dimension, dimension)
    weights = numbers("mixture_weights", count)
    # In their own type, whose rounding is allowed for.
    parts = zip(means, covariances, strict=True)
    components = [_gaussian(names("mixture_covariances"), mean, part) for mean, part in parts]
    return _named(names("mixture_weights"), lambda: measures.Mixture(weights, components))


def _gaussian(argument: str, mean: np.ndarray, covariance: np.ndarray) -> Measure:

    return _named(argument, lambda: measures.Gaussian(mean, covariance))


def _named(argument: str, build: Callable[[], Any]) -> Any:
    """A law, with errors that name the entry of the file."""
    try:
        return build()
    except InvalidInputError as error:
        raise InvalidInputError(argument, error.problem, error.remedy) from None


def _laws(
    arrays: Mapping[str, np.ndarray], texts: Mapping[str, str], names: Names, dimension: int
) -> list[str]:
    """The names of the laws of coordinates."""
    argument = names("coordinate_laws")
    found = text_list(argument, arrays, texts) or []
    if len(found) != dimension:
        raise InvalidInputError(argument, f"there are {len(found)} texts", f"Give {dimension}")
    unknown = next((each for each in found if each not in COORDINATE_LAWS), None)
    if unknown is not None:
        raise InvalidInputError(
            argument,
            f"there is no law {unknown!r}",
            f"{suggest(unknown, COORDINATE_LAWS)}Known are {', '.join(COORDINATE_LAWS)}",
        )
    return found
