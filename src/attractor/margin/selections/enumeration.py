"""Every selection of a small data set, or a list of them, tested for local optimality."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.geometry import Frobenius, Geometry, get_geometry
from attractor.margin._solve import solve
from attractor.margin.problem import MarginProblem, check_one_data_set
from attractor.margin.selection import Selection, token_scores
from attractor.margin.selections.local_optimality import score_advantage, worst_advantage
from attractor.margin.solution import Solution
from attractor.results import Rows, Summary
from attractor.results.labeled import labeled
from attractor.support.checks import check_count, check_kinds
from attractor.support.errors import DuplicateTokensWarning, InvalidInputError, Status
from attractor.support.progress import progress_bar
from attractor.tokens import Tokens

if TYPE_CHECKING:
    import xarray as xr

_LISTED = 10
"""Locally optimal selections that a table lists before it counts the rest."""


@dataclass(frozen=True, eq=False, repr=False)
class SelectionCensus(Summary):
    """Which selections of a data set are locally optimal, and the evidence.

    Attributes:
        selections: The selections tested, with a leading axis.
        feasible: True where a solution of the margin problem was found.
        locally_optimal: True where every support token scores strictly below the selected one.
        worst_advantage: Smallest score advantage over a support token; infinite without support
            tokens, NaN where no solution was found.
        worst_token: (sequence, query, token) of that support token; -1 where there is none.
        support_tokens: Mask of the support tokens of each solution.
        norms: Norm of each solution; NaN where there is none.
        gaps: Relative duality gap of each solution; infinite where there is none.
        statuses: Status of each margin problem.
        geometry: The norm.
    """

    selections: Selection
    feasible: Bool[np.ndarray, "selection"]
    locally_optimal: Bool[np.ndarray, "selection"]
    worst_advantage: Float[np.ndarray, "selection"]
    worst_token: Int[np.ndarray, "selection 3"]
    support_tokens: Bool[np.ndarray, "selection sequence query token"]
    norms: Float[np.ndarray, "selection"]
    gaps: Float[np.ndarray, "selection"]
    statuses: Any
    geometry: Geometry

    @property
    def locally_optimal_selections(self) -> Selection:
        """The locally optimal selections alone, in the order tested."""
        return self.selections[self.locally_optimal]

    def __len__(self) -> int:
        """Number of selections tested."""
        return len(self.feasible)

    def to_xarray(self) -> xr.Dataset:
        """Everything as labeled arrays."""
        per_selection = "feasible locally_optimal worst_advantage norms gaps".split()
        data: dict[str, Any] = {name: ("selection", getattr(self, name)) for name in per_selection}
        data["worst_token"] = (("selection", "position"), self.worst_token)
        data["statuses"] = ("selection", [str(status) for status in self.statuses])
        rows = ("selection", "sequence", "query", "token")
        data["selected"] = (rows, self.selections.mask)
        coordinates = {"position": ["sequence", "query", "token"]}
        return labeled(data, coordinates, {"geometry": self.geometry.name})

    def _summary(self) -> tuple[str, Rows]:
        settled = (Status.OPTIMAL, Status.INFEASIBLE)
        undecided = sum(status not in settled for status in self.statuses)
        rows = [
            ("geometry", self.geometry.name),
            ("feasible", str(int(self.feasible.sum()))),
            ("locally optimal", str(int(self.locally_optimal.sum()))),
        ]
        if undecided:
            rows.insert(1, ("not certified", str(undecided)))
        if self.feasible.any():
            rows.append(("relative gap", f"worst {self.gaps[self.feasible].max():.1e}"))
        found = np.flatnonzero(self.locally_optimal)
        for number in found[:_LISTED]:
            rows.append((_name(self.selections.mask[number]), f"norm {self.norms[number]:.6g}"))
        if len(found) > _LISTED:
            rows.append(("...", f"and {len(found) - _LISTED} more"))
        return f"Local optimality of {len(self)} selections", rows


def _name(mask: Bool[np.ndarray, "sequence query token"]) -> str:
    """The tokens selected, sequence by sequence; several in one row are joined by +."""
    rows = [
        "+".join(str(t) for t in np.flatnonzero(row)) for row in mask.reshape(-1, mask.shape[-1])
    ]
    text = ",".join(rows)
    return text if len(text) <= 40 else text[:37] + "..."


_BLOCK_ENTRIES = 2**22
"""Entries of the constraints of the selections built at a time: some 100 MB with all copies."""


def enumerate_selections(tokens: Tokens, *, most: int = 100_000) -> Selection:
    """Every combination of one admissible token a row.

    Args:
        tokens: A single data set.
        most: Largest number of selections to return.

    Returns:
        A Selection with a leading axis; the token of the last row changes fastest.

    Raises:
        InvalidInputError: If there are more selections than that, or the tokens have an axis of
            instances.
    """
    check_kinds(tokens=(tokens, Tokens))
    most = check_count("most", most)
    check_one_data_set(tokens)
    rows = tokens.mask.reshape(-1, tokens.length)
    admissible = [np.flatnonzero(row) for row in rows]
    counts = tuple(len(choices) for choices in admissible)
    total = math.prod(counts)
    if total > most:
        raise InvalidInputError(
            "tokens",
            f"they have {total:,} selections, more than {most:,}",
            "Raise most=, or test a list of selections of your own",
        )
    numbers = np.unravel_index(np.arange(total), counts)
    chosen = [choices[number] for choices, number in zip(admissible, numbers, strict=True)]
    index = np.stack(chosen, axis=-1).reshape(total, *tokens.mask.shape[:-1])
    mask = index[..., None] == np.arange(tokens.length)
    return Selection(mask, np.zeros(index.shape, dtype=bool))


def locally_optimal_selections(
    tokens: Tokens,
    head: Callable[[Any], Any],
    geometry: Geometry | str = Frobenius(),  # noqa: B008 - immutable
    *,
    selections: Selection | None = None,
    most: int = 100_000,
    tolerance: float = 1e-9,
    progress: bool = False,
) -> SelectionCensus:
    """Tests which selections are feasible and locally optimal: where training can end.

    The margin problems of all selections are solved as one batch; a selection listed twice is
    solved once. Which tokens stand at the margin depends on the norm, and so does which
    selections are locally optimal (*Transformers as Support Vector Machines*, definition of
    locally optimal directions; for mirror descent the same in the l_p norm).

    Args:
        tokens: A single data set, with labels.
        head: Maps outputs to predictions.
        geometry: The norm, or its name.
        selections: Selections to test, with a leading axis; every one there is if None.
        most: Largest number of selections to test where every one is.
        tolerance: Relative duality gap to solve to.
        progress: Whether to show a progress bar.

    Raises:
        InvalidInputError: If the tokens have an axis of instances, carry no labels, have too many
            selections to test all, or the selections do not fit them.

    Example:
        >>> import attractor as at
        >>> keys = [[[1, 0], [0, 1]], [[-1, 1], [0, -2]]]
        >>> tokens = at.Tokens(keys, queries=[[1, 0], [0, 1]], labels=[1, -1])
        >>> head = at.LinearHead([1, 0])
        >>> census = at.locally_optimal_selections(tokens, head)
        >>> census
        Local optimality of 4 selections
          geometry         frobenius
          feasible         4
          locally optimal  1
          relative gap     worst 8.1e-14
          0,0              norm 0.774597
    """
    check_kinds(tokens=(tokens, Tokens), selections=(selections, Selection | None))
    check_one_data_set(tokens)
    geometry = get_geometry(geometry)
    scores = token_scores(tokens, head)
    if selections is None:
        selections = enumerate_selections(tokens, most=most)
    masks = _checked(selections.mask, tokens)
    flat, copies = np.unique(masks.reshape(len(masks), -1), axis=0, return_inverse=True)
    distinct = flat.reshape(-1, *masks.shape[1:])
    blocks: list[dict[str, np.ndarray]] = []
    entries = tokens.mask.sum() * (tokens.key_dimension + tokens.query_dimension)
    size = max(1, _BLOCK_ENTRIES // int(entries))
    with progress_bar("Testing selections", len(distinct), enabled=progress) as advance:
        for start in range(0, len(distinct), size):
            masks = distinct[start : start + size]
            solution = _solve_block(tokens, masks, geometry, tolerance)
            blocks.append(_findings(solution, score_advantage(scores, masks)))
            advance(len(solution))
    copies = copies.ravel()
    found = {name: np.concatenate([b[name] for b in blocks])[copies] for name in blocks[0]}
    if selections.mask.ndim == 3:
        selections = Selection(selections.mask[None], selections.tied[None])
    return SelectionCensus(selections=selections, geometry=geometry, **found)


def _findings(solution: Solution, advantage: np.ndarray) -> dict[str, np.ndarray]:
    """What a census says of the selections of one block, by the names it has there."""
    support = solution.support_tokens
    solved = np.isfinite(solution.value)
    worst = np.where(solved, worst_advantage(advantage, support), np.nan)
    at_support = np.where(support, advantage, np.inf).reshape(len(solution), -1)
    places = np.unravel_index(at_support.argmin(-1), support.shape[1:])
    return {
        "feasible": solved,
        "locally_optimal": solved & (worst > 0),
        "worst_advantage": worst,
        "worst_token": np.where(np.isfinite(worst)[:, None], np.stack(places, axis=-1), -1),
        "support_tokens": support,
        "norms": solution.norm,
        "gaps": solution.gap,
        "statuses": solution.status,
    }


def _solve_block(
    tokens: Tokens,
    masks: Bool[np.ndarray, "selection sequence query token"],
    geometry: Geometry,
    tolerance: float,
) -> Solution:
    """Solutions of the margin problems of several selections of one data set."""
    count = len(masks)
    repeated = Tokens(
        *(np.broadcast_to(a, (count, *a.shape)) for a in (tokens.keys, tokens.queries)),
        mask=np.broadcast_to(tokens.mask, (count, *tokens.mask.shape)),
    )
    with warnings.catch_warnings():  # copies of tokens are found infeasible, which is the answer
        warnings.simplefilter("ignore", DuplicateTokensWarning)
        problem = MarginProblem.from_selection(
            repeated, Selection(masks, masks.sum(-1) > 1), ties="equal"
        )
    return solve(problem, geometry, tolerance=tolerance)


def _checked(
    masks: Bool[np.ndarray, "*selection sequence query token"], tokens: Tokens
) -> Bool[np.ndarray, "selection sequence query token"]:
    """Masks of selections with their leading axis."""
    if masks.ndim not in (3, 4) or masks.shape[-3:] != tokens.mask.shape or not len(masks):
        raise InvalidInputError(
            "selections",
            f"their mask has shape {masks.shape}",
            f"Give (selections, {', '.join(map(str, tokens.mask.shape))}), one or more",
        )
    return masks.reshape(-1, *tokens.mask.shape)
