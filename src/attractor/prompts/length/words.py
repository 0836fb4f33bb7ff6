"""What is said of how long a prompt must be: facts, and one table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from attractor.prompts.length.moments import sampled_points
from attractor.prompts.measures.contract import Measure
from attractor.prompts.measures.gaussian import Gaussian
from attractor.results import Rows

if TYPE_CHECKING:
    from attractor.prompts.length.result import PromptLength

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
