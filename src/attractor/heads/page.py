"""The page on an audit of the heads of a model, with texts to be looked at."""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from attractor.heads import plots
from attractor.heads.audit.columns import (
    control_table,
    head_table,
    limits_in_reach,
    margin_table,
    null_table,
    percent,
    prompt_table,
)
from attractor.heads.audit.examples import attention_examples
from attractor.heads.audit.result import (
    BEATS_NULLS,
    UNTESTED,
    Audit,
    Margin,
    accuracy_seen,
    asked_for_margins,
    asked_for_prompts,
    by_clearness,
    control_seen,
    heads,
    map_seen,
    name,
    texts_seen,
    verdict,
)
from attractor.heads.audit.summary import curve_numbers, glossary, summary
from attractor.heads.audit.words import (
    calibration_sentence,
    control_sentence,
    curves_sentence,
    head_line,
    prompt_sentence,
)
from attractor.heads.captured.captured import Captured
from attractor.heads.checkpoints._learning_curves import learning_curves
from attractor.heads.checkpoints.checkpoint_result import (
    CheckpointAudit,
    by_direction,
    movement_sentences,
    movement_table,
    movements_of,
)
from attractor.plots.design.description import description
from attractor.report.folder import ReportFolder, report_folder
from attractor.report.page import FigureFile, Link, Section, Table
from attractor.results.provenance import Provenance
from attractor.support.storage import save_netcdf
from attractor.support.storage.markers import AUDIT

if TYPE_CHECKING:
    import xarray as xr


PAGE = "index.html"
"""The page."""
NUMBERS = "audit.json"
"""An object for each head."""
CAPTURED = Path("capture") / "heads.nc"
"""What was captured from a model for the audit; in a folder of its own, as it may be large."""
SHOWN = 5
"""The clearest heads, and the least clear ones, whose attention on texts is drawn."""
ASIDE = ("p", "chance", "prompt")
"""Columns that the page's width has no room for, which stand in a picture or a section."""
MOST_ROWS = 144
"""Rows of the table of heads on the page."""

MAP = FigureFile(
    "map",
    "Layers and heads. Shade: how far the accuracy of a rule learned from the head's selections is "
    "above that of its own null draws, in their standard deviations. Number: that accuracy, on "
    "other documents. Word: what the head selects. Frame: heads that beat the draws of all heads "
    "together.",
)
MAP_UNTESTED = "Layers and heads, none of which was tested. Word: what the head selects."
ACCURACY = FigureFile(
    "accuracy",
    "The accuracy of every head on documents that nothing was learned from, with its 95 % interval "
    "over documents, against the accuracies of its null draws, each learned from its own "
    "selections; and what simpler rules come to.",
)
CLEAREST = FigureFile(
    "tokens",
    "The attention of the clearest heads on the same texts, which were not chosen by what the "
    "heads do there. A query has a box; the content token that it attends to most is underlined.",
)
LEAST_CLEAR = FigureFile(
    "tokens_least_clear", "The attention of the least clear heads that were tested, likewise."
)
SOME = dataclasses.replace(CLEAREST, caption=CLEAREST.caption.replace("the clearest", "some"))
WORDS = "What the words mean"
CURVES = FigureFile(
    "curves",
    "Accuracy on the same test documents as rules are learned from more and more documents, with "
    "its 95 % interval over test documents: of the clearest heads and the least clear ones, each "
    "beside the band of its null draws, learned from their own selections on the same documents.",
)
CONTROL = FigureFile(
    "control",
    "Heads of known place, each twice: its margin ratio in the Frobenius and in the nuclear norm. "
    "From the line on it is at the margin solution, if no other estimate is nearer. Behind each "
    "row stands how many of its heads the audit found to be at one: in the first two rows, in the "
    "norm that their optimizer favors; in the others, in any.",
)
CHECKPOINTS = FigureFile(
    "checkpoints",
    "Layers and heads. Left: the norm of the matrix of a head over that at the checkpoint. Right: "
    "the cosine of its tangential change with the margin solution of what it selects now, in "
    "standard deviations from draws of heads turned at random at both checkpoints, with selections "
    "of their own; blue is toward that solution, orange away from it.",
)
MOVEMENT = (
    "The solution is made of what a head selects now, and heads that are turned at random have "
    "positive cosines with theirs, too. So a head is toward or away only where it is beyond those "
    "draws, for all heads and checkpoints together."
)
MARGIN = (
    "A head at a margin solution attends to the tokens it selects with the largest margin that a "
    "matrix of its norm can have: the direction in which gradient descent saturates attention, of "
    "least Frobenius norm for one matrix, of least nuclear norm for factors K and Q. The ratio "
    "is the head's margin over that of the certified solution; draws are heads whose queries are "
    "turned at random about their mean. Compared are matrices between the head's own rows of keys "
    "and of queries. As heads are at the solution of the texts they were trained on and nowhere "
    "near that of others, a large ratio is also a test of membership."
)
P_VALUE = (
    "What p says: under the model that, given keys, queries and the query-free part of the scores, "
    "the pairing is a uniformly random rotation in the head's own space as trained, such an "
    "accuracy is rare. It is a randomization model, not sampling of heads. And what a head "
    "selects is a property of these texts: other texts may show other heads."
)


def write_audit_report(
    directory: str | os.PathLike[str],
    audit: Audit,
    captured: Captured,
    *,
    source: str,
    provenance: Provenance | None = None,
    captures: Sequence[Path] = (),
    control: xr.Dataset | None = None,
    checkpoints: CheckpointAudit | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Writes ``index.html``, its pictures as PNG and SVG, ``audit.nc`` and ``audit.json``.

    The folder appears whole or not at all.

    Args:
        directory: Where to; a new or empty folder, or one that an earlier audit fills.
        audit: What was found.
        captured: What was audited.
        source: What was read, a line for the page.
        provenance: Where it comes from; put into every file that can hold it.
        captures: Files of what was captured, which the folder holds, too.
        control: What ``positive_control`` found, if it was asked for.
        checkpoints: What ``audit_checkpoints`` found, if it was asked for.
        progress: Whether to show progress.

    Returns:
        What ``audit.json`` holds.

    Raises:
        InvalidInputError: If the folder holds something else.
    """
    data = audit.data
    numbers = summary(audit, control, checkpoints)
    ordered = by_clearness(heads(data))
    names = {"name": NUMBERS, "page": PAGE, "marker": AUDIT}
    title = "What the heads select, against chance"
    with report_folder(
        directory, title, source, numbers, "audit", provenance=provenance, **names
    ) as report:
        audit.save(report.place / AUDIT)
        report.findings += [*numbers["findings"], ["Words: ", Link("what they mean", WORDS), "."]]
        tested = any(one["accuracy"] is not None for one in ordered)
        shown = MAP if tested else dataclasses.replace(MAP, caption=MAP_UNTESTED)
        figure = report.picture(shown, plots.audit_map_figure(data), map_seen(ordered))
        report.sections.append(Section("The heads", figure=figure))
        if asked_for_margins(ordered):
            report.sections += _margins(ordered)
        if checkpoints is not None:
            report.sections.append(_checkpoints(checkpoints, report))
        report.sections += _tables(ordered)
        parts = _clearest_and_least_clear(ordered)
        report.sections.append(_texts(parts, audit, captured, report))
        if tested:
            report.sections.append(_accuracies(audit, report))
            report.sections.append(_curves(parts, audit, captured, report, numbers, progress))
        if limits_in_reach(ordered):
            report.sections.append(_prompts(ordered))
        if control is not None:
            report.sections.append(_control(control, report))
        report.sections += [
            Section(
                "What was not asked, and why",
                paragraphs=_not_asked(audit, ordered, compared=checkpoints is not None),
                fold="closed",
            ),
            _words(ordered, control=control is not None, checkpoints=checkpoints is not None),
        ]
        if captures:
            place = report.place / CAPTURED.parent
            place.mkdir()
            for file in captures:  # which stay where they are until all of it is written
                try:
                    os.link(file, place / file.name)
                except OSError:  # a file system without links
                    shutil.copyfile(file, place / file.name)
    return numbers


def _accuracies(audit: Audit, report: ReportFolder) -> Section:
    found = heads(audit.data)
    figure = report.picture(ACCURACY, plots.audit_accuracy_figure(audit.data), accuracy_seen(found))
    nulls = Table(*null_table(audit.data), caption="Heads that are beyond each null.")
    said = [P_VALUE, calibration_sentence(audit.data)]
    return Section("Accuracy against the nulls", said, nulls, figure, fold="closed")


def _tables(ordered: list[dict[str, Any]]) -> list[Section]:
    """The heads one by one: those that were told apart, then the others."""
    first = [one for one in ordered if one["learnable"] in BEATS_NULLS]
    rest = [one for one in ordered if one["learnable"] not in BEATS_NULLS]
    title = f"The {len(rest):,} other heads" if first else "Head by head"
    table = functools.partial(head_table, without=ASIDE)
    return _parted("Heads that were told apart", first, title, rest, table)


def _parted(
    title: str,
    first: list[dict[str, Any]],
    rest_title: str,
    rest: list[dict[str, Any]],
    table: Callable[[list[dict[str, Any]]], tuple[Sequence[str], Sequence[Sequence[str]]]],
    said: Sequence[str] = (),
) -> list[Section]:
    """A table of the heads that say something, and one of the others behind a fold."""
    sections = []
    if first or said:
        shown = Table(*table(first[:MOST_ROWS])) if first else None
        sections.append(Section(title, [*_beyond(first), *said], shown))
    if rest:
        shown = Table(*table(rest[:MOST_ROWS]))
        sections.append(Section(rest_title, _beyond(rest), shown, fold="closed"))
    return sections


def _beyond(found: list[dict[str, Any]]) -> list[str]:
    left = len(found) - MOST_ROWS
    return [f"{left:,} more heads follow in {NUMBERS}."] if left > 0 else []


def _clearest_and_least_clear(ordered: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The heads that pictures show, none twice; some, where none was tested."""
    tested = [one for one in ordered if one["learnable"] not in UNTESTED]
    if not tested:
        return [ordered[:SHOWN]]
    clearest = tested[: min(SHOWN, -(-len(tested) // 2))]
    return [clearest, tested[len(clearest) :][-SHOWN:]]


def _texts(
    parts: list[list[dict[str, Any]]], audit: Audit, captured: Captured, report: ReportFolder
) -> Section:
    """Pictures of the attention of the clearest and the least clear heads."""
    several = len(parts) > 1
    named = {"The clearest heads": CLEAREST, "The least clear heads": LEAST_CLEAR}
    sections = []
    for (title, file), part in zip(
        (named if several else {"Some heads": SOME}).items(), parts, strict=True
    ):
        if not part:
            continue
        chosen = [(one["layer"], one["head"]) for one in part]
        shown = attention_examples(captured, audit.data, chosen)
        save_netcdf(shown, report.place / f"{file.name}.nc")
        headings = {name(one): head_line(one) for one in part}
        drawn = plots.attention_text_figure(shown, headings)
        sections.append(Section(title, figure=report.picture(file, drawn, texts_seen(shown))))
    return Section("Attention on texts", parts=sections, fold="closed")


def _curves(
    parts: list[list[dict[str, Any]]],
    audit: Audit,
    captured: Captured,
    report: ReportFolder,
    numbers: dict[str, Any],
    progress: bool,
) -> Section:
    """How the accuracies of the same heads come about; adds their numbers."""
    shown = [(one["layer"], one["head"]) for part in parts for one in part]
    curves = learning_curves(captured, audit, shown, progress=progress)
    save_netcdf(curves, report.place / f"{CURVES.name}.nc")
    numbers["learning_curves"] = curve_numbers(curves)
    drawn = plots.audit_curves_figure(curves)
    figure = report.picture(CURVES, drawn, description(drawn))
    return Section("Learning curves", [curves_sentence(curves)], figure=figure, fold="closed")


def _prompts(ordered: list[dict[str, Any]]) -> Section:
    reached = limits_in_reach(ordered)
    return Section(
        "How long prompts must be",
        [
            prompt_sentence(ordered),
            "For a head to act as over infinitely many tokens of the law of its keys and values. "
            "The theory takes tokens as independent: masks and positions are outside of it. Where "
            "the defect, which no length removes, is above 10 %, no prompt brings that error; the "
            f"table has the others. {NUMBERS} has all.",
            *_beyond(reached),
        ],
        Table(*prompt_table(reached[:MOST_ROWS])),
        fold="closed",
    )


def _margins(ordered: list[dict[str, Any]]) -> list[Section]:
    asked = [one for one in ordered if one.get("margin_p") is not None]
    words = (str(Margin.AT), str(Margin.ON_THE_WAY))
    there = sorted(
        (one for one in asked if one["margin"].startswith(words)),
        key=lambda one: not one["margin"].startswith(Margin.AT),
    )
    rest = [one for one in asked if one not in there]
    title = "Seen from margin solutions: the other heads"
    return _parted("Margin solutions", there, title, rest, margin_table, [MARGIN])


def _control(control: xr.Dataset, report: ReportFolder) -> Section:
    save_netcdf(control, report.place / f"{CONTROL.name}.nc")
    made = ", ".join(f"{control.attrs[name]:,} {name}" for name in ("sequences", "tokens"))
    lines = [
        control_sentence(control),
        f"Heads of width {control.attrs['width']:,} on {made}, trained with exact gradients for "
        f"{control.attrs['steps']:,} steps, captured and audited as the heads above.",
    ]
    drawn = plots.margin_control_figure(control)
    figure = report.picture(CONTROL, drawn, control_seen(control))
    table = Table(*control_table(control))
    return Section("The positive control", lines, table, figure, fold="closed")


def _checkpoints(found: CheckpointAudit, report: ReportFolder) -> Section:
    found.save(report.place / f"{CHECKPOINTS.name}.nc")
    every = by_direction(movements_of(found.data))
    lines, drawn = movement_sentences(found.data), plots.checkpoint_figure(found.data)
    return Section(
        "Which way heads move",
        [MOVEMENT, *_beyond(every)],
        Table(*movement_table(every[:MOST_ROWS])),
        report.picture(CHECKPOINTS, drawn, " ".join(lines)),
    )


def _words(ordered: list[dict[str, Any]], *, control: bool, checkpoints: bool) -> Section:
    groups = glossary(
        margins=control or asked_for_margins(ordered),
        checkpoints=checkpoints,
        prompts=bool(limits_in_reach(ordered)),
    )
    parts = [
        Section(title, table=Table(("word", "meaning"), entries, words=True))
        for title, entries in groups.items()
    ]
    return Section(WORDS, parts=parts, fold="closed")


def _not_asked(audit: Audit, ordered: list[dict[str, Any]], *, compared: bool) -> list[str]:
    """What this audit does not say."""
    data = audit.data
    lines = []
    for one in ordered:
        if one["learnable"] in UNTESTED:
            lines.append(f"{name(one)}: {verdict(one)}.")
    if len(lines) > SHOWN:
        more = len(lines) - SHOWN
        lines = [*lines[:SHOWN], f"And {more} further heads, which {NUMBERS} names."]
    if asked_for_prompts(ordered) and not limits_in_reach(ordered):
        lines.append(
            "How long prompts must be for heads to be near their limit: their keys and values are "
            f"so far from Gaussian that no length brings 10 %; {NUMBERS} has the numbers."
        )
    if not asked_for_margins(ordered):
        lines.append(
            "Whether heads are at a margin solution was not asked. A head at exactly the margin "
            "solution of its training texts is nowhere near that of others; where these are its "
            "training texts, say so with --training-texts."
        )
    if not any(one.get("q") is not None for one in ordered):
        draws, alpha = data.attrs["draws"], data.attrs["alpha"]
        lines.append(
            f"Too few nulls for false discovery rates: no p of {draws} draws is below "
            f"{percent(1 / (draws + 1))}, and {percent(alpha)} needs {round(10 / alpha) - 1} draws."
        )
    if not compared:
        lines.append(
            "How heads came to be what they are: checkpoints of training were not compared; "
            "--checkpoints does."
        )
    lines.append("What heads are for: nothing here is a verdict about that.")
    return lines
