"""The tables of an audit: each column with its heading, its meaning, and how it is written."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from attractor.heads.audit.result import (
    UNTESTED,
    Learnable,
    Prompt,
    asked_for_margins,
    asked_for_prompts,
    by_clearness,
    heads,
    name,
    selects,
    verdict,
)

if TYPE_CHECKING:
    import xarray as xr

Rows = list[tuple[str, ...]]
"""Cells, a row at a time."""
Head = dict[str, Any]
"""A head, as ``heads`` or ``movements_of`` returns it."""


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        heading: Its heading.
        meaning: What stands in it, in a line of the glossary.
        cell: From what a row is about to the text in it.
        word: What the glossary calls it, where the heading says more: the norm, say.
    """

    heading: str
    meaning: str
    cell: Callable[[Any], str]
    word: str = ""

    @property
    def entry(self) -> tuple[str, str]:
        """Its line in the glossary."""
        return self.word or self.heading, self.meaning


Table = tuple[tuple[str, ...], Rows]
"""Headings, and cells a row at a time."""


def written(columns: Sequence[Column], rows: Iterable[Any], without: Collection[str] = ()) -> Table:
    """A table of some columns.

    Args:
        columns: All columns.
        rows: What each row is about.
        without: Headings of columns to leave out.
    """
    kept = [column for column in columns if column.heading not in without]
    cells = [tuple(column.cell(row) for column in kept) for row in rows]
    return tuple(column.heading for column in kept), cells


def percent(share: float | None) -> str:
    """A share as percent, to three digits."""
    return "-" if share is None else f"{100 * share:.3g} %"


def counted(counts: Counter[str]) -> str:
    """Words with their counts, the most frequent first."""
    return ", ".join(f"{n:,} {word}" for word, n in counts.most_common())


def share(value: float | None) -> str:
    """A share without its leading zero, two digits behind the point."""
    return "-" if value is None else f"{value:.2f}".replace("0.", ".", 1) if value < 1 else "1"


def interval(one: Head, of: str) -> str:
    """A share with its interval, where it has one."""
    low, high = one.get(f"{of}_low"), one.get(f"{of}_high")
    middle = share(one.get(of))
    return middle if low is None or high is None else f"{middle} [{share(low)}, {share(high)}]"


def null_mean(one: Head) -> str:
    """The mean accuracy of the draws that a verdict rests on."""
    return share((one["accuracy_null"] or {}).get("mean"))


def _two(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}".replace("0.", ".", 1)


def _three(value: float) -> str:
    return f"{value:.3f}"


HEAD = Column("head", "layer and number of the head, both from 0", name)
HEADS = (
    HEAD,
    Column("pairing", "which queries meet which keys: the verdict, in a word", verdict),
    Column(
        "accuracy",
        "share of queries of other documents whose selection a rule learned from the head predicts "
        "[95 % interval over documents]",
        lambda one: interval(one, "accuracy"),
    ),
    Column(
        "nulls",
        "the same accuracy where the pairing of the head is drawn at random: mean of the draws",
        null_mean,
    ),
    Column(
        "no query",
        "accuracy of the best rule that does not look at the query",
        lambda one: share(one.get("accuracy_query_free")),
    ),
    Column(
        "offset",
        "accuracy of always choosing the most frequent place before or after the query",
        lambda one: share(one.get("accuracy_offset")),
    ),
    Column(
        "ahead",
        "accuracy less that of the better of these two, on the same queries [95 % interval]",
        lambda one: interval(one, "advantage"),
    ),
    Column(
        "chance",
        "accuracy of a uniform choice among the content tokens that a query may attend to",
        lambda one: share(one.get("chance")),
    ),
    Column(
        "p",
        "share of the draws, the head among them, with an accuracy as large: this head by itself",
        lambda one: _two(one["p"]),
    ),
    Column(
        "together",
        "the same of the largest deviation of any head: for all heads at once, and what verdicts "
        "rest on",
        lambda one: _two(one["p_together"]),
    ),
    Column(
        "selects",
        "what the head selects, in a word, and of how many queries that is true",
        selects,
    ),
    Column(
        "sinks",
        "share of queries that attend most to a token that is no content, or to a learned sink",
        lambda one: "-" if one.get("sink_share") is None else f"{100 * one['sink_share']:.0f} %",
    ),
)
"""The columns of every head."""
MARGIN = Column(
    "margin", "where the head is, seen from margin solutions", lambda one: one["margin"]
)
PROMPT = Column(
    "prompt",
    "how long prompts must be for the head to be near its limit, in a word",
    lambda one: one["prompt"].partition(":")[0],
)


def head_table(found: list[Head], *, without: Collection[str] = ()) -> Table:
    """A row for each head, in the order given; columns of which nothing is known are left out.

    Args:
        found: Heads, as ``heads`` returns them.
        without: Columns to leave out.
    """
    columns = [one for one in HEADS if any(one.cell(head) != "-" for head in found)]
    if asked_for_margins(found):
        columns.append(MARGIN)
    if limits_in_reach(found):
        columns.append(PROMPT)
    return written(columns, found, without)


def limits_in_reach(found: list[Head]) -> list[Head]:
    """The heads that some length of a prompt brings near their limit."""
    return [one for one in found if asked_for_prompts([one]) and one["prompt"] != Prompt.NO_LIMIT]


LAYERS = (
    Column("layer", "number of the layer, from 0", lambda here: str(here[0]["layer"])),
    Column(
        "clearest head",
        "the head of the layer that is farthest from its draws, with its accuracy",
        lambda here: _clearest(here),
    ),
)
"""The columns of every layer, between which the counts of verdicts stand."""


def layer_table(found: list[Head]) -> Table:
    """The counts of verdicts of each layer in a row.

    Args:
        found: Heads, as ``heads`` returns them.
    """
    counts = [
        Column(str(word), word.message, lambda here, word=word: _count(here, "learnable", word))
        for word in Learnable
        if any(one["learnable"] == word for one in found)
    ]
    layers = sorted({one["layer"] for one in found})
    rows = [[one for one in found if one["layer"] == layer] for layer in layers]
    return written([LAYERS[0], *counts, *LAYERS[1:]], rows)


def _clearest(here: list[Head]) -> str:
    first = by_clearness(here)[0]
    if first["accuracy"] is None:
        return "-"
    return f"{name(first)} ({share(first['accuracy'])}, nulls {null_mean(first)})"


def _count(here: list[Head], of: str, word: str) -> str:
    return str(sum(one[of] == word for one in here))


NULLS = (
    Column("null", "how pairings are drawn at random, in a word", lambda row: row[0]),
    Column(
        "heads beyond it",
        "heads whose accuracy exceeds all of its draws, for all heads together",
        lambda row: row[1],
    ),
    Column("mean accuracy", "accuracy of its draws, mean over draws and heads", lambda row: row[2]),
)
"""The columns of every null."""


def null_table(data: xr.Dataset) -> Table:
    """For each null how many heads beat its draws, all heads together.

    Args:
        data: The arrays of an audit.
    """
    alpha = data.attrs["alpha"]
    tested = [one for one in heads(data) if one["learnable"] not in UNTESTED]
    rows: Rows = []
    for null in tested[0]["nulls"] if tested else ():
        of_null = [one["nulls"][null] for one in tested]
        beat = sum(one["p_together"] <= alpha for one in of_null)
        used = " (the verdict)" if null == data.attrs["null"] else ""
        mean = sum(one["accuracy_null"]["mean"] for one in of_null) / len(of_null)
        rows.append((f"{null}{used}", f"{beat} of {len(tested)}", share(mean)))
    return written(NULLS, rows)


def margin_columns(norms: Sequence[str]) -> list[Column]:
    """The columns of heads that were compared with margin solutions, in these norms."""

    def nearest_other(one: Head) -> str:
        others = {key: cos for key, cos in one["margin_cosine"].items() if key not in norms}
        nearest = max(others, key=lambda key: others[key])
        return f"{_three(others[nearest])} ({nearest})"

    return [
        HEAD,
        MARGIN,
        *(
            Column(
                f"ratio, {norm}",
                "margin of the head over that of the certified solution of that norm: 1 at it",
                lambda one, norm=norm: _three(one["margin_ratio"][norm]),
                "ratio",
            )
            for norm in norms
        ),
        Column(
            "ratio of draws, largest",
            "the largest such ratio of heads with another pairing, in the Frobenius norm",
            lambda one: _three(one["margin_ratio_null"]["largest"]),
        ),
        Column(
            "together",
            "share of draws, the head among them, whose ratio deviates as much, for all heads at "
            "once",
            lambda one: _two(one["margin_p_together"]),
        ),
        *(
            Column(
                f"cosine, {norm}",
                "cosine of the matrix of the head with the margin solution of that norm",
                lambda one, norm=norm: _three(one["margin_cosine"][norm]),
                "cosine",
            )
            for norm in norms
        ),
        Column(
            "largest other cosine",
            "the same with all else that is asked about: regressions, the mean difference",
            nearest_other,
        ),
        Column(
            "queries",
            "queries whose selections the margin problem keeps",
            lambda one: f"{one['margin_queries']:,.0f}",
        ),
        Column(
            "constraints",
            "tokens that these queries do not select: each has to score lower",
            lambda one: f"{one['margin_rows']:,.0f}",
        ),
        Column(
            "norms of", "the matrix whose norms are compared", lambda one: one["margin_space"]
        ),
    ]  # fmt: skip


def margin_table(found: list[Head]) -> Table:
    """A row for each head that was compared with margin solutions.

    Args:
        found: Heads, as ``heads`` returns them.
    """
    asked = [one for one in found if one["margin_p"] is not None]
    return written(margin_columns(list(asked[0]["margin_ratio"])), asked)


def control_columns(norms: Sequence[str]) -> list[Column]:
    """The columns of ways in which heads of a control were made, compared in these norms."""

    def median(arm: xr.Dataset, of: str, norm: str) -> str:
        return _three(float(arm[of].sel(norm=norm).median()))

    return [
        Column("made", "how the heads were made", lambda arm: arm["arm"].item()),
        Column("heads", "how many there are", lambda arm: str(arm["right"].size)),
        Column(
            "as it should be",
            "of how many the audit says what is true",
            lambda arm: str(arm["right"].to_numpy().sum()),
        ),
        *(
            Column(
                f"median {word}, {norm}",
                f"the {word} as among margin solutions, in the middle of these heads",
                lambda arm, of=of, norm=norm: median(arm, of, norm),
                f"median {word}",
            )
            for word, of in (("ratio", "margin_ratio"), ("cosine", "margin_cosine"))
            for norm in norms
        ),
        Column(
            "verdicts",
            "what the audit says of them, with counts",
            lambda arm: counted(Counter(arm["verdict"].to_numpy().tolist())),
        ),
    ]


def control_table(control: xr.Dataset) -> Table:
    """A row for each way in which heads of the control were made.

    Args:
        control: What ``positive_control`` returned.
    """
    arms = control["arm"].to_numpy().tolist()
    columns = control_columns(control["norm"].to_numpy().tolist())
    return written(columns, (control.sel(arm=arm) for arm in arms))


def prompt_columns(errors: Sequence[str]) -> list[Column]:
    """The columns of heads that were asked how long prompts must be, for these errors."""

    def length(one: Head, error: str) -> str:
        found = one["required_length"][error]
        return "over 1e12" if found is None else f"{found:,.0f}"

    return [
        HEAD,
        Column(
            "score deviation",
            "standard deviation of the scores of a query; median over queries",
            lambda one: _two(one["score_deviation"]),
        ),
        Column(
            "horizon",
            "root mean square of the scores of independent keys and queries",
            lambda one: _two(one["horizon"]),
        ),
        Column(
            "defect",
            "error that no length removes, as keys and values are not Gaussian; median over "
            "queries",
            lambda one: percent(one["defect"]),
        ),
        *(
            Column(
                f"tokens for {percent(float(error))}",
                "length of a prompt with that relative error; median over queries",
                lambda one, error=error: length(one, error),
                "tokens for",
            )
            for error in errors
        ),
        Column("prompt", PROMPT.meaning, lambda one: one["prompt"]),
    ]


def prompt_table(found: list[Head]) -> Table:
    """A row for each head that was asked how long its prompts must be.

    Args:
        found: Heads, as ``heads`` returns them.
    """
    asked = [one for one in found if asked_for_prompts([one])]
    errors = list(next((one["required_length"] for one in asked), {}))
    return written(prompt_columns(errors), asked)
