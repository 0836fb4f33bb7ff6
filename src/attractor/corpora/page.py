"""The page on a corpus: its structure, what theory covers of it, and where training went."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from attractor.corpora import CorpusStructure, PartialOrders, QueryGraphs, corpus_structure, plots
from attractor.corpora.embeddings import VocabularyEmbeddings
from attractor.corpora.linear_view import LinearView
from attractor.corpora.page_words import (
    GLOSSARY,
    collocation_sentence,
    conflicting_row,
    conflicting_sentences,
    contexts_sentence,
    linear_row,
    linear_sentences,
    orders_row,
    orders_sentence,
    part_row,
    part_sentence,
    percent,
    realizability_sentences,
    realizable_row,
    training_sentences,
)
from attractor.corpora.parts import ConflictingPart, RealizablePart
from attractor.corpora.plots.corpus import MOST_TOKENS
from attractor.corpora.plots.orders import largest
from attractor.corpora.two_stages.corpus_training import TWO_STAGES, TrainedCorpus
from attractor.report import seen
from attractor.report.folder import ReportFolder, report_folder
from attractor.report.page import FigureFile, Folded, Section, Table, Words
from attractor.results.printed import Rows
from attractor.results.provenance import Provenance
from attractor.support.storage import save_netcdf

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


_STAGES_SEEN = {
    "feed_forward_distance": "1 - cosine of the feed-forward layer to its solution",
    "distance": "1 - cosine of attention to its solution",
    "feed_forward_loss": "loss of the first stage",
    "loss": "loss of the second stage",
    "least_optimal_attention": "least attention on the tokens that explain a label",
}
_LIMITS_SEEN = {
    "correlation_outside": "correlation without the cyclic part",
    "cyclic_norm": "norm of the cyclic part",
    "finite_distance": "its distance from the finite part predicted",
}


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

    def rows(self) -> Rows:
        """The same but training in a few words each, by what they are about."""
        corpus, vectors = self.structure.corpus, self.embeddings
        length = corpus.context_length
        before = "all tokens before a label" if length is None else f"the last {length:,} tokens"
        orthonormal = "orthonormal" if vectors.summary()["orthonormal"] else "not orthonormal"
        rows = [
            ("samples", f"{corpus.sentences:,} sentences, {len(corpus.positions):,} samples"),
            ("contexts", f"{before}, of a vocabulary of {corpus.vocabulary_size:,}"),
            ("embeddings", f"{vectors.name} in {vectors.dimension:,} dimensions, {orthonormal}"),
            ("realizable", realizable_row(self.structure)),
            ("relations", orders_row(self.structure)),
        ]
        if self.conflicting is not None:
            rows.append(("labels in conflict", conflicting_row(self.conflicting)))
        if self.part is not None:
            rows.append(("realizable part", part_row(self.part)))
        if self.linear is not None:
            rows.append(("linear decoder", linear_row(self.linear)))
        return rows

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
                "vocabulary": self.part.shared.vocabulary_size,
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
    with report_folder(
        directory, title, source, summary, "corpus", provenance=provenance
    ) as folder:
        folder.findings += _findings(report)
        folder.sections += [
            _assumptions(report, folder),
            *_structure(report.structure, "", folder),
            *_conflicting(report, folder),
            *_part(report, folder),
            *(_training(trained, folder) for trained in report.trained),
            Section("What the words mean", table=GLOSSARY),
        ]
    return summary


def _findings(report: CorpusReport) -> list[Words | Folded]:
    """What the page says first: whether theory covers the corpus, what does, where training went.

    How that was found is folded away.
    """
    realizability = realizability_sentences(report.structure)
    found: list[Words | Folded] = [realizability[0]]
    missing = [check.name for check in report.structure.assumptions if not check.met]
    if missing and not report.structure.realizable:
        found.append(f"Assumptions not met: {', '.join(missing)}.")
    conflicting = [] if report.conflicting is None else conflicting_sentences(report.conflicting)
    found += conflicting[:1]
    if report.part is not None:
        found.append(part_sentence(report.part))
    trainings = [training_sentences(trained) for trained in report.trained]
    for trained, sentences in zip(report.trained, trainings, strict=True):
        two = trained.kind == TWO_STAGES
        how = "Trained in two stages" if two else "Trained with conflicting labels"
        directions = sentences[1:3] if two else sentences[1:2]
        found += [f"{how}: {said[0].lower()}{said[1:]}" for said in directions]
    folded = {
        "The assumptions in the way, one by one": realizability[1:],
        "Labels in conflict": conflicting[1:],
        "A linear decoder": [] if report.linear is None else linear_sentences(report.linear),
        "Training": [one for sentences in trainings for one in sentences],
        "How samples and embeddings were made": [
            contexts_sentence(report.structure),
            report.embeddings.sentence(),
        ],
        "Further remarks": report.notices,
    }
    return [*found, *(Folded(title, points) for title, points in folded.items() if points)]


def _queries_seen(graphs: QueryGraphs) -> str:
    """The relations under the queries that are drawn."""
    queries = graphs.edges[:, 0]
    cyclic = np.bincount(queries[graphs.cyclic], minlength=graphs.size)
    drawn = largest(graphs)
    numbers = {
        f"query {graphs.vocabulary[query]}": (
            f"{seen.many(int((queries == query).sum()), 'relation')}, {cyclic[query]:,} on cycles"
        )
        for query in drawn
    }
    return seen.listed(numbers)


def _classes_seen(orders: PartialOrders) -> str:
    names, counts = np.unique(orders.class_table(), return_counts=True)
    return seen.listed(
        {str(name).replace("_", " "): str(count) for name, count in zip(names, counts, strict=True)}
    )


def _assumptions(report: CorpusReport, folder: ReportFolder) -> Section:
    checks = report.structure.assumptions
    figure = None
    if not all(check.met for check in checks):
        shares = {check.name: "met" if check.met else percent(check.share) for check in checks}
        figure = folder.picture(ASSUMPTIONS, plots.assumptions_figure(checks), seen.listed(shares))
    rows = [
        (
            check.name, check.statement, "yes" if check.met else "no",
            percent(check.share) if check.share else "-", check.found,
            "; ".join(check.examples[:3]) or "-",
        )
        for check in checks
    ]  # fmt: skip
    header = ("assumption", "what it says", "met", "samples in its way", "found", "such as")
    return Section("What theory assumes", table=Table(header, rows, words=True), figure=figure)


def _structure(structure: CorpusStructure, suffix: str, folder: ReportFolder) -> list[Section]:
    """Collocation, orders and classes, where there are any; ``suffix`` names a part."""
    of = " of the realizable part" if suffix else ""
    found, orders = structure.collocation, structure.orders
    sections = []

    def add(title: str, words: list[str], file: FigureFile, drawing: Figure, said: str) -> None:
        file = dataclasses.replace(file, name=f"{file.name}{suffix}")
        figure = folder.picture(file, drawing, said)
        sections.append(Section(f"{title}{of}", words, figure=figure))

    if (found.next_token >= 0).any():
        words = [collocation_sentence(structure)]
        add("The collocation", words, COLLOCATION, plots.collocation_figure(found), words[0])
    if len(orders.edges):
        words = [orders_sentence(structure)]
        add("The orders", words, ORDERS, plots.orders_figure(orders), _queries_seen(orders))
        if orders.size <= MOST_TOKENS:
            drawn = plots.class_map_figure(orders)
            add("Tokens under every query", [], CLASSES, drawn, _classes_seen(orders))
    return sections


def _conflicting(report: CorpusReport, folder: ReportFolder) -> list[Section]:
    if report.conflicting is None:
        return []
    figure, graphs = None, report.conflicting.graphs
    if len(graphs.edges):
        figure = folder.picture(GRAPHS, plots.priority_figure(graphs), _queries_seen(graphs))
    words = conflicting_sentences(report.conflicting)
    return [Section("Labels in conflict", words, figure=figure)]


def _part(report: CorpusReport, folder: ReportFolder) -> list[Section]:

    if report.part is None:
        return []
    head = Section("The largest realizable part found", [part_sentence(report.part)])
    return [head, *_structure(corpus_structure(report.part.shared), "_realizable", folder)]


def _training(trained: TrainedCorpus, folder: ReportFolder) -> Section:
    two = trained.kind == TWO_STAGES
    figure, draw = (STAGES, plots.two_stage_figure) if two else (LIMITS, plots.limits_figure)
    measures = _STAGES_SEEN if two else _LIMITS_SEEN
    one = trained.data.isel(instance=0) if two else trained.data.isel(instance=0, seed=0)
    said = {words: seen.course(one[name].values) for name, words in measures.items()}
    figure = folder.picture(figure, draw(trained.data), seen.listed(said))
    save_netcdf(trained.data, folder.place / f"{figure.name}.nc")
    title = "Training in two stages" if two else "Training with conflicting labels"
    return Section(title, training_sentences(trained), figure=figure)
