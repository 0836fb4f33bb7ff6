"""``solve``: the one entry point to every solver of margin problems."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np

from attractor.geometry import Frobenius, Geometry, get_geometry
from attractor.margin.algorithms import methods_of
from attractor.margin.batching.empty_slots import (
    PER_CONSTRAINT,
    Places,
    alike,
    as_places,
    without_empty_slots,
)
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.certificate import Certificate, certify
from attractor.margin.large.driver import check_memory, has_few_unknowns, is_large, solve_large
from attractor.margin.methods import Method, attempt, is_of_library
from attractor.margin.problem import MarginProblem
from attractor.margin.solution import Solution
from attractor.margin.solved_once import Answers, memory
from attractor.margin.working_set import from_working_set
from attractor.support.blas import single_blas_thread
from attractor.support.checks import check_items, check_share
from attractor.support.errors import InvalidInputError, Status
from attractor.support.precision import as_float64
from attractor.support.progress import ProgressBar, progress_bar
from attractor.support.randomness import seeded
from attractor.support.threads import in_threads

_OWN = "norms and methods of a user's"
_BLOCK_ENTRIES = 2**17
"""Entries of the Gram matrices of the instances solved at a time: what caches hold, measured."""


@overload
def solve(
    problem: MarginProblem,
    geometry: Geometry | str = ...,
    *,
    tolerance: float = ...,
    methods: Sequence[Method] | None = ...,
    start: Any = ...,
    progress: bool = ...,
) -> Solution: ...
@overload
def solve(
    problem: Sequence[MarginProblem],
    geometry: Geometry | str = ...,
    *,
    tolerance: float = ...,
    methods: Sequence[Method] | None = ...,
    progress: bool = ...,
) -> list[Solution]: ...
def solve(
    problem: MarginProblem | Sequence[MarginProblem],
    geometry: Geometry | str = Frobenius(),  # noqa: B008 - immutable
    *,
    tolerance: float = 1e-9,
    methods: Sequence[Method] | None = None,
    start: Any = None,
    progress: bool = False,
) -> Solution | list[Solution]:
    """Solves ``min ||W||`` subject to ``a_j^T W b_j >= c_j``, and certifies the answer.

    The status follows from the certificate: *optimal* if the relative duality gap is within the
    tolerance, *infeasible* if multipliers near those found are proved to combine the constraints
    to an exact contradiction, *out of reach* if they do so to rounding alone, so that no matrix of
    norm below the lower bound meets the constraints, else *stopped early*, with the gap and the
    lower bound that could be proved. No instance of a batch can fail another.

    An instance gets the same bits alone and beside any others, in a batch or in a list, in any
    order, on any number of threads: the matrix, the multipliers, the status and every field of the
    certificate. Empty slots make no difference either. Last digits do differ from one kind of
    machine to another (``attractor.kind_of_processor``), and where the same constraints stand in
    another order. Methods of one's own have to keep this themselves: blocks that they are handed
    are cut for speed.

    Args:
        problem: The constraints, or a list of problems.
        geometry: The norm, or its name.
        tolerance: Relative duality gap to reach.
        methods: Methods of one's own in place of those known for the geometry, tried in turn. Each
            takes a ``Task`` and returns matrices and multipliers; the certificate judges them.
        start: Multipliers of a similar problem, ``(*instances, m)``: the constraints with a
            positive one are solved first, and others join as they fall short. Only of a single
            problem; what is certified does not depend on it.
        progress: Whether to show a progress bar.

    Returns:
        A Solution with the leading axes of the problem; for a list, a list.

    Raises:
        InvalidInputError: If the geometry has no solver, something among the methods is none, the
            tolerance is not positive, the start does not fit, or solving would take more memory
            than there is.

    Example:
        >>> import attractor as at
        >>> keys = [[[1, 0], [0, 1]], [[-1, 1], [0, -2]]]
        >>> tokens = at.Tokens(keys, queries=[[1, 0], [0, 1]], labels=[1, -1])
        >>> head = at.LinearHead([1, 0])
        >>> problem = at.MarginProblem.from_selection(tokens, at.optimal_tokens(tokens, head))
        >>> solution = at.solve(problem)
        >>> solution.W.round(6)
        array([[ 0.5, -0.1],
               [-0.5,  0.3]])
        >>> bool(solution.gap < 1e-9)
        True
        >>> round(solution.norm**2, 6), round(at.solve(problem, "nuclear").norm, 6)
        (0.6, 0.787047)
    """
    geometry = get_geometry(geometry)
    own = None if methods is None else tuple(check_items("methods", methods, Callable, 1))
    tried = methods_of(geometry, own)
    check_share("tolerance", tolerance, 1e-9)
    single = isinstance(problem, MarginProblem)
    problems: list[MarginProblem] = _listed(problem)
    warm_start = None if start is None else _as_start(start, problem)
    total = sum(len(p) if p.instances is not None else 1 for p in problems)
    for one in problems:
        check_memory(one)
    found: dict[int, Solution] = {}
    with single_blas_thread(), progress_bar("Solving", total, enabled=progress) as advance:
        run = functools.partial(
            _solve, geometry=geometry, methods=tried, own=own, tolerance=tolerance, advance=advance
        )
        for places in _alike(problems):
            if len(places) == 1:
                found[places[0]] = run(problems[places[0]], start=warm_start)
            else:
                alike = [problems[i] for i in places]
                found.update(zip(places, _together(alike, run), strict=True))
    return found[0] if single else [found[i] for i in range(len(problems))]


def _as_start(start: Any, problem: MarginProblem | Sequence[MarginProblem]) -> np.ndarray:
    """Multipliers to start from, with an axis of instances."""
    if not isinstance(problem, MarginProblem):
        raise InvalidInputError(
            "start", "the problem is a list", "Solve them one by one, each from its own start"
        )
    multipliers = as_float64("start", start)
    if multipliers.shape != problem.bounds.shape:
        raise InvalidInputError(
            "start",
            f"the shape is {multipliers.shape}",
            f"Give a multiplier for each constraint: {problem.bounds.shape}",
        )
    return multipliers if problem.instances is not None else multipliers[None]


def _listed(problem: MarginProblem | Sequence[MarginProblem]) -> list[MarginProblem]:
    """The problems as a list."""
    problems = [problem] if isinstance(problem, MarginProblem) else problem
    listed = isinstance(problems, Sequence) and not isinstance(problems, str | bytes)
    if listed and all(isinstance(p, MarginProblem) for p in problems):
        return [*problems]
    raise InvalidInputError(
        "problem",
        f"it is of type {type(problem).__name__}",
        "Give a MarginProblem, or a list of them",
    )


def _alike(problems: list[MarginProblem]) -> list[list[int]]:
    """Places of the problems that fit one batch; one that is a batch or large stays by itself."""
    groups: dict[object, list[int]] = {}
    for i, problem in enumerate(problems):
        shapes = (problem.left.shape, problem.right.shape)
        alone = problem.instances is not None or is_large(problem.bounds.shape[-1])
        groups.setdefault(i if alone else shapes, []).append(i)
    return list(groups.values())


def _together(
    problems: list[MarginProblem], run: Callable[[MarginProblem], Solution]
) -> list[Solution]:
    """Solves problems of one shape as one batch."""
    left, right, bounds, equality, present = (
        np.stack([getattr(p, name) for p in problems]) for name in PER_CONSTRAINT
    )
    together = run(MarginProblem(left, right, bounds, equality, present))
    return [
        Solution(W, x, status, problem, together.geometry, together.certificate[i : i + 1])
        for i, (W, x, status, problem) in enumerate(
            zip(together.W, together.multipliers, together.status, problems, strict=True)
        )
    ]


def _solve(
    problem: MarginProblem,
    *,
    geometry: Geometry,
    methods: tuple[Method, ...],
    own: tuple[Method, ...] | None,
    tolerance: float,
    advance: ProgressBar,
    start: np.ndarray | None = None,
) -> Solution:
    first = () if start is None else (from_working_set(methods),)
    whole = problem.stripped().batched()
    W = np.full((len(whole), *whole.shape), np.nan)
    multipliers = np.zeros(whole.bounds.shape)
    status = np.full(len(whole), Status.STOPPED_EARLY, dtype=object)
    support = np.zeros(whole.bounds.shape, dtype=bool)

    def alone(m: int) -> bool:
        """Whether an instance of so many constraints is solved by itself."""
        return is_large(m) or (own is None and has_few_unknowns(m, whole.shape, geometry))

    def solve_block(block: Places) -> Answers:
        if own is None and is_of_library(geometry):
            return solved(block)
        with seeded(purpose=_OWN):
            return solved(block)

    def solved(block: Places) -> Answers:
        part, place = without_empty_slots(whole, block)
        scaled = ScaledConstraints.of(part)
        with np.errstate(over="ignore"):
            warm_start = None if start is None else np.ldexp(start[place], scaled.shift)
        if alone(part.bounds.shape[-1]):
            answer = solve_large(
                scaled,
                geometry,
                tolerance,
                advance,
                methods,
                first=first,
                own=own,
                start=warm_start,
            )
        else:
            answer = attempt(scaled, geometry, (*first, *methods), tolerance, warm_start)
            advance(len(part))  # large ones report along the way
        *found, certificate, found_status = answer
        return Answers(*scaled.restore(*found), found_status, certificate)

    certificates: list[tuple[np.ndarray, Certificate]] = []

    def put(block: Places, answers: Answers) -> None:
        _, place = without_empty_slots(whole, block)
        W[block], multipliers[place], status[block], certificate = answers
        support[place] = certificate.support
        full = replace(certificate, support=support[block])
        certificates.append((np.arange(len(whole))[block], full))

    blocks, large = _blocks(whole, alone)
    for block in large:
        put(block, solve_block(block))
    shared = memory() if own is None and start is None else None
    if shared is not None:
        blocks, known = shared.split(whole, blocks, geometry.name, tolerance, methods)
        for block, answers in known:
            put(block, answers)
            advance(len(answers.W))
    for block, answers in in_threads(solve_block, blocks):
        put(block, answers)
        if shared is not None:
            shared.keep(whole, block, answers, geometry.name, tolerance, methods)
    if certificates:
        places, parts = zip(*certificates, strict=True)
        certificate = Certificate.concatenated(parts)[np.argsort(np.concatenate(places))]
    else:
        certificate = certify(whole, W, multipliers, geometry)
    one: Any = np.s_[0] if problem.instances is None else np.s_[:]
    return Solution(W[one], multipliers[one], status[one], problem, geometry, certificate)


def _blocks(
    problem: MarginProblem, alone: Callable[[int], bool]
) -> tuple[list[Places], list[Places]]:
    """Blocks of instances with as many constraints to solve together, and large ones, each alone.

    Large ones are solved one after another, for the memory that each takes; those of few unknowns
    make blocks of one.
    """
    blocks: list[Places] = []
    large: list[Places] = []
    for m, instances in alike(problem):
        size = 1 if alone(m) else max(1, _BLOCK_ENTRIES // max(m * m, 1))
        for first in range(0, len(instances), size):
            block = as_places(instances[first : first + size])
            (large if is_large(m) else blocks).append(block)
    return blocks, large
