"""Newton-Schulz iterations: polynomials that bring singular values close to one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float

from attractor.geometry import Spectral
from attractor.support.checks import check_choice, check_count, shown, suggest
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64
from attractor.training.optimizers.leaves import square_sum, unit

Triple = tuple[float, float, float]
"""The coefficients a, b, c of one iteration."""
Coefficients = str | Triple | Sequence[Triple]
"""The name of a preset, one triple for all iterations, or a triple for each."""

_DEFAULT = "muon"
_MOST = 100
_ITERATIONS = 5
"""How many iterations there are of one triple."""
_SAFETY = 1.01
"""What Polar Express divides by before every iteration but the last kind."""
_POLAR_EXPRESS = (
    (8.28721201814563, -23.595886519098837, 17.300387312530933),
    (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
    (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
    (3.3184196573706015, -2.488488024314874, 0.51004894012372),
    (2.300652019954817, -1.6689039845747493, 0.4188073119525673),
    (1.891301407787398, -1.2679958271945868, 0.37680408948524835),
    (1.8750014808534479, -1.2500016453999487, 0.3750001645474248),
)
_QUINTIC = (15 / 8, -10 / 8, 3 / 8)


def _of_shrunk(triple: Triple, factor: float) -> Triple:
    """The coefficients of ``p(x / factor)``."""
    a, b, c = triple
    return a / factor, b / factor**3, c / factor**5


COEFFICIENTS: dict[str, tuple[Triple, ...]] = {
    "muon": ((3.4445, -4.7750, 2.0315),),
    "dion": (
        (4.0848, -6.8946, 2.9270),
        (3.9505, -6.3029, 2.6377),
        (3.7418, -5.5913, 2.3037),
        (2.8769, -3.1427, 1.2046),
        (2.8366, -3.0525, 1.2012),
    ),
    "you": (
        (3955 / 1024, -8306 / 1024, 5008 / 1024),
        (3735 / 1024, -6681 / 1024, 3463 / 1024),
        (3799 / 1024, -6499 / 1024, 3211 / 1024),
        (4019 / 1024, -6385 / 1024, 2906 / 1024),
        (2677 / 1024, -3029 / 1024, 1162 / 1024),
        (2172 / 1024, -1833 / 1024, 682 / 1024),
    ),
    "polar-express": (
        # The matrix itself is divided by the safety factor once more.
        _of_shrunk(_POLAR_EXPRESS[0], _SAFETY**2),
        *(_of_shrunk(triple, _SAFETY) for triple in _POLAR_EXPRESS[1:]),
        _QUINTIC,
    ),
    "cans": (
        (8.4703, -25.1081, 18.6293),
        (4.1828, -3.1087, 0.5806),
        (3.9619, -2.9541, 0.5630),
        (3.2866, -2.4647, 0.5074),
        (2.2737, -1.6447, 0.4162),
    ),
    "newton-schulz": ((3 / 2, -1 / 2, 0.0),),
    "newton-schulz-5": (_QUINTIC,),
}
"""Presets by name; the last triple of one is repeated for iterations beyond its own."""


def newton_schulz_values(
    values: Float[Any, "..."],
    coefficients: Coefficients = _DEFAULT,
    iterations: int | None = None,
) -> Float[np.ndarray, "..."]:
    """The singular values that a Newton-Schulz iteration makes of those of ``G / ||G||_F``.

        x <- a x + b x^3 + c x^5,    once for each iteration

    For ``G = U s V^T``, what stands in the place of ``U V^T`` is ``U f(s / ||s||) V^T`` with this
    function f. Where it does not end at one, the step is not that of steepest descent in the
    spectral norm. Presets:

    * ``"muon"``, Jordan's (3.4445, -4.7750, 2.0315) in every iteration, does not converge: values
      from 0.01 on end between 0.68 and 1.13 after five. Source: Jordan et al., *Muon* (2024).
    * ``"dion"``, five triples by You Jiacheng, ``"dion"`` in optax too and "quintic" elsewhere.
      Source: modded-nanogpt; Ahn et al., *Dion* (arXiv 2504.05295).
    * ``"you"``, six triples by the same. Source: the library Modula; compared in *Polar Express*.
    * ``"polar-express"``, each the best polynomial after those before it, with the safety factor of
      1.01 of its Algorithm 1; from the eighth on (15, -10, 3) / 8, so that it converges. Source:
      Amsel et al., *The Polar Express* (arXiv 2505.16932).
    * ``"cans"``, five by Remez on intervals that shrink, with four decimals as in NVIDIA's
      libraries. Source: Grishina et al. (arXiv 2506.10935).
    * ``"newton-schulz"``, (3, -1, 0) / 2, and ``"newton-schulz-5"``, (15, -10, 3) / 8, are the
      classical ones, and converge. Source: Higham, *Functions of Matrices* (2008), section 8.3.

    Args:
        values: Singular values over the Frobenius norm, each from 0 to 1.
        coefficients: A preset; one triple ``(a, b, c)``; or a triple for each iteration, of which
            the last is repeated. As text "1.5/-0.5/0", with a colon between triples.
        iterations: How many, 1 to 100; None for as many as there are triples, and five of one.

    Raises:
        InvalidInputError: If an argument is out of its range.

    Example:
        >>> import attractor as at
        >>> at.newton_schulz_values([0.01, 0.1, 1.0]).round(2)
        array([0.7 , 0.71, 0.7 ])
        >>> at.newton_schulz_values([0.01, 0.1, 1.0], "polar-express", 9).round(6)
        array([1., 1., 1.])
    """
    x = as_float64("values", values)
    if ((x < 0) | (x > 1)).any():
        raise InvalidInputError(
            "values", "some are not from 0 to 1", "Divide singular values by the Frobenius norm"
        )
    with np.errstate(over="ignore", invalid="ignore"):  # coefficients of one's own may diverge
        for a, b, c in _triples(coefficients, iterations, "iterations"):
            square = x**2
            x = (a + (b + c * square) * square) * x
    return x


class PolarFactor(NamedTuple):
    """A map from ``G = U s V^T`` to ``U V^T``, or to what Newton-Schulz iterations make of it.

    Attributes:
        triples: The coefficients of every iteration; None for the exact factor.
        coefficients: What they are called, or they themselves as text.
    """

    triples: tuple[Triple, ...] | None = None
    coefficients: str = _DEFAULT

    def __call__(self, G: Float[Array, "d e"]) -> Float[Array, "d e"]:
        """``U f(s / ||s||) V^T``; zero where G is zero."""
        if self.triples is None:
            return Spectral().steepest_descent_direction(G)
        return _newton_schulz(G, self.triples)

    def settings(self, iterations: str) -> dict[str, Any]:
        """What optimizers record of it; the number of iterations by the given name."""
        if self.triples is None:
            return {"method": "exact"}
        named = {} if self.coefficients == _DEFAULT else {"coefficients": self.coefficients}
        return {"method": "newton-schulz", iterations: len(self.triples), **named}


def check_coefficients(argument: str, coefficients: Any) -> str:
    """Checks coefficients, and returns their name, or the text that is read as them."""
    known = _read(coefficients)
    named = (name for name, triples in COEFFICIENTS.items() if known == triples)
    return next(named, ":".join("/".join(map(repr, triple)) for triple in known))


def polar_factor(
    method: Any, coefficients: Any, iterations: Any, argument: str = "iterations"
) -> PolarFactor:
    """The map of a method.

    Args:
        method: ``"exact"`` or ``"newton-schulz"``.
        coefficients: Those of the iteration, as ``newton_schulz_values`` takes them.
        iterations: How many, or None.
        argument: What the caller calls their number.

    Raises:
        InvalidInputError: If an argument is out of its range, or coefficients or iterations are
            given to the exact method.
    """
    named = check_coefficients("coefficients", coefficients)
    if check_choice("method", method, ("exact", "newton-schulz")) == "newton-schulz":
        return PolarFactor(_triples(named, iterations, argument), named)
    given = {argument: iterations is not None, "coefficients": named != _DEFAULT}
    if any(given.values()):
        raise InvalidInputError(
            next(name for name, one in given.items() if one),
            "the exact method has no iterations",
            'Leave it out, or give method="newton-schulz"',
        )
    return PolarFactor()


def _newton_schulz(G: Float[Array, "d e"], triples: Sequence[Triple]) -> Float[Array, "d e"]:
    """``U f(s / ||s||) V^T`` for ``G = U s V^T``, with the function f of ``newton_schulz_values``.

    ``X <- a X + b (X X^T) X + c (X X^T)^2 X``, from ``X = G / ||G||_F``. No constant is added to
    that norm, so that the size of the gradient does not matter, however small.
    """
    wide = G.T if G.shape[0] > G.shape[1] else G
    X = unit(wide, square_sum, 2)
    for a, b, c in triples:
        gram = X @ X.T
        X = a * X + (b * gram + c * gram @ gram if c else b * gram) @ X
    return X.T if G.shape[0] > G.shape[1] else X


def _triples(coefficients: Any, iterations: Any, argument: str) -> tuple[Triple, ...]:
    """The coefficients of every iteration."""
    known = _read(coefficients)
    given = _ITERATIONS if len(known) == 1 else len(known)
    count = given if iterations is None else check_count(argument, iterations, most=_MOST)
    return (known + known[-1:] * count)[:count]


def _read(coefficients: Any) -> tuple[Triple, ...]:
    """Presets, triples and text as triples."""
    if isinstance(coefficients, str):
        name = coefficients.strip().lower().replace("_", "-")
        if name in COEFFICIENTS:
            return COEFFICIENTS[name]
        try:
            coefficients = [[*map(float, row.split("/"))] for row in coefficients.split(":")]
        except ValueError:
            raise InvalidInputError(
                "coefficients",
                f"{shown(coefficients)} is none of {', '.join(COEFFICIENTS)}",
                f"{suggest(coefficients, COEFFICIENTS)}Or write a triple as 1.5/-0.5/0",
            ) from None
    rows = np.atleast_2d(as_float64("coefficients", coefficients))
    if rows.ndim > 2 or rows.shape[1] != 3 or not 1 <= len(rows) <= _MOST:
        raise InvalidInputError(
            "coefficients",
            f"{shown(coefficients)} is no triple, nor several",
            f"Give one such as (1.5, -0.5, 0), up to {_MOST} of them, or one of "
            f"{', '.join(COEFFICIENTS)}",
        )
    return tuple((a, b, c) for a, b, c in rows.tolist())
