"""An audit in words: its sentence of counts, and its tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.audit.calibration import calibration
from attractor.audit.heads import (
    BEATS_NULLS,
    UNTESTED,
    asked_for_margins,
    asked_for_prompts,
    by_clearness,
    heads,
    name,
    selects,
    verdict,
)
from attractor.audit.result import Learnable, Margin
from attractor.audit.rows import LEAST_CANDIDATES, LEAST_DOCUMENTS

if TYPE_CHECKING:
    import xarray as xr

Rows = list[tuple[str, ...]]
"""Cells, a row at a time."""


def sentence(data: xr.Dataset) -> str:
    """The counts of an audit, and what was not asked, in one sentence.

    Args:
        data: The arrays of an audit.
    """
    return _sentence(heads(data), data.attrs)


def _sentence(found: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    beat = sum(one["learnable"] in BEATS_NULLS for one in found)
    pair = "pairs" if beat == 1 else "pair"
    counts = Counter(one["learnable"] for one in found)
    untested = Counter(verdict(one) for one in found if one["learnable"] in UNTESTED)
    parts = []
    if sum(untested.values()) < len(found):
        parts.append(
            f"{beat if beat else 'None'} of {_heads(len(found))} {pair if beat else 'pairs'} keys "
            f"with queries in a way that {settings['draws']:,} random pairings do not "
            f"({percent(settings['alpha'])} for all together)"
        )
    for word, rule in (
        (Learnable.POSITIONAL, "a fixed offset"),
        (Learnable.QUERY_FREE, "a rule that ignores the query"),
    ):
        if counts[word]:
            parts.append(f"{counts[word]} of those {rule} predicts as well")
    if untested:
        why = next(iter(untested)) if len(untested) == 1 else counted(untested)
        which = f"{sum(untested.values()):,}" if parts else f"None of {_heads(len(found))}"
        tested = "could not be tested" if parts else "could be tested"
        parts.append(f"{which} {tested} ({why})")
    if counts[Learnable.TOO_FEW]:
        parts.append(
            f"rules are learned from {LEAST_DOCUMENTS} documents or more with {LEAST_CANDIDATES} "
            "tokens to choose among, and tested on as many others"
        )
    if asked_for_margins(found):
        margins = Counter(one["margin"] for one in found)
        there = {word: n for word, n in margins.items() if word.startswith(Margin.AT)}
        parts.append(counted(Counter(there)) if there else "none is at a margin solution")
    else:
        parts.append(
            "whether any head is at a margin solution was not asked: only its training texts could "
            "show it"
        )
    return "; ".join(parts) + "."


def sentences(data: xr.Dataset) -> list[str]:
    """The findings, a sentence each, the counts first.

    Args:
        data: The arrays of an audit.
    """
    found = heads(data)
    lines = [_sentence(found, data.attrs)]
    selection = Counter(_kind(one["selection"]) for one in found)
    if selection:
        lines.append(f"What heads select: {counted(selection)}.")
    if asked_for_margins(found):
        margins = Counter(one["margin"] for one in found)
        lines.append(f"Where heads are, seen from margin solutions: {counted(margins)}.")
    prompt = Counter(one["prompt"] for one in found if asked_for_prompts([one]))
    if prompt:
        lines.append(f"Prompts that heads need to be near their limit: {counted(prompt)}.")
    return lines


def head_table(
    found: list[dict[str, Any]], *, without: Collection[str] = ()
) -> tuple[tuple[str, ...], Rows]:
    """Names of columns, and a row for each head, in the order given.

    Args:
        found: Heads, as ``heads`` returns them.
        without: Columns to leave out.
    """
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "head": name,
        "pairing": verdict,
        "accuracy": lambda one: _interval(one, "accuracy"),
        "nulls": lambda one: _number((one["accuracy_null"] or {}).get("mean")),
        "no query": lambda one: _number(one.get("accuracy_query_free")),
        "offset": lambda one: _number(one.get("accuracy_offset")),
        "ahead": lambda one: _interval(one, "advantage"),
        "chance": lambda one: _number(one.get("chance")),
        "p": lambda one: _digits(one["p"]),
        "together": lambda one: _digits(one["p_together"]),
        "selects": selects,
    }
    if asked_for_margins(found):
        columns["margin"] = lambda one: one["margin"]
    if asked_for_prompts(found):
        columns["prompt"] = lambda one: one["prompt"].partition(":")[0]
    for column in without:
        columns.pop(column)
    rows = [tuple(cell(one) for cell in columns.values()) for one in found]
    return tuple(columns), rows


def layer_table(found: list[dict[str, Any]]) -> tuple[tuple[str, ...], Rows]:
    """Names of columns, and the counts of verdicts of each layer in a row.

    Args:
        found: Heads, as ``heads`` returns them.
    """
    words = [str(word) for word in Learnable if any(one["learnable"] == word for one in found)]
    rows: Rows = []
    for layer in sorted({one["layer"] for one in found}):
        here = [one for one in found if one["layer"] == layer]
        counts = Counter(one["learnable"] for one in here)
        first = by_clearness(here)[0]
        rows.append(
            (
                str(layer),
                *(str(counts[word]) for word in words),
                "-"
                if first["accuracy"] is None
                else f"{name(first)} ({_interval(first, 'accuracy')}, "
                f"nulls {_number((first['accuracy_null'] or {}).get('mean'))})",
            )
        )
    return ("layer", *words, "clearest head (accuracy)"), rows


def null_table(data: xr.Dataset) -> tuple[tuple[str, ...], Rows]:
    """Names of columns, and for each null how many heads beat its draws, all heads together.

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
        rows.append((f"{null}{used}", f"{beat} of {len(tested)}", _number(mean)))
    return ("null", "heads beyond it", "mean accuracy"), rows


def calibration_sentence(data: xr.Dataset) -> str:
    """How many draws of the null of the verdict are told apart, taken for the heads in turn.

    Args:
        data: The arrays of an audit.
    """
    found = calibration(data).sel(null=data.attrs["null"])
    return (
        f"Each of the {found.attrs['draws']:,} draws of {data.attrs['null']} was taken for the "
        f"heads in turn: tested for all heads together, {int(found['rejected']):,} are told apart; "
        f"tested head by head, {int(found['rejected_alone']):,}. Tests that treat heads and draws "
        f"alike tell at most {percent(found.attrs['alpha'])} of them apart, all heads together: "
        "this shows that the tests do, not that the null is fair to heads."
    )


def curves_sentence(curves: xr.Dataset) -> str:
    """From how many documents on the heads of learning curves are above all of their draws.

    Args:
        curves: What ``learning_curves`` returns.
    """
    above = curves["accuracy"] > curves["accuracy_null"].max("draw")
    documents = curves["documents"].to_numpy()
    leaves: dict[int, list[str]] = {}
    for curve, outside in enumerate(above.transpose("curve", "size").to_numpy()):
        if outside[-1]:
            inside = np.flatnonzero(~outside)
            first = inside[-1] + 1 if len(inside) else 0
            one = {axis: int(curves[axis][curve]) for axis in ("layer", "head")}
            leaves.setdefault(int(documents[curve, first]), []).append(name(one))
    stay = curves.sizes["curve"] - sum(map(len, leaves.values()))
    parts = [f"{', '.join(leaves[count])} from {count:,} documents on" for count in sorted(leaves)]
    parts += [f"{stay} of {curves.sizes['curve']} never or not to the end"] if stay else []
    return f"Above all of their {curves.attrs['draws']:,} draws: {'; '.join(parts)}."


def margin_table(found: list[dict[str, Any]]) -> tuple[tuple[str, ...], Rows]:
    """Names of columns, and a row for each head that was compared with margin solutions.

    Args:
        found: Heads, as ``heads`` returns them.
    """
    asked = [one for one in found if one["margin_p"] is not None]
    norms = list(asked[0]["margin_ratio"])
    header = ("head", "margin", *(f"ratio, {norm}" for norm in norms), "ratio of draws, largest",
        "together", *(f"cosine, {norm}" for norm in norms), "largest other cosine", "queries",
        "constraints", "norms of")  # fmt: skip
    rows: Rows = []
    for one in asked:
        cosines = one["margin_cosine"]
        others = {name: cosine for name, cosine in cosines.items() if name not in norms}
        nearest = max(others, key=lambda name: others[name])
        rows.append(
            (
                name(one),
                one["margin"],
                *(_three(one["margin_ratio"][norm]) for norm in norms),
                _three(one["margin_ratio_null"]["largest"]),
                _digits(one["margin_p_together"]),
                *(_three(cosines[norm]) for norm in norms),
                f"{_three(others[nearest])} ({nearest})",
                f"{one['margin_queries']:,.0f}",
                f"{one['margin_rows']:,.0f}",
                one["margin_space"],
            )
        )
    return header, rows


def control_sentence(control: xr.Dataset) -> str:
    """What the positive control says of the power and the false alarms of margin verdicts.

    Args:
        control: What ``positive_control`` returned.
    """
    from scipy.stats import binomtest

    there = control["expected"].to_numpy().astype(bool)
    right = control["right"].to_numpy()
    parts = []
    for arm, found in zip(control["arm"].to_numpy()[there], right[there], strict=True):
        ends = binomtest(int(found.sum()), found.size).proportion_ci()
        parts.append(
            f"{found.sum()} of {found.size} heads ({arm}) are found at the margin solution of "
            f"their norm [{_number(float(ends.low))}, {_number(float(ends.high))}]"
        )
    false = int((~right[~there]).sum())
    parts.append(f"{false} of {right[~there].size:,} that are not there are found at one")
    return f"Positive control: {'; '.join(parts)}."


def control_table(control: xr.Dataset) -> tuple[tuple[str, ...], Rows]:
    """Names of columns, and a row for each way in which heads of the control were made.

    Args:
        control: What ``positive_control`` returned.
    """
    norms = control["norm"].to_numpy().tolist()
    header = ("made", "heads", "as it should be", *(f"median ratio, {norm}" for norm in norms),
        *(f"median cosine, {norm}" for norm in norms), "verdicts")  # fmt: skip
    rows: Rows = []
    for made in control["arm"].to_numpy().tolist():
        arm = control.sel(arm=made)
        medians = [
            _three(float(arm[of].sel(norm=norm).median()))
            for of in ("margin_ratio", "margin_cosine")
            for norm in norms
        ]
        verdicts = Counter(arm["verdict"].to_numpy().tolist())
        right = arm["right"].to_numpy()
        rows.append((made, str(right.size), str(right.sum()), *medians, counted(verdicts)))
    return header, rows


def prompt_table(found: list[dict[str, Any]]) -> tuple[tuple[str, ...], Rows]:
    """Names of columns, and a row for each head that was asked how long its prompts must be.

    Args:
        found: Heads, as ``heads`` returns them.
    """
    asked = [one for one in found if asked_for_prompts([one])]
    errors = list(next((one["required_length"] for one in asked), {}))
    header = ("head", "score deviation", "horizon", "defect", *(
        f"tokens for {percent(float(error))}" for error in errors
    ), "prompt")  # fmt: skip
    rows: Rows = []
    for one in asked:
        lengths = (one["required_length"][error] for error in errors)
        rows.append(
            (
                name(one),
                _digits(one["score_deviation"]),
                _digits(one["horizon"]),
                percent(one["defect"]),
                *("over 1e12" if length is None else f"{length:,.0f}" for length in lengths),
                one["prompt"],
            )
        )
    return header, rows


def head_line(one: dict[str, Any]) -> str:
    """A head in one line: its verdict, its accuracy beside those of the nulls, what it selects.

    Args:
        one: A head, as ``heads`` returns it.
    """
    null = (one["accuracy_null"] or {}).get("mean")
    return (
        f"{name(one)}   {verdict(one)}: accuracy {_interval(one, 'accuracy')}, nulls "
        f"{_number(null)}, chance {_number(one.get('chance'))}; selects: {selects(one)}"
    )


def percent(share: float | None) -> str:
    """A share as percent, to three digits."""
    return "-" if share is None else f"{100 * share:.3g} %"


def _kind(selection: str) -> str:
    """What a head selects, whichever place it is."""
    return "a fixed offset" if selection.startswith("offset") else selection


def counted(counts: Counter[str]) -> str:
    """Words with their counts, the most frequent first."""
    return ", ".join(f"{n:,} {word}" for word, n in counts.most_common())


def _heads(count: int) -> str:
    return f"{count:,} head" + "s" * (count != 1)


def _interval(one: dict[str, Any], of: str) -> str:
    low, high = one.get(f"{of}_low"), one.get(f"{of}_high")
    middle = _number(one.get(of))
    return middle if low is None or high is None else f"{middle} [{_number(low)}, {_number(high)}]"


def _three(value: float) -> str:
    """A ratio or cosine, three digits behind the point."""
    return f"{value:.3f}"


def _digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}".replace("0.", ".", 1)


def _number(value: float | None) -> str:
    """A share without its leading zero, two digits behind the point."""
    return "-" if value is None else f"{value:.2f}".replace("0.", ".", 1) if value < 1 else "1"
