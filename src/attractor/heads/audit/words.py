"""An audit in sentences."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binomtest

from attractor.heads.audit.columns import counted, interval, null_mean, percent, share
from attractor.heads.audit.result import (
    BEATS_NULLS,
    UNTESTED,
    Learnable,
    Margin,
    asked_for_margins,
    asked_for_prompts,
    heads,
    name,
    selects,
    verdict,
)
from attractor.heads.captured.rows import LEAST_CANDIDATES, LEAST_DOCUMENTS
from attractor.heads.statistics.multiple import calibration

if TYPE_CHECKING:
    import xarray as xr


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
    return lines


def prompt_sentence(found: list[dict[str, Any]]) -> str:
    """How many heads need prompts of which length.

    Args:
        found: Heads, as ``heads`` returns them.
    """
    words = Counter(one["prompt"] for one in found if asked_for_prompts([one]))
    return f"Prompts that heads need to be near their limit: {counted(words)}."


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


def control_sentence(control: xr.Dataset) -> str:
    """What the positive control says of the power and the false alarms of margin verdicts.

    Args:
        control: What ``positive_control`` returned.
    """
    there = control["expected"].to_numpy().astype(bool)
    right = control["right"].to_numpy()
    parts = []
    for arm, found in zip(control["arm"].to_numpy()[there], right[there], strict=True):
        ends = binomtest(int(found.sum()), found.size).proportion_ci()
        parts.append(
            f"{found.sum()} of {found.size} heads ({arm}) are found at the margin solution of "
            f"their norm [{share(float(ends.low))}, {share(float(ends.high))}]"
        )
    false = int((~right[~there]).sum())
    parts.append(f"{false} of {right[~there].size:,} that are not there are found at one")
    return f"Positive control: {'; '.join(parts)}."


def head_line(one: dict[str, Any]) -> str:
    """A head in one line: its verdict, its accuracy beside those of the nulls, what it selects.

    Args:
        one: A head, as ``heads`` returns it.
    """
    return (
        f"{name(one)}   {verdict(one)}: accuracy {interval(one, 'accuracy')}, nulls "
        f"{null_mean(one)}, chance {share(one.get('chance'))}; selects: {selects(one)}"
    )


def _kind(selection: str) -> str:
    """What a head selects, whichever place it is."""
    return "a fixed offset" if selection.startswith("offset") else selection


def _heads(count: int) -> str:
    return f"{count:,} head" + "s" * (count != 1)
