"""The page on a corpus: its structure, what theory covers of it, and where training went."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from attractor import plots
from attractor.next_token import CorpusStructure
from attractor.next_token._realizable_part import RealizablePart
from attractor.next_token.conflicting_part import ConflictingPart
from attractor.next_token.corpus_training import TWO_STAGES, TrainedCorpus
from attractor.next_token.linear_view import LinearView
from attractor.next_token.vocabulary_embeddings import VocabularyEmbeddings
from attractor.plots.corpus import MOST_TOKENS
from attractor.provenance import Provenance
from attractor.report.corpus_words import (
    GLOSSARY,
    collocation_sentence,
    conflicting_sentences,
    contexts_sentence,
    linear_sentences,
    orders_sentence,
    part_sentence,
    percent,
    realizability_sentences,
    training_sentences,
)
from attractor.report.folder import ReportFolder, report_folder
from attractor.report.page import FigureFile, Section, Table
from attractor.storage import save_netcdf

MOST_RELATIONS = 20_000
"""Relations listed in the summary; of more, the queries that come first."""

ASSUMPTIONS = FigureFile(
    "assumptions", "The share of samples, by weight, that is in the way of each assumption."
)
COLLOCATION = FigureFile(
    "collocation", "Which token follows a token that stands alone, as chains of tokens."
)
CLASSES = FigureFile("classes", "The class of every token under every query.")
ORDERS = FigureFile(
    "orders",
    "The orders under the queries with most relations: optimal tokens above, non-optimal ones "
    "below; the query in bold.",
)
GRAPHS = FigureFile(
    "graphs",
    "The graphs of preferred tokens under the queries with most cycles: tokens of one strongly "
    "connected component share a color; the query in bold.",
)
STAGES = FigureFile(
    "two_stages",
    "How far both layers are from the directions predicted, their losses, and the attention on "
    "the tokens that explain the labels, in the sample where it is least. A layer that points "
    "there exactly, as the first one does from zero with orthonormal embeddings, has no place on "
    "a logarithmic axis.",
)
LIMITS = FigureFile(
    "conflicting_labels",
    "How far attention is from the direction predicted, with and without the part in the cyclic "
    "subspace; that part and its distance from the finite part predicted; the loss above its "
    "floor.",
)


@dataclasses.dataclass
class CorpusReport:
    """The findings on a corpus.

    Attributes:
        structure: Its structure.
        embeddings: The vectors of its tokens.
        notices: Further remarks, in a sentence each.
        conflicting: The part with conflicting labels, of a corpus that is not realizable.
        part: A realizable part of it, or None.
        linear: The corpus as a linear decoder sees it, or None.
        trained: What was trained.
    """

    structure: CorpusStructure
    embeddings: VocabularyEmbeddings
    notices: list[str] = dataclasses.field(default_factory=list)
    conflicting: ConflictingPart | None = None
    part: RealizablePart | None = None
    linear: LinearView | None = None
    trained: list[TrainedCorpus] = dataclasses.field(default_factory=list)

    def findings(self) -> list[str]:
        """The findings, in a sentence each; whether it is realizable comes first."""
        found = [*realizability_sentences(self.structure), contexts_sentence(self.structure)]
        found.append(self.embeddings.sentence())
        if self.conflicting is not None:
            found += conflicting_sentences(self.conflicting)
        if self.part is not None:
            found.append(part_sentence(self.part))
        if self.linear is not None:
            found += linear_sentences(self.linear)
        for trained in self.trained:
            found += training_sentences(trained)
        return found

    def summary(self) -> dict[str, Any]:
        """The findings, as plain values of JSON."""
        orders = self.structure.orders
        relations = np.cumsum(np.bincount(orders.edges[:, 0], minlength=1))
        listed = np.unique(orders.edges[:, 0])
        most = int((relations[listed] <= MOST_RELATIONS).sum()) if len(listed) else 0
        found = self.structure.summary(most=most)
        found["queries_listed"] = most
        found["context_length"] = self.structure.corpus.context_length
        found["embeddings"] = self.embeddings.summary()
        found["notices"] = self.notices
        if self.conflicting is not None:
            found["conflicting_labels"] = self.conflicting.summary()
        if self.part is not None:
            found["realizable_part"] = {
                "share": self.part.share,
                "vocabulary": self.part.corpus.vocabulary_size,
                "removed": self.part.removed,
            }
        if self.linear is not None:
            found["linear"] = self.linear.summary()
        if self.trained:
            found["training"] = [trained.summary for trained in self.trained]
        return found


def write_corpus_report(
    directory: str | os.PathLike[str],
    report: CorpusReport,
    *,
    source: str,
    provenance: Provenance | None = None,
) -> dict[str, Any]:
    """Writes ``report.html``, figures as PNG and SVG, and the numbers as JSON and NetCDF.

    The folder appears whole or not at all.

    Args:
        directory: Where to; a new or empty folder, or one that an earlier report fills.
        report: What was found.
        source: What was read, a line for the page.
        provenance: Where it comes from; put into every file that can hold it.

    Returns:
        What ``summary.json`` holds.

    Raises:
        InvalidInputError: If the folder holds something else.
    """
    summary, title = report.summary(), "What a corpus hides"
    with report_folder(directory, title, source, summary, provenance=provenance) as folder:
        folder.findings += [*report.findings(), *report.notices]
        folder.sections += [
            _assumptions(report, folder),
            *_structure(report.structure, "", folder),
            *_conflicting(report, folder),
            *_part(report, folder),
            *(_training(trained, folder) for trained in report.trained),
            Section("What the words mean", table=GLOSSARY),
        ]
    return summary


def _assumptions(report: CorpusReport, folder: ReportFolder) -> Section:
    checks = report.structure.assumptions
    folder.picture(ASSUMPTIONS, plots.assumptions_figure(checks))
    rows = [
        (
            check.name, check.statement, "yes" if check.met else "no",
            percent(check.share) if check.share else "-", check.found,
            "; ".join(check.examples[:3]) or "-",
        )
        for check in checks
    ]  # fmt: skip
    header = ("assumption", "what it says", "met", "samples in its way", "found", "such as")
    return Section("What theory assumes", table=Table(header, rows, words=True), figure=ASSUMPTIONS)


def _structure(structure: CorpusStructure, suffix: str, folder: ReportFolder) -> list[Section]:
    """Collocation, orders and classes, where there are any; ``suffix`` names a part."""
    of = " of the realizable part" if suffix else ""
    found, orders = structure.collocation, structure.orders
    sections = []

    def add(title: str, words: list[str], file: FigureFile, drawing: Figure) -> None:
        figure = folder.picture(dataclasses.replace(file, name=f"{file.name}{suffix}"), drawing)
        sections.append(Section(f"{title}{of}", words, figure=figure))

    if (found.next_token >= 0).any():
        words = [collocation_sentence(structure)]
        add("The collocation", words, COLLOCATION, plots.collocation_figure(found))
    if len(orders.edges):
        add("The orders", [orders_sentence(structure)], ORDERS, plots.orders_figure(orders))
        if orders.size <= MOST_TOKENS:
            add("Tokens under every query", [], CLASSES, plots.class_map_figure(orders))
    return sections


def _conflicting(report: CorpusReport, folder: ReportFolder) -> list[Section]:
    if report.conflicting is None:
        return []
    figure, graphs = None, report.conflicting.graphs
    if len(graphs.edges):
        figure = folder.picture(GRAPHS, plots.priority_figure(graphs))
    words = conflicting_sentences(report.conflicting)
    return [Section("Labels in conflict", words, figure=figure)]


def _part(report: CorpusReport, folder: ReportFolder) -> list[Section]:
    from attractor.next_token import corpus_structure

    if report.part is None:
        return []
    head = Section("The largest realizable part found", [part_sentence(report.part)])
    return [head, *_structure(corpus_structure(report.part.corpus), "_realizable", folder)]


def _training(trained: TrainedCorpus, folder: ReportFolder) -> Section:
    two = trained.kind == TWO_STAGES
    figure, draw = (STAGES, plots.two_stage_figure) if two else (LIMITS, plots.limits_figure)
    folder.picture(figure, draw(trained.data))
    save_netcdf(trained.data, folder.place / f"{figure.name}.nc")
    title = "Training in two stages" if two else "Training with conflicting labels"
    return Section(title, training_sentences(trained), figure=figure)
