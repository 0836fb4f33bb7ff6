"""A result as plain values of JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.prompt.length.result import (
    QUANTILES,
    PromptLength,
    judgment,
    quantiles,
    sentences,
    tokens_in_words,
)
from attractor.records import finite_or_none


def summary(found: PromptLength, error: float) -> dict[str, Any]:
    """The numbers of a result; those that are infinite, beyond 1e12 tokens, are None.

    Args:
        found: The result.
        error: The error that sentences are about, one of its errors.
    """
    defect, known = found.defect, found.defect.resolved
    return {
        "tokens": tokens_in_words(found),
        "queries": len(found.queries),
        "horizon": found.horizon,
        "exponent": found.exponent,
        "score_deviation": _shares(found.score_deviation),
        "freezing_length": _shares(found.freezing_length),
        "required": [_required(found, place) for place in range(len(found.errors))],
        "at": [_at(found, place) for place in range(len(found.lengths))],
        "non_gaussian_defect": {
            "along": _middle(defect.along[known]),
            "along_standard_error": _middle(defect.along_standard_error[known]),
            "of_output": _middle(defect.output[known]),
            "of_output_standard_error": _middle(defect.output_standard_error[known]),
            "held_out": defect.held_out,
            "resolved_queries": int(known.sum()),
        },
        "rows": _rows(found),
        "law_itself": _law_itself(found),
        "findings": sentences(found, error),
    }


def _required(found: PromptLength, place: int) -> dict[str, Any]:
    worst = found.worst[place]
    half, most = quantiles(found.required[:, place])[1:]
    return {
        "error": float(found.errors[place]),
        "tokens": _shares(found.required[:, place]),
        "tokens_of_worst": finite_or_none(found.required[worst, place]),
        "score_deviation_of_worst": float(found.score_deviation[worst]),
        "judgment": {"0.5": judgment(half), "0.95": judgment(most)},
        "tokens_for_output": _shares(found.required_for_output[:, place]),
        "out_of_reach": finite_or_none(found.out_of_reach[place]),
    }


def _law_itself(found: PromptLength) -> dict[str, Any] | None:
    errors = found.law_errors
    if errors is None:
        return None
    required, at = errors.length_for(found.errors), errors.errors_at(found.lengths)
    return {
        "queries": errors.query.tolist(),
        "refused": errors.refused,
        "required": [
            {
                "error": float(error),
                "tokens": _shares(required[:, place]),
                "tokens_by_moments": _shares(found.required_for_output[errors.query, place]),
            }
            for place, error in enumerate(found.errors)
        ],
        "at": [
            {
                "length": float(length),
                "error": _shares(at[:, place]),
                "error_by_moments": _shares(found.output_error[errors.query, place]),
            }
            for place, length in enumerate(found.lengths)
        ],
    }


def _rows(found: PromptLength) -> dict[str, Any]:
    concentration = found.rows.concentration
    return {
        "tokens": found.rows.tokens,
        "rows": len(found.rows.query),
        "rate": _shares(concentration.rate),
        "top_probability": _shares(found.rows.top_probability),
        "top_probability_at_least": _shares(concentration.top_probability_bound()),
        "top_probability_at_most": _shares(concentration.top_probability_ceiling()),
        "inverse_temperature_for_half": _shares(concentration.inverse_temperature_for(0.5)),
    }


def _at(found: PromptLength, place: int) -> dict[str, Any]:
    return {
        "length": float(found.lengths[place]),
        "error": _shares(found.error[:, place]),
        "output_error": _shares(found.output_error[:, place]),
        "effective_sample_size": _shares(found.effective_sample_size[:, place]),
    }


def _shares(values: Float[np.ndarray, "query"]) -> dict[str, float | None]:
    found = quantiles(values)
    shares = zip(QUANTILES, found, strict=True)
    return {f"{share:g}": finite_or_none(value) for share, value in shares}


def _middle(values: Float[np.ndarray, "query"]) -> float | None:
    return finite_or_none(np.median(values)) if values.size else None
