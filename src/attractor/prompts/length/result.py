"""The required length of prompts for a head, with its reasons."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import ArrayLike, Float

from attractor.prompts.finite_length.functions import LARGEST_DEVIATION
from attractor.prompts.head import AttentionHead
from attractor.prompts.length.curves import ErrorCurves, LawErrors
from attractor.prompts.length.defect import NonGaussianDefect, Scales, sampled_points
from attractor.prompts.measures.contract import Measure
from attractor.prompts.measures.gaussian import Gaussian
from attractor.results import Plotted, Rows, Summary, finite_or_none

if TYPE_CHECKING:
    import xarray as xr


QUANTILES = (0.05, 0.5, 0.95)
"""Shares of the queries that are reported."""


def token_count(length: float) -> str:
    """A number of tokens, rounded up to two digits, so that it is enough."""
    if np.isinf(length):
        return "over 1e12"
    whole = int(np.ceil(length - 1e-9))
    step = 10 ** max(len(str(whole)) - 2, 0)
    whole = -(-whole // step) * step
    return f"{whole:,}" if whole < 1e6 else f"{whole:.1e}".replace("e+0", "e").replace("e+", "e")


def percent(share: float) -> str:
    """A share as percent; one that is infinite or NaN is not defined."""
    return f"{100 * share:.3g} %" if np.isfinite(share) else "not defined"


def quantiles(values: Float[np.ndarray, "query"]) -> Float[np.ndarray, "3"]:
    """The values up to which ``QUANTILES`` of all lie; infinity and then NaN come last."""
    places = np.ceil(np.array(QUANTILES) * (len(values) - 1)).astype(int)
    return np.sort(values)[places]


def tokens_in_words(law: Measure) -> str:
    """The law of the tokens."""
    points = sampled_points("tokens", law)
    what = type(law).__name__ if points is None else f"{len(points):,} samples"
    return f"{what}, dimension {law.dimension}"


def facts(found: PromptLength) -> Rows:
    """What a result is about, and what makes it so."""
    low, middle, high = quantiles(found.score_deviation)
    lines = [
        ("tokens", tokens_in_words(found.tokens)),
        ("queries", f"{len(found.queries):,}"),
        ("score deviation s", f"median {middle:.3g}, 5 % to 95 %: {low:.3g} to {high:.3g}"),
        ("horizon H", f"{found.horizon:.3g}"),
        ("non-Gaussian defect", _defect(found)),
    ]
    if not high:
        lines.append(("output", "the mean of the values at any length, as scores do not vary"))
    if (found.out_of_reach > 0).any():
        shares, errors = (
            ", ".join(map(percent, one)) for one in (found.out_of_reach, found.errors)
        )
        lines.append(("out of reach", f"{shares} of queries for {errors}"))
    if (errors := found.law_errors) is not None:
        spread = f"exact toward its own limit, for {len(errors.query):,} queries, spread over s"
        refused = f"; {errors.refused:,} more have scores that spread too widely"
        lines.append(("the law itself", spread + (refused if errors.refused else "")))
    return lines


def table(found: PromptLength) -> list[tuple[str, ...]]:
    """The table of a result, its header first: lengths by error, then errors by length."""
    along, output = found.errors_at(found.lengths)
    groups = {
        "along the scores": (found.required, along),
        "of the output": (found.required_for_output, output),
    }
    if (errors := found.law_errors) is not None:
        of_law = errors.length_for(found.errors), errors.errors_at(found.lengths)
        groups["of it, law itself"] = of_law
    rows = [("half / 95 % of queries", *groups)]
    for place, error in enumerate(found.errors):
        cells = (quantiles(lengths[:, place])[1:] for lengths, _ in groups.values())
        rows.append((f"tokens for {percent(error)}", *(_both(map(token_count, c)) for c in cells)))
    for place, length in enumerate(found.lengths):
        cells = (quantiles(errors[:, place])[1:] for _, errors in groups.values())
        rows.append((f"error at {length:,.0f} tokens", *(_both(map(percent, c)) for c in cells)))
    return rows


def _defect(found: PromptLength) -> str:
    """The error that is left however long the prompt is."""
    defect, known = found.defect, found.defect.resolved
    if isinstance(found.tokens, Gaussian):
        return "none, as the law of the tokens is Gaussian"
    if not known.any():
        return f"not known: {defect.held_out:,} held-out tokens are too few for any query"
    along, output = np.median(defect.along[known]), np.median(defect.output[known])
    said = f"{100 * along:+.3g} % along the scores, {percent(output)} of the output"
    if defect.held_out:
        fields = (defect.along_standard_error, defect.output_standard_error)
        noise = _both(percent(np.median(one[known])) for one in fields)
        said += f" (noise {noise}); {int(known.sum()):,} queries resolved"
    return said


def _both(cells: Iterable[str]) -> str:
    return " / ".join(cells)


TITLE = "How long a prompt must be"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PromptLength(Plotted, Summary):
    """How long a prompt must be for a head to act as its affine limit.

    Errors are relative root-mean-square errors over prompts of independent Gaussian tokens with
    mean and covariance of the tokens, exact at every length: *along the scores*
    ``sqrt(E (ghat - s)^2) / s``, and of the *whole output* relative to that of the affine limit,
    ``V m + V Gamma U z``. The error of tokens that are not Gaussian is ``defect``; that of finite
    prompts of them is ``law_errors``.

    Attributes:
        head: The head.
        tokens: The law of the tokens.
        queries: The queries ``z``, ``(m, e)``.
        scales: Score deviations ``s``, the horizon, and the scales of the error.
        errors: The errors wanted, from large to small.
        required: The length for each query and error along the scores; infinite beyond 1e12.
        required_for_output: The same for the whole output.
        lengths: The lengths requested.
        defect: The error that is left however long the prompt is.
        curves: The averages over prompts at every length, of the queries below 32.
        law_errors: Exact errors over prompts of the law itself, of some of the queries; None where
            it is Gaussian, known by samples alone, or has no formula.
    """

    _plots = "attractor.prompts.plots"

    head: AttentionHead
    tokens: Measure
    queries: Float[np.ndarray, "query e"]
    scales: Scales
    errors: Float[np.ndarray, "wanted"]
    required: Float[np.ndarray, "query wanted"]
    required_for_output: Float[np.ndarray, "query wanted"]
    lengths: Float[np.ndarray, "length"]
    defect: NonGaussianDefect
    curves: ErrorCurves
    law_errors: LawErrors | None

    @property
    def score_deviation(self) -> Float[np.ndarray, "query"]:
        """Standard deviation ``s`` of the scores of each query."""
        return self.scales.deviation

    @property
    def horizon(self) -> float:
        """``||Gamma^(1/2) U Gamma_z^(1/2)||`` in the operator norm."""
        return self.scales.horizon

    @property
    def out_of_reach(self) -> Float[np.ndarray, "wanted"]:
        """Share of the queries that no length brings to an error, as the tokens' law has more.

        Of the queries that the tokens resolve: those with ``|defect.along|`` beyond the error by
        two standard errors.
        """
        known = self.defect.resolved
        surely = np.abs(self.defect.along) - 2 * self.defect.along_standard_error
        if not known.any():
            return np.full(len(self.errors), np.nan)
        return (surely[known, None] > self.errors).mean(0)

    def errors_at(
        self, lengths: Float[ArrayLike, "length"]
    ) -> tuple[Float[np.ndarray, "query length"], Float[np.ndarray, "query length"]]:
        """The errors of each query at lengths up to 1e12: along the scores, of the whole output.

        They are NaN for deviations beyond 32, and infinite beside an output of zero.

        Raises:
            InvalidInputError: If a length is outside.
        """
        small = self.score_deviation <= LARGEST_DEVIATION
        s, A, B, output = (column[small, None] for column in self.scales[:4])
        square, weights = self.curves.at(lengths)
        along, of_output = np.full((2, len(small), square.shape[1]), np.nan)
        with np.errstate(divide="ignore"):
            along[small] = np.sqrt(square) / s
            of_output[small] = np.sqrt(A * square + B * weights) / output
        return along, of_output

    def to_xarray(self) -> xr.Dataset:
        """Everything as labeled arrays: by query, and quantiles over queries along lengths."""
        needed = quantiles(self.required[:, -1])[2]
        most = np.clip(3 * needed, 1e5, 1e9) if np.isfinite(needed) else 1e9
        lengths = np.geomspace(1, max(most, self.lengths.max(initial=1)), 121)
        along, output = self.errors_at(lengths)
        data: dict[str, Any] = {
            "z": (("query", "coordinate"), self.queries),
            "score_deviation": ("query", self.score_deviation),
            "required_length": (("query", "wanted"), self.required),
            "required_length_for_output": (("query", "wanted"), self.required_for_output),
            "error": (("quantile", "length"), _over_queries(along)),
            "output_error": (("quantile", "length"), _over_queries(output)),
            "horizon": self.horizon,
        }
        if (errors := self.law_errors) is not None:
            exact = _over_queries(errors.errors_at(lengths))
            data["law_output_error"] = ("quantile", "length"), exact
            data["law_query"] = "chosen", errors.query
            data["law_required_length"] = ("chosen", "wanted"), errors.length_for(self.errors)
        coordinates = {"wanted": self.errors, "length": lengths, "quantile": list(QUANTILES)}
        return xr.Dataset(data, coordinates, {"tokens": tokens_in_words(self.tokens)})

    def summary(self) -> dict[str, Any]:
        """The numbers as plain values of JSON; those infinite, beyond 1e12 tokens, are None."""
        defect, known, law = self.defect, self.defect.resolved, self.law_errors
        along, output = self.errors_at(self.lengths)
        lengths = {"tokens": self.required, "tokens_for_output": self.required_for_output}
        required = _rows("error", self.errors, lengths)
        for row, share in zip(required, self.out_of_reach, strict=True):
            row["out_of_reach"] = finite_or_none(share)
        return {
            "tokens": tokens_in_words(self.tokens),
            "queries": len(self.queries),
            "horizon": self.horizon,
            "score_deviation": _shares(self.score_deviation),
            "required": required,
            "at": _rows("length", self.lengths, {"error": along, "output_error": output}),
            "non_gaussian_defect": {
                "along": _middle(defect.along[known]),
                "along_standard_error": _middle(defect.along_standard_error[known]),
                "of_output": _middle(defect.output[known]),
                "of_output_standard_error": _middle(defect.output_standard_error[known]),
                "held_out": defect.held_out,
                "resolved_queries": int(known.sum()),
            },
            "law_itself": law
            and {
                "queries": law.query.tolist(),
                "refused": law.refused,
                "required": _rows("error", self.errors, {"tokens": law.length_for(self.errors)}),
                "at": _rows("length", self.lengths, {"error": law.errors_at(self.lengths)}),
            },
        }

    def _picture(self) -> tuple[str, xr.Dataset]:
        return "error_by_length_figure", self.to_xarray()

    def _summary(self) -> tuple[str, Rows]:
        lines = table(self)
        widths = [max(map(len, column)) + 2 for column in zip(*lines, strict=True)]
        rows = [
            (name, "".join(map(str.ljust, cells, widths[1:])).rstrip()) for name, *cells in lines
        ]
        return TITLE, [*facts(self), *rows]


def _over_queries(values: Float[np.ndarray, "query length"]) -> Float[np.ndarray, "3 length"]:
    return np.stack([quantiles(column) for column in values.T], axis=-1)


def _shares(values: Float[np.ndarray, "query"]) -> dict[str, float | None]:
    shares = zip(QUANTILES, quantiles(values), strict=True)
    return {f"{share:g}": finite_or_none(value) for share, value in shares}


def _rows(
    name: str,
    labels: Float[np.ndarray, "label"],
    columns: dict[str, Float[np.ndarray, "query label"]],
) -> list[dict[str, Any]]:
    """An object for each error, or each length, with shares of the queries."""
    return [
        {name: float(label), **{key: _shares(one[:, place]) for key, one in columns.items()}}
        for place, label in enumerate(labels)
    ]


def _middle(values: Float[np.ndarray, "query"]) -> float | None:
    return finite_or_none(np.median(values)) if values.size else None
