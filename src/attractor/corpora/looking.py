"""What ``attractor corpus`` does once it has read one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attractor import corpora
from attractor.cli.answer import failure
from attractor.cli.provenance import report_provenance
from attractor.cli.session import ExitCode, Session
from attractor.corpora.corpus import MOST_TRAINED, STEPS, Corpus
from attractor.corpora.embeddings import VocabularyEmbeddings, parse_embedding
from attractor.corpora.files.corpus import CorpusCase
from attractor.corpora.linear_view import linear_view
from attractor.corpora.page import CorpusReport, write_corpus_report
from attractor.corpora.page_words import has_arrived, training_sentences
from attractor.corpora.parts import conflicting_part
from attractor.corpora.two_stages.corpus_training import (
    share_of_work,
    train_conflicting,
    train_realizable,
)
from attractor.results import plain_table
from attractor.results.paper import MECHANICS, NEXT_TOKEN
from attractor.support.errors import InvalidInputError
from attractor.support.progress import progress_bar
from attractor.support.storage.markers import REPORT

LARGEST = 1_000_000
"""Samples of the largest corpus in which more than its structure is looked for."""
SECONDS = 12
"""The seconds of ``STEPS`` steps on as many samples as are trained on at most."""
_NOT_TRAINED = "Not trained"
CONTEXT_DIMENSION = 16
"""Dimension of the vectors of contexts, where none is given with --embedding."""


def look(
    current: Session,
    loaded: CorpusCase,
    file: Path,
    embedding: str | None,
    out: Path | None,
    seed: int,
    arguments: dict[str, Any],
    *,
    train: bool,
    steps: int,
) -> None:
    """Finds the structure of a corpus, trains where it was asked for, and writes the report.

    Args:
        current: The session of the command.
        loaded: The corpus.
        file: Where it was read.
        embedding: The embedding asked for; None for that of the file, or one-hot.
        out: The folder of the report; None for none.
        seed: Names all that is random.
        arguments: Those of the command, for the provenance.
        train: Whether to train.
        steps: Steps of each stage of training.
    """
    whole = loaded.corpus
    with progress_bar("looking at", 4, enabled=current.progress) as advance:
        advance.note("the structure")
        structure = corpora.corpus_structure(whole)
        report = CorpusReport(structure, _embeddings(loaded, embedding, seed))
        report.notices += loaded.notices
        if not structure.realizable:
            advance(1)
            advance.note("labels in conflict")
            with _refused(report.notices, "No labels in conflict were looked for"):
                report.conflicting = conflicting_part(whole, structure.collocation)
            advance(1)
            advance.note("a realizable part")
            with _refused(report.notices, "No realizable part was looked for"):
                report.part = corpora.realizable_part(_small_enough(whole))
            advance(1)
        if len(whole.positions) <= LARGEST:
            advance.note("contexts")
            dimension = embedding and parse_embedding(embedding)
            report.linear = linear_view(whole, dimension or CONTEXT_DIMENSION, seed)
    if train:
        _train(report, steps, out, current)
    _say(current, report)
    _next(current, report, train, steps)
    missed = _missed(report) if train and not report.trained else None
    if missed is not None:
        current.complain("error", missed)
        current.exit_code = ExitCode.BAD_INPUT
        current.result(**failure(missed))
    if out is None:
        current.result(**report.summary())
        current.unwritten("All of it in words, with examples and pictures")
        return
    cited = [NEXT_TOKEN.bibtex("realizable data sets")]
    if not structure.realizable:
        cited.append(MECHANICS.bibtex("token-priority graphs with cycles"))
    summary = write_corpus_report(
        out,
        report,
        source=f"{file.name}: {whole!r}",
        provenance=report_provenance(
            "corpus",
            arguments,
            source=loaded,
            seeds=[seed],
            settings={"context_length": whole.context_length},
            bibtex=cited,
        ),
    )
    current.wrote("report", out / REPORT, **summary)


def _say(current: Session, report: CorpusReport) -> None:
    """Prints what was found: a short table, and where training went."""
    table = plain_table(show_header=False, collapse_padding=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for row in report.rows():
        table.add_row(*row)
    current.say(table)
    for trained in report.trained:
        current.say(*training_sentences(trained))
    current.say(*report.notices)


def _missed(report: CorpusReport) -> str:
    """Why nothing was trained."""
    why = [notice for notice in report.notices if notice.startswith(_NOT_TRAINED)]
    return "nothing was trained. " + (" ".join(why) or "No part of the corpus can be trained on.")


def _next(current: Session, report: CorpusReport, train: bool, steps: int) -> None:
    """The next command: training where none was asked for, or more of it."""
    corpus = report.structure.corpus
    nothing = report.part is None and report.conflicting is None
    if not train and not (nothing and not report.structure.realizable):
        large = corpus.vocabulary_size > MOST_TRAINED
        fewer = {"vocabulary": MOST_TRAINED - 1} if large else {}
        current.suggest(current.again(**fewer, train=True), "to see where training goes")
    elif not all(map(has_arrived, report.trained)):
        current.suggest(current.again(steps=4 * steps), "for what has not got there")


def _embeddings(loaded: CorpusCase, name: str | None, seed: int) -> VocabularyEmbeddings:
    """The embeddings requested; else those of the file; else the unit vectors."""
    names = loaded.corpus.vocabulary
    if name is None and loaded.embeddings is not None:
        return VocabularyEmbeddings("those of the file", names, loaded.embeddings)
    return VocabularyEmbeddings.named(name or "one-hot", names, seed)


@contextlib.contextmanager
def _refused(notices: list[str], what: str) -> Iterator[None]:
    """Makes a notice of what is refused in the block, so that all other answers are given."""
    try:
        yield
    except InvalidInputError as error:
        notices.append(f"{what}: {error}")


def _small_enough(whole: Corpus) -> Corpus:
    if len(whole.positions) > LARGEST:
        raise InvalidInputError(
            "corpus", f"it has {len(whole.positions):,} samples", "Give a part of it"
        )
    return whole


def _train(report: CorpusReport, steps: int, out: Path | None, current: Session) -> None:
    """Trains both layers where they can be trained; says where not, and why, and goes on."""
    realizable = report.structure.corpus if report.structure.realizable else None
    if report.part is not None:
        realizable = report.part.shared
    trainings: list[tuple[Any, Any, str]] = [
        (realizable, train_realizable, "in two stages"),
        (report.conflicting, train_conflicting, "with conflicting labels"),
    ]
    trainings = [one for one in trainings if one[0] is not None]
    parts = [getattr(part, "corpus", part) for part, _, _ in trainings]
    shares = [share_of_work(one) for one in parts if one.vocabulary_size <= MOST_TRAINED]
    current.takes("Training", SECONDS * sum(shares) * steps / STEPS, out)
    for part, train, how in trainings:
        with _refused(report.notices, f"{_NOT_TRAINED} {how}"):
            trained = train(part, report.embeddings, steps, progress=current.progress)
            report.trained.append(trained)
