"""The required length of prompts for a head, with its reasons."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.prompts.finite_length.functions import LARGEST_DEVIATION
from attractor.prompts.head import AttentionHead
from attractor.prompts.length import words
from attractor.prompts.length.curves import ErrorCurves
from attractor.prompts.length.defect import NonGaussianDefect
from attractor.prompts.length.law_errors import LawErrors
from attractor.prompts.length.scales import Scales
from attractor.prompts.measures.contract import Measure
from attractor.results import Plotted, Rows, Summary, finite_or_none

if TYPE_CHECKING:
    import xarray as xr

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
        import xarray as xr

        needed = words.quantiles(self.required[:, -1])[2]
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
        coordinates = {"wanted": self.errors, "length": lengths, "quantile": list(words.QUANTILES)}
        return xr.Dataset(data, coordinates, {"tokens": words.tokens_in_words(self.tokens)})

    def summary(self) -> dict[str, Any]:
        """The numbers as plain values of JSON; those infinite, beyond 1e12 tokens, are None."""
        defect, known, law = self.defect, self.defect.resolved, self.law_errors
        along, output = self.errors_at(self.lengths)
        lengths = {"tokens": self.required, "tokens_for_output": self.required_for_output}
        required = _rows("error", self.errors, lengths)
        for row, share in zip(required, self.out_of_reach, strict=True):
            row["out_of_reach"] = finite_or_none(share)
        return {
            "tokens": words.tokens_in_words(self.tokens),
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
        lines = words.table(self)
        widths = [max(map(len, column)) + 2 for column in zip(*lines, strict=True)]
        rows = [
            (name, "".join(map(str.ljust, cells, widths[1:])).rstrip()) for name, *cells in lines
        ]
        return TITLE, [*words.facts(self), *rows]


def _over_queries(values: Float[np.ndarray, "query length"]) -> Float[np.ndarray, "3 length"]:
    return np.stack([words.quantiles(column) for column in values.T], axis=-1)


def _shares(values: Float[np.ndarray, "query"]) -> dict[str, float | None]:
    shares = zip(words.QUANTILES, words.quantiles(values), strict=True)
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
