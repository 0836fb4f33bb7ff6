"""The required length of prompts for a head, with its reasons."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.prompt.finite_length import error_exponent
from attractor.prompt.finite_length.functions import LARGEST_DEVIATION
from attractor.prompt.head import AttentionHead
from attractor.prompt.length.curves import ErrorCurves
from attractor.prompt.length.defect import NonGaussianDefect
from attractor.prompt.length.scales import Scales
from attractor.prompt.length.words import rows, tokens_in_words
from attractor.prompt.measures.contract import Measure
from attractor.records import Rows, Summary

if TYPE_CHECKING:
    import xarray as xr

_TITLE = "How long a prompt must be"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PromptLength(Summary):
    """How long a prompt must be for a head to act as its affine limit.

    Errors are relative root-mean-square errors over prompts of independent Gaussian tokens with
    mean and covariance of the tokens, exact at every length: *along the scores*
    ``sqrt(E (ghat - s)^2) / s``, and of the *whole output* relative to that of the affine limit,
    ``V m + V Gamma U z``. The error of tokens that are not Gaussian is ``defect``.

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
    """

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

    @property
    def score_deviation(self) -> Float[np.ndarray, "query"]:
        """Standard deviation ``s`` of the scores of each query."""
        return self.scales.deviation

    @property
    def horizon(self) -> float:
        """``||Gamma^(1/2) U Gamma_z^(1/2)||`` in the operator norm."""
        return self.scales.horizon

    @property
    def exponent(self) -> float:
        """Exponent of the squared error averaged over Gaussian queries: see ``error_exponent``."""
        return float(error_exponent(self.horizon))

    @cached_property
    def error(self) -> Float[np.ndarray, "query length"]:
        """The error along the scores of each query at each length, as ``errors_at`` says."""
        return self.errors_at(self.lengths)[0]

    @cached_property
    def output_error(self) -> Float[np.ndarray, "query length"]:
        """The error of the whole output likewise."""
        return self.errors_at(self.lengths)[1]

    @cached_property
    def effective_sample_size(self) -> Float[np.ndarray, "query length"]:
        """``1 / E sum_l p_l^2`` likewise."""
        size = np.full(self.error.shape, np.nan)
        size[self.score_deviation <= LARGEST_DEVIATION] = 1 / self.curves.at(self.lengths)[1]
        return size

    @property
    def freezing_length(self) -> Float[np.ndarray, "query"]:
        """``exp(s^2 / 2)`` of each query: below it few tokens hold all attention."""
        with np.errstate(over="ignore"):
            return np.exp(self.score_deviation**2 / 2)

    @property
    def worst(self) -> tuple[int, ...]:
        """For each error the query that needs most tokens; of equal ones that of largest s."""
        order = (np.lexsort((self.score_deviation, column)) for column in self.required.T)
        return tuple(int(each[-1]) for each in order)

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
        """Everything as labeled arrays."""
        import xarray as xr

        per_query = {
            "score_deviation": self.score_deviation,
            "freezing_length": self.freezing_length,
            "defect_along": self.defect.along,
            "defect_along_standard_error": self.defect.along_standard_error,
            "defect_of_output": self.defect.output,
            "defect_of_output_standard_error": self.defect.output_standard_error,
            "defect_effective_sample_size": self.defect.effective_sample_size,
            "defect_resolved": self.defect.resolved,
        }
        data = {
            **{name: ("query", values) for name, values in per_query.items()},
            "z": (("query", "coordinate"), self.queries),
            "required_length": (("query", "wanted"), self.required),
            "required_length_for_output": (("query", "wanted"), self.required_for_output),
            "error": (("query", "length"), self.error),
            "output_error": (("query", "length"), self.output_error),
            "effective_sample_size": (("query", "length"), self.effective_sample_size),
            "horizon": self.horizon,
            "exponent": self.exponent,
        }
        coordinates = {"wanted": self.errors, "length": self.lengths}
        return xr.Dataset(data, coordinates, attrs={"tokens": tokens_in_words(self)})

    def _summary(self) -> tuple[str, Rows]:
        return _TITLE, rows(self)
