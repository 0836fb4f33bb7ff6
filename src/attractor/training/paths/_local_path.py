"""``local_path``: where the loss is least in a cone around a direction, at growing norm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.attention import Head, Joint, KeyQuery, Loss, Parameterization
from attractor.attention.excess import check_excess, token_scores
from attractor.attention.multi_head import one_attention_head
from attractor.attention.rows import attention_rows
from attractor.geometry import Frobenius
from attractor.margin import Solution
from attractor.margin.selection import attended_tokens
from attractor.support.blas import single_blas_thread
from attractor.support.checks import check_count, check_share
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, double_precision
from attractor.support.randomness import generator
from attractor.tokens import Tokens
from attractor.training import validation
from attractor.training.inputs import Inputs, check_inputs
from attractor.training.paths.balls import RoundBall
from attractor.training.paths.checks import check_radii, check_tolerance
from attractor.training.paths.cone import (
    ConeCoordinates,
    ConeData,
    ConeLoss,
    ConeSearch,
    cone_coordinates,
    point_of_cone,
)
from attractor.training.paths.following import Place, Point, Starts, follow
from attractor.training.paths.measure import measure
from attractor.training.paths.score_map import score_map
from attractor.training.paths.survey import can_be_surveyed, lowest_places
from attractor.training.paths.trial import (
    PathRecords,
    flat_point,
    follow_all,
    has_choice,
    one_instance,
    path_records,
)
from attractor.training.trajectory import Trajectory

_DESCRIPTIONS = {
    "log_excess": "logarithm of the loss above that of the tokens the direction selects",
    "log_deficit": "logarithm of the loss below that of the tokens the direction selects",
    "optimality": "relative Frank-Wolfe gap; zero at stationary points",
    "angle": "angle to the direction, in radians",
    "at_edge": "whether the minimizer lies on the edge of the cone",
}
_STARTS = "local regularization path"
_AT_EDGE = 1e-6
"""Distance from the edge of the cone, relative to its angle, that counts as zero."""
_NEAR_AXIS = 1e-3
"""Distance from the axis of a further start: the axis itself may be a saddle point."""


def local_path(
    tokens: Tokens,
    head: Head,
    direction: Solution | Any,
    opening: float,
    *,
    radii: Any = None,
    seed: int = 0,
    starts: int = 3,
    loss: str | Loss = "logistic",
    parameterization: str | Parameterization = "W",
    tolerance: float = 1e-8,
    progress: bool = False,
) -> Trajectory:
    """Minimizes the loss in a cone around a direction, at growing norm.

        W(R) = argmin L(W)   subject to   ||W||_F = R,   <W, q> >= (1 - opening) R ||q||_F

    Where q solves the margin problem of a locally optimal selection and the opening is small
    enough, the direction of W(R) tends to q, from inside the cone. Around any other q, however
    small the opening, it does not: there the minimizer comes to lie on the edge (``at_edge``).

    The loss is compared with that of the tokens q selects, ``L_selected``, and minimized as
    ``log(L - L_selected)``, which is exact at any radius, or below it as ``log_deficit``, the
    logarithm of ``L_selected - L``. The problem is not convex: minima are followed from radius to
    radius beside those that the axis and random directions lead to, a prompt vector in the plane
    is searched for in all of the cone, and the lowest is kept. ``optimality`` certifies that it
    is stationary in the cone; that no lower one exists elsewhere in it, nothing certifies.

    Args:
        tokens: Data sets with labels.
        head: A linear head.
        direction: The direction q: a solution of a margin problem, or matrices ``(d, e)``, for a
            prompt vector ``(d,)``, for all instances or with an axis of them.
        opening: Between 0 and 1; the largest angle has the cosine ``1 - opening``.
        radii: Increasing norms; default: 17, evenly spread over the logarithm from 1 to 10^4.
        seed: Names the random starts.
        starts: Random starts at every radius.
        loss: ``"logistic"``, ``"exponential"`` or ``"linear"``.
        parameterization: ``"W"`` or ``"p"``.
        tolerance: Optimality up to which a point counts as stationary; a trial that exceeds it
            at some radius has the status ``UNCONVERGED``.
        progress: Whether to show a progress bar.

    Returns:
        A trajectory along ``radius``, with ``log_excess`` (NaN where the loss is below that of
        the selection), ``log_deficit`` (NaN where it is above; both minus infinity where they are
        the same), ``optimality``, ``angle`` and ``at_edge`` besides what training records.
        ``steps_taken`` counts Newton steps.

    Raises:
        InvalidInputError: If an argument cannot be used; nothing has been computed then.

    Source: *Max-Margin Token Selection in Attention Mechanism* (arXiv 2306.13596), local
    regularization path and its converse.
    """
    layer = one_attention_head(parameterization, "a regularization path")
    inputs = check_inputs(tokens, head, loss, layer, initial=None, seeds=1, seed=seed)
    validation.refuse_weights(inputs.tokens, "a regularization path")
    if isinstance(layer, KeyQuery | Joint):
        raise InvalidInputError(
            "parameterization",
            f"a cone around a direction of W is none for {layer.name!r}",
            'Use "W" or "p", with a head that is fixed',
        )
    check_excess(inputs.loss, inputs.head)
    matrices = _direction(direction, inputs.tokens)
    opening = check_share("opening", opening, "1e-3")
    radii = check_radii(radii)
    starts = check_count("starts", starts, least=0)
    tolerance = check_tolerance(tolerance)
    inputs.check_memory(len(radii), copies=2)

    with single_blas_thread():
        trials = LocalTrials(inputs, radii, matrices, opening, starts, tolerance)
        records = follow_all(trials, inputs.count, "local path", progress)
    return inputs.trajectory(
        records,
        radii,
        axis="radius",
        descriptions=_DESCRIPTIONS,
        optimizer="local regularization path",
        geometry=Frobenius(),
        settings={
            "opening": opening,
            "starts": starts,
            "tolerance": tolerance,
            "weights": "all",
        },
    )


def _direction(direction: Any, tokens: Tokens) -> Float[np.ndarray, "instances d e"]:
    """The directions as matrices, one for each instance."""
    shape = (tokens.key_dimension, tokens.query_dimension)
    found = as_float64("direction", direction.W if isinstance(direction, Solution) else direction)
    count = tokens.instances or 1
    lead = () if tokens.instances is None else (count,)
    wanted = [shape, (*lead, *shape)]
    if shape[1] == 1:
        wanted += [shape[:1], (*lead, *shape[:1])]
    if found.shape not in wanted:
        raise InvalidInputError(
            "direction",
            f"the shape is {found.shape}",
            f"Give {' or '.join(map(str, dict.fromkeys(wanted)))}",
        )
    found = np.broadcast_to(found.reshape(-1, *shape), (count, *shape))
    if not found.any((1, 2)).all():
        raise InvalidInputError("direction", "it is zero", "Give one that points somewhere")
    return found


@dataclass(frozen=True)
class LocalTrials:
    """The local paths of all instances; returns any of them by its number.

    Attributes:
        inputs: Data sets and model; the seed names the random starts.
        radii: The radii.
        directions: The direction of each cone.
        opening: One less the cosine of its largest angle.
        starts: Random starts at a radius.
        tolerance: Optimality up to which a point counts as stationary.
    """

    inputs: Inputs
    radii: Float[np.ndarray, "radius"]
    directions: Float[np.ndarray, "instance d e"]
    opening: float
    starts: int
    tolerance: float

    def __call__(self, number: int) -> PathRecords:
        """The path of one instance; called from several threads."""
        with double_precision():  # each thread has a setting of its own
            return self._path(number)

    def _path(self, number: int) -> PathRecords:
        inputs = self.inputs
        tokens, head = one_instance(inputs, number)
        direction = self.directions[number]
        rows = attention_rows(tokens)
        map = score_map(rows.keys, rows.queries, rows.mask, Frobenius())
        coordinates = cone_coordinates(map, direction)
        selected = attended_tokens(tokens, direction).mask
        sine = np.sqrt(self.opening * (2 - self.opening))
        data = ConeData(
            coordinates.matrix, rows.mask, token_scores(head, rows, selected), np.float64(1),
            coordinates.axis, coordinates.tangent, np.float64(sine),
        )  # fmt: skip
        shape = (coordinates.tangent.shape[1], 1)
        reach = sine * float(np.linalg.norm(map.matrix, axis=-1).max(initial=0))
        search = ConeSearch(ConeLoss(inputs.loss, RoundBall(shape)), data, reach)
        if shape[0] and has_choice(data.tokens):  # else the cone is a ray, or every W as good
            named = int(inputs.tokens.instance_numbers[number])
            draws = generator(inputs.seed, named, purpose=_STARTS)
            starts = _ConeStarts(search, shape, self.starts, draws)
            points = list(follow(search, self.radii.tolist(), starts))
        else:
            points = [flat_point(shape)] * len(self.radii)
        W = _matrices(points, self.radii, data, coordinates, direction.shape)
        series = measure(inputs.parameterization, inputs.loss, Frobenius(), W, head, rows)
        series |= _measures_of_cone(points, sine)
        pairs = zip(self.radii.tolist(), points, strict=True)
        compared = [search.log_differences(R, point.place) for R, point in pairs]
        series["log_excess"], series["log_deficit"] = np.array(compared).T
        return path_records(series, points, self.tolerance)


@dataclass
class _ConeStarts(Starts):
    """The axis, near it, all over a cone of few coordinates, and at random places of its edge."""

    search: ConeSearch
    shape: tuple[int, int]
    count: int
    generator: np.random.Generator

    def __call__(self, radius: float) -> Iterator[Place]:
        """Starts at a radius."""
        yield (np.zeros(self.shape),)
        if can_be_surveyed((self.shape,)):
            yield from lowest_places(self.search, radius, (self.shape,), self.search.reach)
        for number in range(self.count):
            b = self.generator.standard_normal(self.shape)
            size = _NEAR_AXIS if number == 0 else 1.0
            yield (size * b / max(np.linalg.norm(b), np.finfo(float).tiny),)


def _matrices(
    points: list[Point],
    radii: Float[np.ndarray, "radius"],
    data: ConeData,
    coordinates: ConeCoordinates,
    shape: tuple[int, ...],
) -> Float[np.ndarray, "radius d e"]:
    units = [np.asarray(point_of_cone(point.place[0], data)) for point in points]
    return np.stack(
        [R * (coordinates.basis @ C).reshape(shape) for R, C in zip(radii, units, strict=True)]
    )


def _measures_of_cone(points: list[Point], sine: float) -> dict[str, np.ndarray]:
    """Optimality, angle to the axis and contact with the edge of the minimizers."""
    across = np.array([np.linalg.norm(point.place[0]) for point in points])
    return {
        "optimality": np.array([point.optimality for point in points]),
        "angle": np.arcsin(np.minimum(sine * across, 1.0)),
        "at_edge": across >= 1 - _AT_EDGE,
    }
