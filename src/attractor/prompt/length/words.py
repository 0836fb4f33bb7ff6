"""The required length of prompts, in words and in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from attractor.prompt.measures.empirical import Empirical
from attractor.prompt.measures.gaussian import Gaussian
from attractor.records import Rows

if TYPE_CHECKING:
    from attractor.prompt.length.result import PromptLength

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


def tokens_in_words(found: PromptLength) -> str:
    """The law of the tokens."""
    law = found.tokens
    if isinstance(law, Empirical):
        return f"{len(law.points):,} samples of dimension {law.dimension}"
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
    half, most = quantiles(found.required_for_output[:, place])[1:]
    lines.append(
        f"For {wanted} of the whole output, in all directions and relative to that of the affine "
        f"limit, half of the queries need {token_count(half)} tokens, 95 % {token_count(most)}."
    )
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


def _count(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _columns(*lengths: float) -> str:
    cells = (f"{token_count(length)} ({judgment(length)})" for length in lengths)
    return "".join(f"{cell:<30}" for cell in cells).rstrip()


def _typical(values: Float[np.ndarray, "query"], known: np.ndarray) -> float:
    return float(np.median(values[known]))
