"""The audit of heads: every question to every head, and all heads tested together."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int

from attractor.heads.audit.finished_heads import Found, finished_heads, labeled
from attractor.heads.audit.margin_solution import (
    MarginQuestion,
    check_norms,
    margin_solution,
    margin_verdict,
)
from attractor.heads.audit.result import NEGLIGIBLE, VARIABLES, Audit, Learnable, Prompt
from attractor.heads.captured.captured import (
    CAPTURED_BY,
    Captured,
    CapturedLayer,
    CaptureStatus,
    Word,
)
from attractor.heads.captured.rows import (
    BY_MASK,
    HeadRows,
    chosen_heads,
    content_tokens,
    head_rows,
    heads_of,
    sink_count,
)
from attractor.heads.statistics.learnability import learn
from attractor.heads.statistics.multiple import (
    check_draws,
    enough_for_discovery,
    false_discovery,
    fewest_draws,
    randomization_p,
    resampled,
    together,
)
from attractor.heads.statistics.nulls import Null, draw_maps
from attractor.prompts.head import AttentionHead
from attractor.prompts.length.how_long import prompt_length
from attractor.support.blas import single_blas_thread
from attractor.support.checks import check_count, check_flag, check_kind
from attractor.support.errors import AttractorWarning, InvalidInputError
from attractor.support.progress import progress_bar
from attractor.support.randomness import check_seed, generator
from attractor.support.threads import in_threads

if TYPE_CHECKING:
    import xarray as xr


_SINK = 0.9
"""Share of queries whose largest attention is on no content, from which the head is a sink."""
_ONE_PLACE = 0.5
"""Share of queries at one place after the query's, from which the head is named by it."""
_DIFFUSE = 0.5
"""Effective size, in parts of the tokens allowed, from which attention is diffuse."""


class Pattern(Word):
    """What a head selects, in a word; an offset is followed by its number."""

    SINK = (
        "sink",
        f"more than {100 * _SINK:.0f} % of queries attend most to a token that is no content, or "
        "to a learned sink, which takes what is missing from one",
    )
    OFFSET = (
        "offset",
        f"of all content, more than {100 * _ONE_PLACE:.0f} % of queries attend most to the token "
        "at one place: +1 is the one after the query, -1 the one before it",
    )
    SELF = "self", f"of all content, more than {100 * _ONE_PLACE:.0f} % attend most to themselves"
    DIFFUSE = (
        "diffuse",
        "none of these, and attention is spread over more than "
        f"{100 * _DIFFUSE:.0f} % of the tokens allowed",
    )
    MIXED = "mixed", "none of these: queries attend most to tokens here and there"


def attention_pattern(
    attention: Float[np.ndarray, "rows tokens"],
    allowed: Bool[np.ndarray, "rows tokens"],
    content: Bool[np.ndarray, "rows tokens"],
    position: Int[np.ndarray, "rows"],
) -> dict[str, float | str]:
    """The variables of question one: shares of sinks and places, largest weights, effective sizes.

    Args:
        attention: The attention of the model itself; what is missing from one is what a learned
            sink takes.
        allowed: Tokens under the model's own mask.
        content: Those of them that are content.
        position: The place of each query.
    """
    seen = np.where(allowed, attention, 0.0).astype(np.float64)
    inside = np.where(content, seen, 0.0)
    missing = np.maximum(1 - seen.sum(-1), 0.0)
    sink = np.maximum((seen - inside).max(-1), missing) > inside.max(-1)
    offsets = inside.argmax(-1) - position
    places, counts = np.unique(offsets, return_counts=True)
    offset, offset_share = int(places[counts.argmax()]), float(counts.max() / len(offsets))
    found: dict[str, float | str] = {
        "sink_mass": float(((seen - inside).sum(-1) + missing).mean()),
        "sink_share": float(sink.mean()),
        "offset": float(offset),
        "offset_share": offset_share,
        "self_share": float((offsets == 0).mean()),
        "top_probability": float(np.median(seen.max(-1))),
        "top_content_probability": float(np.median(_of_one(inside).max(-1))),
        "effective_size": float(np.median(_effective_size(seen))),
        "effective_content_size": float(np.median(_effective_size(inside))),
        "content_size": float(np.median(content.sum(-1))),
    }
    share = np.median(_effective_size(seen) / allowed.sum(-1))
    if sink.mean() > _SINK:
        found["selection"] = Pattern.SINK.value
    elif offset_share > _ONE_PLACE:
        found["selection"] = f"{Pattern.OFFSET} {offset:+d}" if offset else Pattern.SELF.value
    else:
        spread = share > _DIFFUSE
        found["selection"] = (Pattern.DIFFUSE if spread else Pattern.MIXED).value
    return found


def _of_one(weights: Float[np.ndarray, "rows tokens"]) -> Float[np.ndarray, "rows tokens"]:
    """Weights in parts of their sum; alike where they are all zero in floating point."""
    total = weights.sum(-1, keepdims=True)
    return np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / weights.shape[-1])


def _effective_size(weights: Float[np.ndarray, "rows tokens"]) -> Float[np.ndarray, "rows"]:
    return 1 / np.square(_of_one(weights)).sum(-1)


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


VERDICT = Null.ROTATION
"""The null that the verdict rests on."""
_DRAWS = "draw"
_AXES = {
    "accuracy_null": ("null", _DRAWS),
    "p": ("null",),
    "p_together": ("null",),
    "required_length": ("error",),
    "margin_ratio": ("norm",),
    "margin_gap": ("norm",),
    "margin_cosine": ("estimator",),
    "margin_ratio_null": ("margin_draw",),
    "selected": ("query",),
    "selected_probability": ("query",),
}
"""Axes of variables beside layer and head."""
_WORDS = ("capture", "selection", "learnable", "margin", "margin_space", "prompt")
_EMPTY = {**dict.fromkeys(_WORDS, ""), "selected": -1}


def audit_heads(
    captured: Captured,
    *,
    draws: int = 99,
    alpha: float = 0.05,
    layers: Sequence[int] | None = None,
    heads: Sequence[tuple[int, int]] | None = None,
    sink_positions: int | None = None,
    training_texts: bool = False,
    norms: Sequence[str] = ("frobenius", "nuclear"),
    margin_draws: int | None = None,
    seed: int = 0,
    progress: bool = False,
    store: str | os.PathLike[str] | None = None,
) -> Audit:
    """Asks of every head what it selects, whether its pairing is more than chance, and its limit.

    *Selections*: shares of sinks and of places after the query's, how sharp attention is.
    *Pairing*: a rule is learned from the head's selections on half of the documents and tested on
    the others; ``learnable`` is a head whose accuracy exceeds that of heads whose pairing of
    queries with keys is a random rotation, learned from their own selections, for all heads
    together at level ``alpha`` (max-T). It is a randomization model, not a sample of heads.
    *Margin*, of training texts alone: whether the head is where gradient descent takes a saturated
    one, at the certified margin solution of what it selects (``margin_solution``); a head exactly
    there is nowhere near the solution of other texts.
    *Limit*: how long a prompt of such tokens must be (``prompt_length``), where tokens are
    Gaussian enough for an answer.

    A head's numbers depend on the seed, its layer and its number, not on which other heads are
    audited; ``p_together`` does.

    Args:
        captured: Keys, queries and attention: of ``capture_heads``, of a file, or
            of ``Captured.from_arrays``.
        draws: Draws of every null; fixed beforehand, as no p-value is below ``1 / (draws + 1)``.
        alpha: Level of the tests, for all heads together.
        layers: Layers to audit; None for all.
        heads: Heads to audit as pairs ``(layer, head)``; None for all.
        sink_positions: How many of the first tokens are never content; None for 1 where attention
            is causal, 0 else.
        training_texts: Whether the texts are those that the model was trained on: asks for margin
            solutions.
        norms: Norms of margin solutions: "frobenius", "nuclear", "spectral". Draws are compared in
            the first, which is always asked for.
        margin_draws: Draws of heads with another pairing that margin ratios are compared with; None
            for as few as the level needs.
        seed: Names the halves of documents and all draws.
        progress: Whether to show progress.
        store: A folder that keeps heads that are done: the same call, killed, goes on there.

    Raises:
        InvalidInputError: If an argument is of the wrong kind, a head does not exist, there are too
            few draws for the level, or the folder holds another audit.

    Example:
        >>> import numpy as np
        >>> import attractor as at
        >>> rng = np.random.default_rng(0)
        >>> keys, queries = rng.normal(size=(400, 6, 4)), rng.normal(size=(400, 4))
        >>> audit = at.audit_heads(at.Captured.from_arrays(keys, queries), draws=19)
        >>> audit.data.learnable.values
        array([['not told apart']], dtype='<U14')
    """
    check_kind("captured", captured, Captured, CAPTURED_BY)
    draws, alpha = check_draws(draws, alpha)
    seed = check_seed("seed", seed)
    check_flag("progress", progress)
    asked = _margin_question(norms, margin_draws, alpha)
    question = asked if check_flag("training_texts", training_texts) else None
    if sink_positions is not None:
        sink_positions = check_count("sink_positions", sink_positions, 0)
    chosen = chosen_heads(captured, layers, heads)
    settings = {"draws": draws, "alpha": alpha, "seed": seed, "null": VERDICT.value}
    settings |= {"sink_positions": BY_MASK if sink_positions is None else sink_positions}
    if question is not None:
        settings |= {"norms": ",".join(question.norms), "margin_draws": question.draws}
    found: dict[tuple[int, int], Found] = {}
    numbers = sorted({layer for layer, _ in chosen})
    if heads is not None:  # before any of them takes long
        for number in numbers:
            heads_of(number, captured.layer(number), chosen)
    with (
        finished_heads(store, captured, settings) as finished,
        progress_bar("layers", len(numbers), enabled=progress, lines_every=30) as advance,
    ):
        for number in numbers:
            layer = captured.layer(number)
            mine = heads_of(number, layer, chosen)
            names = {head: f"head_{number}_{head}" for head in mine}
            done = {head: finished.read(names[head], [layer], head) for head in mine}
            todo = [head for head, answer in done.items() if answer is None]
            found |= {(number, head): answer for head, answer in done.items() if answer}
            advance((len(mine) - len(todo)) / len(mine))
            sinks = sink_count(captured, layer, settings["sink_positions"])
            content = content_tokens(captured, layer, sinks)
            ask = _Questions(captured, number, layer, content, draws, question, seed)
            with single_blas_thread():
                for head, answer in in_threads(ask, todo):
                    found[number, head] = answer
                    finished.write(names[head], [layer], head, answer)
                    advance(1 / len(mine))
    return Audit(_assembled(captured, found, settings, question))


def _margin_question(norms: Sequence[str], draws: int | None, alpha: float) -> MarginQuestion:
    """What is asked of training texts; the Frobenius norm comes first."""
    given = check_norms(norms)
    if draws is None:
        draws = fewest_draws(alpha)
    draws, _ = check_draws(draws, alpha, argument="margin_draws")
    return MarginQuestion(tuple(dict.fromkeys(["frobenius", *given])), draws)


@dataclass(frozen=True)
class _Questions:
    """All questions to a head of one layer."""

    captured: Captured
    number: int
    layer: CapturedLayer
    content: np.ndarray
    draws: int
    margin: MarginQuestion | None
    seed: int

    def __call__(self, head: int) -> Found:
        status = self.layer.status[head]
        if status is CaptureStatus.NOT_SUPPORTED:
            return _nothing(status)
        key = (self.seed, self.number, head)
        rows = head_rows(self.captured, self.layer, head, self.content, self.seed)
        if not len(rows.row):
            return _nothing(status) | {"learnable": Learnable.TOO_FEW.value}
        attention = self.layer.attention[rows.row, head]
        allowed = self.layer.allowed[rows.row]
        found = _nothing(status)
        found |= attention_pattern(attention, allowed, rows.content, rows.position)
        found |= self._selected(attention, rows)
        found["documents"] = float(len(np.unique(rows.document)))
        if status is not CaptureStatus.BILINEAR:
            return found
        found["horizon"] = rows.horizon
        found |= self._pairing(rows, key)
        if self.margin is not None:
            found |= margin_solution(self.layer, head, self.margin, key)
        values = self.layer.values
        if values is not None:
            values = values[rows.row, self.layer.key_head(head)].astype(np.float64)
        return found | prompt_limit(rows, values, key)

    def _selected(self, attention: np.ndarray, rows: HeadRows) -> Found:
        count = len(self.captured.document)
        selected, probability = np.full(count, -1), np.full(count, np.nan)
        inside = np.where(rows.content, attention, -np.inf)
        selected[rows.row] = inside.argmax(-1)
        probability[rows.row] = inside.max(-1)
        return {"selected": selected, "selected_probability": probability}

    def _pairing(self, rows: HeadRows, key: tuple[int, int, int]) -> Found:
        tested = ~rows.learned
        found: Found = {"test_queries": float(tested.sum())}
        if not rows.enough:
            return found | {"learnable": Learnable.TOO_FEW.value}
        maps = [draw_maps(null, rows, self.draws, key) for null in Null]
        learned = learn(rows, np.concatenate(maps))
        of_nulls = learned.accuracy[1:].reshape(len(maps), self.draws)
        of_head = np.full((len(maps), 1), learned.accuracy[0])
        hits = learned.hits.astype(float)
        simpler = max(learned.offset, learned.query_free, key=np.mean)
        random = generator(*key, purpose="resampled documents")
        low, high = resampled(hits, rows.document[tested], random)
        advantage = resampled(hits - simpler, rows.document[tested], random)
        return found | {
            "accuracy": float(learned.accuracy[0]),
            "accuracy_low": low,
            "accuracy_high": high,
            "accuracy_query_free": float(learned.query_free.mean()),
            "accuracy_offset": float(learned.offset.mean()),
            "advantage": float((hits - simpler).mean()),
            "advantage_low": advantage[0],
            "advantage_high": advantage[1],
            "chance": learned.chance,
            "accuracy_null": of_nulls,
            "p": randomization_p(np.concatenate([of_head, of_nulls], -1)),
        }


def _nothing(status: CaptureStatus) -> Found:
    words = ("selection", "learnable", "margin", "prompt")
    return {**dict.fromkeys(words, Learnable.NOT_ASKED.value), "capture": status.value}


def _assembled(
    captured: Captured,
    found: Mapping[tuple[int, int], Found],
    settings: dict[str, Any],
    question: MarginQuestion | None,
) -> xr.Dataset:
    """The variables of all heads as labeled arrays, with what is tested for all together."""
    layers = sorted({layer for layer, _ in found})
    heads = sorted({head for _, head in found})
    by_place = {(layers.index(n), heads.index(m)): one for (n, m), one in found.items()}
    sizes = {
        "null": len(Null), _DRAWS: settings["draws"], "error": len(ERRORS),
        "query": len(captured.document),
    }  # fmt: skip
    coordinates: dict[str, Any] = {}
    if question is not None:
        sizes |= {"margin_draw": question.draws}
        coordinates = {"norm": list(question.norms), "estimator": list(question.estimators)}
        sizes |= {name: len(labels) for name, labels in coordinates.items()}
    places = {"layer": layers, "head": heads}
    data = xr.Dataset(
        labeled(by_place, places, VARIABLES, axes=_AXES, sizes=sizes, empty=_EMPTY),
        coords={
            **places,
            "null": [null.value for null in Null],
            "error": list(ERRORS),
            **coordinates,
            "document": ("query", captured.document),
            "position": ("query", captured.position),
        },
        attrs={**settings, **{f"origin_{name}": text for name, text in captured.origin.items()}},
    )
    return _judged_margins(_judged(data, settings["alpha"]), settings["alpha"])


def _judged(data: xr.Dataset, alpha: float) -> xr.Dataset:
    """Adds p-values for all heads together, and the verdicts that rest on them."""
    if "p" not in data:
        return data
    known = np.isfinite(data["accuracy"].to_numpy())
    p_together = np.full(data["p"].shape, np.nan)
    q = np.full(known.shape, np.nan)
    for place, null in enumerate(Null):
        of_draws = data["accuracy_null"].to_numpy()[known][:, place]
        statistic = np.concatenate([data["accuracy"].to_numpy()[known][:, None], of_draws], -1)
        p_together[known, place] = together(statistic)
        if null is VERDICT and enough_for_discovery(of_draws.shape[-1], alpha):
            q[known] = false_discovery(data["p"].to_numpy()[known, place])
    verdicts = data["learnable"].to_numpy().astype(object)
    of_verdict = p_together[..., list(Null).index(VERDICT)]
    for place in np.argwhere(known):
        verdicts[tuple(place)] = _verdict(data.isel(layer=place[0], head=place[1]), alpha,
            float(of_verdict[tuple(place)]))  # fmt: skip
    named = {
        "p_together": (data["p"].dims, p_together),
        "q": (("layer", "head"), q),
        "learnable": (("layer", "head"), verdicts.astype(str)),
    }
    return data.assign(
        {
            name: (dims, array, {"long_name": VARIABLES[name]})
            for name, (dims, array) in named.items()
        }
    )


def _judged_margins(data: xr.Dataset, alpha: float) -> xr.Dataset:
    """Adds p-values of margin ratios for all heads together, and the verdicts."""
    if "margin_p" not in data:
        return data
    known = np.isfinite(data["margin_p"].to_numpy())
    ratios = data["margin_ratio"].sel(norm=["frobenius"]).to_numpy()
    statistic = np.concatenate([ratios, data["margin_ratio_null"].to_numpy()], -1)
    p_together = np.full(known.shape, np.nan)
    p_together[known] = together(statistic[known])
    verdicts = data["margin"].to_numpy().astype(object)
    for place in map(tuple, np.argwhere(known)):
        head = data.isel(layer=place[0], head=place[1])
        ratio, gap, cosine = (
            dict(zip(head[axis].to_numpy().tolist(), head[name].to_numpy().tolist(), strict=True))
            for name, axis in (
                ("margin_ratio", "norm"), ("margin_gap", "norm"), ("margin_cosine", "estimator"),
            )
        )  # fmt: skip
        verdicts[place] = margin_verdict(ratio, gap, cosine, float(p_together[place]), alpha)
    place = ("layer", "head")
    return data.assign(
        margin_p_together=(place, p_together, {"long_name": VARIABLES["margin_p_together"]}),
        margin=(place, verdicts.astype(str), {"long_name": VARIABLES["margin"]}),
    )


def _verdict(head: xr.Dataset, alpha: float, p_together: float) -> str:
    """Whether a pairing is more than chance, and whether a simpler rule predicts as well.

    It does unless the rule is shown to predict more, and more by an amount not shown to be
    negligible: the word that claims most, learnable, has to be shown.
    """
    if p_together > alpha:
        return Learnable.NOT_TOLD_APART.value
    if head["advantage_low"] > 0 and head["advantage_high"] >= NEGLIGIBLE:
        return Learnable.LEARNABLE.value
    positional = head["accuracy_offset"] >= head["accuracy_query_free"]
    return (Learnable.POSITIONAL if positional else Learnable.QUERY_FREE).value
