"""How far a head is from its limit over infinitely many tokens."""

from __future__ import annotations

import warnings

import numpy as np
from jaxtyping import Float

from attractor.heads.audit.result import Prompt
from attractor.heads.captured.rows import HeadRows
from attractor.prompts.head import AttentionHead
from attractor.prompts.length.how_long import prompt_length
from attractor.support.errors import AttractorWarning, InvalidInputError
from attractor.support.randomness import generator

ERRORS = (0.3, 0.1, 0.03)
"""Errors along the scores that lengths are given for."""
_JUDGED = 0.1
_LEVELS = ((1e3, Prompt.SHORT), (1e4, Prompt.LONG), (1e5, Prompt.VERY_LONG))
"""The most tokens of a prompt, and the word for it."""
_TOKENS, _QUERIES = 4000, 200


def prompt_limit(
    rows: HeadRows,
    values: Float[np.ndarray, "rows tokens value_width"] | None,
    key: tuple[int, int, int],
) -> dict[str, float | str | list[float]]:
    """The variables of question four: score deviation, defect, lengths and a word for them.

    The tokens are keys and values side by side, ``(k, v)`` of content, as independent draws from
    one law: the order of a text and its causal mask are outside of the theory.

    Args:
        rows: The rows of the head.
        values: Values of their tokens; None leaves the question out.
        key: Seed, layer and head, which name the tokens and queries drawn.
    """
    if values is None:
        return {"prompt": Prompt.NOT_ASKED.value}
    random = generator(*key, purpose="tokens of a prompt")
    content = np.concatenate([rows.keys[rows.content], values[rows.content]], -1)
    tokens = content[_drawn(random, len(content), _TOKENS)]
    queries = (rows.queries + rows.mean_query)[_drawn(random, len(rows.queries), _QUERIES)]
    width, value_width = rows.keys.shape[-1], values.shape[-1]
    head = AttentionHead(
        np.eye(width + value_width, width), np.eye(value_width, width + value_width, k=width)
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AttractorWarning)
            found = prompt_length(head, tokens, queries, errors=ERRORS, seed=key[0])
    except InvalidInputError as error:
        return {"prompt": f"{Prompt.NOT_ASKED}: {error.problem}"}
    defect = found.defect
    known = defect.resolved
    of_output = float(np.median(defect.output[known])) if known.any() else np.nan
    required = np.median(found.required, axis=0)
    length = required[list(found.errors).index(_JUDGED)]
    judged = next((word for most, word in _LEVELS if length <= most), Prompt.NEVER)
    return {
        "score_deviation": float(np.median(found.score_deviation)),
        "defect": of_output,
        "required_length": [float(length) for length in required],
        "prompt": (judged if not of_output > _JUDGED else Prompt.NO_LIMIT).value,
    }


def _drawn(random: np.random.Generator, count: int, most: int) -> np.ndarray:
    return np.sort(random.permutation(count)[:most])
