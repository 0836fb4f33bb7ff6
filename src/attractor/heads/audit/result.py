"""What an audit found of every head: labeled arrays, and head by head as numbers and words."""

from __future__ import annotations

import dataclasses
import math
import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from rich.table import Table

from attractor.heads.captured.captured import CaptureStatus, Word
from attractor.results import Plotted, Printed, finite_or_none, load_data, save_data
from attractor.results.seen import listed, spread

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console


KIND = "audit of attention heads"
"""The kind of a file of one."""
MOST_ROWS = 24
"""Heads that are printed one by one; of more the counts of each layer are."""

VARIABLES = {
    "capture": "whether scores of the head are k^T q, in words",
    "sink_mass": "mean attention that is not on content: on other tokens, or a learned sink",
    "sink_share": "share of queries that attend most to no content: such tokens, learned sinks",
    "offset": "most frequent place of the content token attended to most, after the query's",
    "offset_share": "share of queries with it",
    "self_share": "share of queries that attend most to their own token, of all content",
    "top_probability": "largest attention on one token; median over queries",
    "top_content_probability": "the same, attention on content alone",
    "effective_size": "1 / sum of squared attention; median over queries",
    "effective_content_size": "the same, attention on content alone",
    "content_size": "content tokens that a query may attend to; median over queries",
    "selection": "what the head selects, in words",
    "documents": "documents with a query",
    "test_queries": "queries that accuracy is measured on",
    "accuracy": "share of test queries whose selection a rule learned on other documents predicts",
    "accuracy_low": "lower end of its 95 % interval, over documents",
    "accuracy_high": "upper end",
    "accuracy_query_free": "accuracy of the best rule that ignores the query",
    "accuracy_offset": "accuracy of the most frequent place after the query's",
    "advantage": "accuracy less that of the better of these two, on the same queries",
    "advantage_low": "lower end of its 95 % interval, over documents",
    "advantage_high": "upper end",
    "chance": "accuracy of a uniform choice among content",
    "accuracy_null": "accuracy on the selections of every draw of a null, learned from them",
    "p": "share of draws, the head among them, with an accuracy as large",
    "p_together": "the same of the largest deviation among all heads: family-wise",
    "q": "Benjamini-Hochberg: false discovery rate; NaN where there are too few draws",
    "learnable": "verdict on the pairing of queries with keys, in words",
    "margin_space": "what the norms are norms of, in words",
    "margin_queries": "queries whose selections the margin problem keeps",
    "margin_rows": "its constraints: tokens that are not selected",
    "margin_ratio": "margin over that of the certified margin solution of the same norm",
    "margin_gap": "relative duality gap of that solution",
    "margin_cosine": "cosine of the head's matrix with margin solutions and other estimators",
    "margin_ratio_null": "margin ratio of heads with another pairing, Frobenius norm",
    "margin_p": "share of those draws, the head among them, with a ratio as large",
    "margin_p_together": "the same of the largest deviation among all heads: family-wise",
    "margin": "where the head is, seen from margin solutions, in words",
    "score_deviation": "standard deviation of scores; median over queries",
    "horizon": "root of the mean squared score of independent keys and queries",
    "defect": "error that is left however long the prompt: tokens are not Gaussian; median",
    "required_length": "tokens for an error along the scores; median over queries",
    "prompt": "verdict on the length, in words",
    "selected": "the content token attended to most, its place; -1 for none",
    "selected_probability": "the attention on it",
}
"""What is known of heads, and what each means; some is not known of every head."""


NEGLIGIBLE = 0.05
"""Share of queries by which a rule may predict more than a simpler one that predicts as well."""


class Learnable(Word):
    """Whether the pairing of queries with keys is more than chance."""

    LEARNABLE = (
        "learnable",
        "more than chance for all heads together, and ahead of simpler rules: the interval of "
        f"that lead is above 0, and not all of it below {NEGLIGIBLE:g}",
    )
    POSITIONAL = (
        "positional",
        "more than chance, but not shown to be ahead of a fixed place before or after the query",
    )
    QUERY_FREE = (
        "query-free",
        "more than chance, but not shown to be ahead of a rule that does not look at the query",
    )
    NOT_TOLD_APART = (
        "not told apart",
        "not told apart from heads whose queries are paired with the same keys at random",
    )
    TOO_FEW = (
        "too few queries",
        "too few to learn a rule on one half of the documents and test it on the other",
    )
    NOT_ASKED = (
        "not asked",
        "its scores are not those of its keys and queries, or nothing of it was captured",
    )


class Margin(Word):
    """Where a head is, seen from the margin solutions of what it selects."""

    AT = (
        "at the margin solution",
        "a margin ratio of 0.9 or more in the norm that is named, larger than with other "
        "pairings for all heads together, and nothing else asked about is nearer",
    )
    ON_THE_WAY = (
        "on the way",
        "a margin ratio larger than with other pairings, for all heads together, and no more",
    )
    ELSEWHERE = (
        "elsewhere",
        "a margin ratio not shown to be larger than with other pairings of queries and keys",
    )
    OPEN = "certificate open", "a margin problem was not solved to its tolerance"
    NOT_ASKED = (
        "not asked",
        "asked of texts that a model was trained on, and of scores of keys and queries alone",
    )


class Prompt(Word):
    """How long prompts must be for a head to be near its limit over infinitely many tokens."""

    SHORT = "short", "up to 1,000 tokens bring an error of 10 %"
    LONG = "long", "up to 10,000 tokens do"
    VERY_LONG = "very long", "up to 100,000 tokens do"
    NEVER = "never in practice", "it takes more than 100,000 tokens"
    NO_LIMIT = (
        "no limit in reach",
        "no length brings an error of 10 %: keys and values are so far from Gaussian that their "
        "defect alone is larger",
    )
    NOT_ASKED = "not asked", "no values were captured, or the reason that follows"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Audit(Plotted, Printed):
    """What an audit found of every head.

    Attributes:
        data: The variables of ``VARIABLES`` over ``layer`` and ``head``; those of nulls also over
            ``null`` and ``draw``, lengths over ``error``, selections over ``query``, beside
            ``document``, ``position`` and ``token`` of each query. Its attributes are the settings:
            ``null`` names the null that the verdict rests on, ``alpha``, ``draws``, ``seed``.
    """

    _plots = "attractor.heads.plots"

    data: xr.Dataset

    @property
    def counts(self) -> dict[str, int]:
        """How many heads have each verdict on their pairing."""
        words, counts = np.unique(self.data["learnable"].to_numpy(), return_counts=True)
        found = zip(words, counts, strict=True)
        return {str(word): int(count) for word, count in found if word}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a NetCDF file.

        Raises:
            InvalidInputError: If the path cannot be written.
        """
        save_data(self.data, path, KIND)

    def to_xarray(self) -> xr.Dataset:
        """The labeled arrays."""
        return self.data

    def _picture(self) -> tuple[str, xr.Dataset]:
        return "audit_map_figure", self.data

    def _seen(self) -> str:

        return map_seen(by_clearness(heads(self.data)))

    def _print(self, console: Console) -> None:
        from attractor.heads.audit.columns import head_table, layer_table
        from attractor.heads.audit.words import sentence

        found = heads(self.data)
        console.print(sentence(self.data), highlight=False, markup=False)
        few = len(found) <= MOST_ROWS
        aside = ["no query", "offset", "ahead", "p", "prompt"]
        aside += ["chance", "sinks"] if asked_for_margins(found) else []  # 80 columns hold no more
        ordered = by_clearness(found)
        names, rows = head_table(ordered, without=aside) if few else layer_table(found)
        print_table(console, names, rows, wrapped=("margin", *Learnable))


def print_table(
    console: Console,
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    wrapped: Sequence[str],
) -> None:
    """Prints a table without lines.

    Args:
        console: Where to.
        names: Names of the columns.
        rows: Their cells.
        wrapped: Columns that may take several lines.
    """
    narrow = console.width < Printed.width
    table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=narrow)
    for name in names:
        table.add_column(name, no_wrap=name not in wrapped)
    for row in rows:
        table.add_row(*row)
    console.print(table, highlight=False, markup=False)


def load_audit(path: str | os.PathLike[str]) -> Audit:
    """Reads what ``Audit.save`` wrote.

    Raises:
        FileFormatError: If the file is no audit.
    """
    return Audit(load_data(path, KIND))


NOT_ASKED = str(Learnable.NOT_ASKED)
"""The word for a question that was not asked of a head."""
_PLACE = ("layer", "head")
_ROUNDING = 1e-12

BEATS_NULLS = (Learnable.LEARNABLE, Learnable.POSITIONAL, Learnable.QUERY_FREE)
"""Verdicts on heads that beat the draws of all heads together."""
UNTESTED = (Learnable.TOO_FEW, Learnable.NOT_ASKED)
"""Verdicts on heads that no accuracy was compared of."""
NULLED = ("accuracy_null", "p", "p_together")
"""Variables that every null has its own of."""


ALWAYS = ("accuracy", "accuracy_low", "accuracy_high", *NULLED, "q")
"""Variables that every head has, be it as None."""
_OF_DRAWS = ("mean", "deviation", "largest")
"""What objects say of draws."""


def of_verdict(data: xr.Dataset, name: str) -> xr.DataArray:
    """A variable of an audit, that of the null that the verdict rests on where there are several.

    Args:
        data: The arrays of an audit.
        name: The variable.
    """
    found = data[name]
    return found.sel(null=data.attrs["null"], drop=True) if "null" in found.dims else found


def deviations_above_null(data: xr.Dataset) -> Float[np.ndarray, "layer head"]:
    """Standard deviations of its own null draws that the accuracy of a head is above their mean.

    Infinite where all draws agree on another accuracy; NaN where there is none.

    Args:
        data: The arrays of an audit.
    """
    if "accuracy_null" not in data:
        return np.full((data.sizes["layer"], data.sizes["head"]), np.nan)
    draws = _in_order(of_verdict(data, "accuracy_null").transpose(*_PLACE, "draw"))
    above = data["accuracy"].transpose("layer", "head").to_numpy() - draws.mean(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(above) < _ROUNDING, 0.0, above / _spread(draws))


def heads(data: xr.Dataset) -> list[dict[str, Any]]:
    """What is known of every head that was audited, in the order of layers.

    A variable with further axes is an object by their coordinates; of the draws of a null their
    mean, standard deviation and largest remain. What is known for several nulls is that of the
    null that the verdict rests on, and of each under ``nulls``. NaN and infinity are None.

    Args:
        data: The arrays of an audit.
    """
    above = deviations_above_null(data)
    columns = {
        name: column(data, name)
        for name in VARIABLES
        if name in data and "query" not in data[name].dims
    }
    found = []
    for place in np.ndindex(above.shape):
        if not columns["capture"][0][place]:
            continue  # a hole in the table of layers and heads: not audited
        entry: dict[str, Any] = {
            axis: int(data[axis].to_numpy()[at]) for axis, at in zip(_PLACE, place, strict=True)
        }
        entry |= dict.fromkeys(ALWAYS)
        entry |= {name: nested(array[place], axes) for name, (array, axes) in columns.items()}
        by_null = {name: entry[name] for name in NULLED if name in columns}
        entry |= {name: values[data.attrs["null"]] for name, values in by_null.items()}
        nulls = next(iter(by_null.values()), {})
        entry["nulls"] = {
            null: {name: values[null] for name, values in by_null.items()} for null in nulls
        }
        entry["deviations_above_null"] = finite_or_none(above[place])
        found.append(entry)
    return found


def by_clearness(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Heads from the clearest pairing to the least clear one; those without a test come last.

    Args:
        found: What ``heads`` returns.
    """

    def key(one: dict[str, Any]) -> tuple[bool, float, float, int, int]:
        untested = one["learnable"] in UNTESTED
        together = 1.0 if one["p_together"] is None else one["p_together"]
        above = one["deviations_above_null"]
        if above is None:
            mean = (one["accuracy_null"] or {}).get("mean") or 0.0
            above = math.inf if (one["accuracy"] or 0.0) > mean else -math.inf
        return untested, together, -above, one["layer"], one["head"]

    return sorted(found, key=key)


def name(one: dict[str, Any]) -> str:
    """A head by its layer and number, as options take it."""
    return f"{one['layer']}.{one['head']}"


def verdict(one: dict[str, Any]) -> str:
    """The verdict on the pairing of a head, with the reason where it was not asked."""
    if one["learnable"] == NOT_ASKED and one["capture"] != CaptureStatus.BILINEAR:
        return f"{one['learnable']}: {one['capture']}"
    return one["learnable"]


def selects(one: dict[str, Any]) -> str:
    """What a head selects, with the share of queries it is true of."""
    words = one["selection"]
    shares = {"sink": "sink_share", "self": "self_share", "offset": "offset_share"}
    share = one.get(shares.get(words.split()[0] if words else "", ""))
    return words if share is None else f"{words} {100 * share:.0f} %"


def asked_for_margins(found: list[dict[str, Any]]) -> bool:
    """Whether any head was asked whether it is at a margin solution."""
    return any(_asked(one.get("margin")) for one in found)


def asked_for_prompts(found: list[dict[str, Any]]) -> bool:
    """Whether any head was asked how long its prompts must be."""
    return any(_asked(one.get("prompt")) for one in found)


def _asked(words: str | None) -> bool:
    return bool(words) and not words.startswith(NOT_ASKED)


def column(
    data: xr.Dataset,
    name: str,
    place: Sequence[str] = _PLACE,
    of_draws: Sequence[str] = _OF_DRAWS,
) -> tuple[np.ndarray, list[Sequence[str]]]:
    """A variable by the place of a head, and the coordinates of what other axes it has.

    Args:
        data: Labeled arrays.
        name: The variable.
        place: The axes that say which head it is.
        of_draws: What is wanted of draws: "mean", "deviation", "smallest", "largest".
    """
    array = data[name]
    drawn = [axis for axis in array.dims if str(axis).endswith("draw")]
    axes = [str(axis) for axis in array.dims if axis not in (*place, *drawn)]
    labels: list[Sequence[str]] = [[str(key) for key in data[axis].to_numpy()] for axis in axes]
    if not drawn:
        return array.transpose(*place, *axes).to_numpy(), labels
    draws = _in_order(array.transpose(*place, *axes, *drawn))
    known = {"mean": draws.mean(-1), "deviation": _spread(draws)}
    known |= {"smallest": draws.min(-1), "largest": draws.max(-1)}
    return np.stack([known[one] for one in of_draws], -1), [*labels, of_draws]


def _in_order(array: xr.DataArray) -> np.ndarray:
    """The numbers, in memory as their axes are: sums depend on it in the last digit."""
    return np.ascontiguousarray(array.to_numpy())


def _spread(draws: Float[np.ndarray, "*axes draw"]) -> Float[np.ndarray, "*axes"]:
    """Standard deviations of draws, of a single one 0."""
    return draws.std(-1, ddof=min(1, draws.shape[-1] - 1))


def nested(value: Any, axes: list[Sequence[str]]) -> Any:
    """A value as JSON takes it: an object by the coordinates of its axes; NaN is None."""
    if axes:
        return {key: nested(one, axes[1:]) for key, one in zip(axes[0], value, strict=True)}
    return str(value) if isinstance(value, str) else finite_or_none(value)


_MOST = 12
"""Heads that are named."""


def map_seen(ordered: Sequence[dict[str, Any]]) -> str:
    """The heads with a frame, the clearest first, and what heads select.

    Args:
        ordered: The heads, the clearest first.
    """
    framed = [one for one in ordered if one["learnable"] in BEATS_NULLS]
    named = {
        name(one): f"accuracy {one['accuracy']:.2f}, {one['deviations_above_null']:.3g} standard "
        f"deviations above its draws, {one['selection'] or 'nothing'}"
        for one in framed[:_MOST]
    }
    selections = Counter(one["selection"] or "nothing" for one in ordered)
    kinds = ", ".join(f"{word} {count}" for word, count in selections.most_common())
    rest = f" And {len(framed) - _MOST} more." if len(framed) > _MOST else ""
    beaten = f"{len(framed)} of {len(ordered)} heads have a frame"
    return f"{beaten}{': ' if named else '.'}{listed(named) if named else ''}{rest} Kinds: {kinds}."


def accuracy_seen(found: Sequence[dict[str, Any]]) -> str:
    """The accuracies of heads that beat the draws, and of the others."""
    tested = [one for one in found if one["accuracy"] is not None]
    parts = {
        words: spread(
            [one["accuracy"] for one in tested if (one["learnable"] in BEATS_NULLS) == is_so]
        )
        for words, is_so in (("heads that beat the draws", True), ("the other heads", False))
    }
    return f"Accuracies. {listed(parts)}"


def texts_seen(shown: xr.Dataset) -> str:
    """The token that each query drawn attends to most."""
    tops = {}
    for number in range(shown.sizes["example"]):
        one = shown.isel(example=number)
        weights = np.where(one["allowed"].to_numpy(), one["attention"].to_numpy(), 0)
        text, top = one["token"].to_numpy(), int(weights.argmax())
        head, query = f"{int(one['layer'])}.{int(one['head'])}", text[int(one["position"])]
        tops[f"{head}, {query!s} in document {int(one['document'])}"] = (
            f"{100 * weights[top]:.0f} % on {text[top]!s}"
        )
    return f"The token that each query attends to most. {listed(tops)}"


def control_seen(control: xr.Dataset) -> str:
    """The range of margin ratios in each row."""
    rows = {}
    for arm in control["arm"].to_numpy():
        for norm in control["norm"].to_numpy():
            ratios = control["margin_ratio"].sel(arm=arm, norm=norm).to_numpy()
            rows[f"{arm}, {norm}"] = spread(ratios)
    return f"Margin ratios. {listed(rows)}"
