"""What an audit found of every head."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from attractor.heads.captured.word import Word
from attractor.results import Plotted, Printed, load_data, save_data

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
        from attractor.heads.audit.heads import by_clearness, heads
        from attractor.heads.audit.seen import map_seen

        return map_seen(by_clearness(heads(self.data)))

    def _print(self, console: Console) -> None:
        from attractor.heads.audit.columns import head_table, layer_table
        from attractor.heads.audit.heads import asked_for_margins, by_clearness, heads
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
    from rich.table import Table

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
