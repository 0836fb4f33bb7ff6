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
from attractor.prompt.length.law_errors import LawErrors
from attractor.prompt.length.rows import ScoreRows
from attractor.prompt.length.scales import Scales
from attractor.prompt.measures.contract import Convolution, Measure, Pushforward
from attractor.prompt.measures.empirical import Empirical
from attractor.prompt.measures.gaussian import Gaussian
from attractor.prompt.measures.mixture import Mixture
from attractor.prompt.measures.products import Product
from attractor.records import Plotted, Rows, Summary

if TYPE_CHECKING:
    import xarray as xr

_TITLE = "How long a prompt must be"

QUANTILES = (0.05, 0.5, 0.95)
"""Shares of the queries that are reported."""

LEVELS = ((1e3, "short"), (1e4, "long"), (1e5, "very long"))
"""The most tokens of a prompt, and the words for it."""
NEVER = "never in practice"
"""The words for more tokens."""


def judgment(length: float) -> str:
    """A length in words, such as "very long"."""
    return next((words for most, words in LEVELS if length <= most), NEVER)


def token_count(length: float | None) -> str:
    """A number of tokens, rounded up to two digits, so that it is enough; None is infinite."""
    if length is None or np.isinf(length):
        return "over 1e12"
    whole = int(np.ceil(length - 1e-9))
    step = 10 ** max(len(str(whole)) - 2, 0)
    whole = -(-whole // step) * step
    return f"{whole:,}" if whole < 1e6 else f"{whole:.1e}".replace("e+0", "e").replace("e+", "e")


def percent(share: float | None) -> str:
    """A share as percent; one that is infinite, NaN or None is not defined."""
    return "not defined" if share is None or not np.isfinite(share) else f"{100 * share:.3g} %"


def quantiles(values: Float[np.ndarray, "query"]) -> Float[np.ndarray, "3"]:
    """The values up to which ``QUANTILES`` of all lie; infinity and then NaN come last."""
    places = np.ceil(np.array(QUANTILES) * (len(values) - 1)).astype(int)
    return np.sort(values)[places]


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
        rows: Scores of queries against one prompt, and at which temperature these concentrate.
        law_errors: Exact errors over prompts of the law itself, of some of the queries; None where
            it is Gaussian, known by samples alone, or has no formula.
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
    rows: ScoreRows
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
            "row_query": ("row", self.rows.query),
            "row_rate": ("row", self.rows.concentration.rate),
            "row_top_probability": ("row", self.rows.top_probability),
            "required_length": (("query", "wanted"), self.required),
            "required_length_for_output": (("query", "wanted"), self.required_for_output),
            "error": (("query", "length"), self.error),
            "output_error": (("query", "length"), self.output_error),
            "effective_sample_size": (("query", "length"), self.effective_sample_size),
            "horizon": self.horizon,
            "exponent": self.exponent,
        }
        if self.law_errors is not None:
            chosen, errors = ("chosen", self.law_errors.query), self.law_errors
            data |= {
                "law_query": chosen,
                "law_error": (("chosen", "length"), errors.errors_at(self.lengths)),
                "law_required_length": (("chosen", "wanted"), errors.length_for(self.errors)),
            }
        coordinates = {"wanted": self.errors, "length": self.lengths}
        return xr.Dataset(data, coordinates, attrs={"tokens": tokens_in_words(self)})

    def _picture(self) -> tuple[str, xr.Dataset]:
        from attractor.prompt.length.diagrams import error_quantiles, lengths_to_draw

        return "error_by_length_figure", error_quantiles(self, lengths_to_draw(self))

    def _summary(self) -> tuple[str, Rows]:
        return _TITLE, rows(self)


def tokens_in_words(found: PromptLength) -> str:
    """The law of the tokens."""
    return _in_words(found.tokens)


def _in_words(law: Measure) -> str:
    match law:
        case Empirical():
            what = "samples" if law.weights is None else "points with weights"
            return f"{len(law.points):,} {what} of dimension {law.dimension}"
        case Mixture():
            return f"mixture of {len(law.components)} laws of dimension {law.dimension}"
        case Product():
            return f"independent coordinates, dimension {law.dimension}"
        case Convolution():
            return f"{_in_words(law.first)}, with {type(law.second).__name__} noise"
        case Pushforward():
            return f"image of {_in_words(law.source)}"
    return f"{type(law).__name__}, dimension {law.dimension}"


def rows(found: PromptLength) -> Rows:
    """The table of a result."""
    low, middle, high = quantiles(found.score_deviation)
    table = [
        ("tokens", tokens_in_words(found)),
        ("queries", f"{len(found.queries):,}"),
        ("score deviation s", f"median {middle:.3g}, 5 % to 95 %: {low:.3g} to {high:.3g}"),
        ("horizon H", f"{found.horizon:.3g}; over queries the squared error averages to about "
                      f"L^-{found.exponent:.3g}"),
    ]  # fmt: skip
    low, middle, high = quantiles(found.rows.concentration.rate)
    table.append(
        (
            "rate of scores Lambda",
            f"median {middle:.3g}, 5 % to 95 %: {low:.3g} to {high:.3g}, over "
            f"{found.rows.tokens:,} tokens",
        )
    )
    for place, length in enumerate(found.lengths):
        error, size = (
            quantiles(v[:, place])[1] for v in (found.error, found.effective_sample_size)
        )
        value = f"error {percent(error)}, effective sample size {_count(size)} (median query)"
        table.append((f"at {length:,.0f} tokens", value))
    columns = ("half of the queries", "95 % of them", "the worst one")
    table.append(("tokens needed", "".join(f"{name:<30}" for name in columns).rstrip()))
    for place, wanted in enumerate(found.errors):
        worst = found.worst[place]
        half, most = quantiles(found.required[:, place])[1:]
        cells = _columns(half, most, found.required[worst, place])
        table.append(
            (f"  {percent(wanted)} error", f"{cells}, s = {found.score_deviation[worst]:.3g}")
        )
    for place, wanted in enumerate(found.errors):
        lengths = quantiles(found.required_for_output[:, place])[1:]
        table.append((f"  {percent(wanted)} of output", _columns(*lengths)))
    if found.law_errors is not None:
        required = found.law_errors.length_for(found.errors)
        table.append(("of the law itself", f"exact, for {len(required):,} of the queries"))
        for wanted, lengths in zip(found.errors, required.T, strict=True):
            cells = _columns(*quantiles(lengths)[1:])
            table.append((f"  {percent(wanted)} of its output", cells))
    table.append(("non-Gaussian defect", defect_in_words(found)))
    for wanted, share in zip(found.errors, found.out_of_reach, strict=True):
        if share > 0.05:
            value = f"by no prompt, for {percent(share)} of the queries resolved"
            table.append((f"{percent(wanted)} is reached", value))
    return table


def defect_in_words(found: PromptLength) -> str:
    """The error that is left however long the prompt is, in words."""
    defect = found.defect
    if isinstance(found.tokens, Gaussian):
        return "none: the law of the tokens is Gaussian"
    known = defect.resolved
    if not known.any():
        return f"not known: {defect.held_out:,} held-out tokens are too few for any query"
    output = _typical(defect.output, known)
    scores = f"{100 * _typical(defect.along, known):+.3g} % along the scores"
    if not defect.held_out:
        return f"{scores}, {percent(output)} of the output"
    scores += f" (standard error {percent(_typical(defect.along_standard_error, known))})"
    noise = percent(_typical(defect.output_standard_error, known))
    whole = f"{percent(output)} of the output (noise {noise})"
    if output == 0:
        whole = f"of the output less than the noise of {noise}"
    return f"{scores}, {whole}; {int(known.sum()):,} queries resolved"


def sentences(found: PromptLength, error: float) -> list[str]:
    """The findings, in a sentence each, the answer first.

    Args:
        found: The result.
        error: One of its errors.
    """
    place = int(np.argmin(np.abs(found.errors - error)))
    half, most = quantiles(found.required[:, place])[1:]
    worst = found.worst[place]
    longest, s = found.required[worst, place], found.score_deviation[worst]
    low, middle, high = quantiles(found.score_deviation)
    wanted = percent(found.errors[place])
    lines = [
        f"For an error of {wanted} along the scores half of the queries need a prompt of "
        f"{token_count(half)} tokens ({judgment(half)}), 95 % of them one of {token_count(most)} "
        f"({judgment(most)}). The worst query, whose scores have the standard deviation {s:.3g}, "
        f"needs {token_count(longest)} ({judgment(longest)}).",
        f"The scores of half of the queries have a standard deviation of at most {middle:.3g}, and "
        f"those of 90 % one between {low:.3g} and {high:.3g}. The horizon is {found.horizon:.3g}: "
        "averaged over Gaussian queries the squared error falls in the end about like "
        f"L^-{found.exponent:.3g}.",
    ]
    if not found.score_deviation.any():
        lines = [
            "The scores do not vary: whatever the query and however long the prompt, the output is "
            "the mean of the values, and there is no error along the scores to speak of."
        ]
    elif s < middle:
        lines[0] += (
            " Its scores hardly vary: the error is large only beside an output along them that is "
            "small itself."
        )
    if found.score_deviation.any():
        lines.append(_on_rows(found))
    half, most = quantiles(found.required_for_output[:, place])[1:]
    lines.append(
        f"For {wanted} of the whole output, in all directions and relative to that of the affine "
        f"limit, half of the queries need {token_count(half)} tokens, 95 % {token_count(most)}."
    )
    if found.law_errors is not None:
        lines.append(_of_law(found, found.law_errors, place))
    if isinstance(found.tokens, Gaussian):
        lines.append("The law of the tokens is Gaussian, so that no other error is added.")
        return lines
    lines.append(f"What is left however long the prompt is: {defect_in_words(found)}.")
    share = found.out_of_reach[place]
    if share > 0.05:
        lines.append(
            f"For {percent(share)} of the queries that the tokens resolve no prompt is long enough "
            f"for {wanted}: the tokens are not Gaussian, and the limit itself is not affine."
        )
    return lines


def _of_law(found: PromptLength, errors: LawErrors, place: int) -> str:
    """What prompts of the law itself need, in a paragraph."""
    half, most = quantiles(errors.length_for(found.errors[place])[:, 0])[1:]
    moments = quantiles(found.required_for_output[errors.query, place])[1:]
    words = (
        "The lengths above are those of Gaussian tokens of the same moments. Over prompts of the "
        f"law itself, exactly, {percent(found.errors[place])} of the output over infinitely many "
        f"of its own tokens takes {token_count(half)} tokens for half of the queries, "
        f"{token_count(most)} for 95 %; by the moments these queries would need "
        f"{token_count(moments[0])} and {token_count(moments[1])}. They are {len(errors.query):,} "
        "of the queries, spread evenly over all score deviations"
    )
    if errors.refused:
        words += f", less {errors.refused:,} whose scores spread too widely"
    return words + "."


def _on_rows(found: PromptLength) -> str:
    """What rows of scores say of attention, in a paragraph."""
    rows = found.rows
    low, middle, high = quantiles(rows.concentration.rate)
    prompt = f"{rows.tokens:,} {'drawn' if rows.drawn else 'sampled'} tokens"
    words = (
        f"Over {prompt} the top token has {percent(quantiles(rows.top_probability)[1])} of the "
        "attention for half of the queries. "
    )
    if np.isinf(middle):
        return words + "Other tokens tie with it: attention never concentrates on one of them."
    at_least = quantiles(rows.concentration.top_probability_bound())[1]
    return words + (
        f"Their scores have the rate Lambda = {middle:.3g} (5 % to 95 %: {low:.3g} to {high:.3g}): "
        "at r times that inverse temperature the top token has 1 / sum_k k^-r at least, above "
        f"1 - 1 / r. As the head is, at temperature 1, that is {percent(at_least)}; half of all "
        f"attention is certain with scores {2 * middle:.3g} times as large."
    )


def _count(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _columns(*lengths: float) -> str:
    cells = (f"{token_count(length)} ({judgment(length)})" for length in lengths)
    return "".join(f"{cell:<30}" for cell in cells).rstrip()


def _typical(values: Float[np.ndarray, "query"], known: np.ndarray) -> float:
    return float(np.median(values[known]))
