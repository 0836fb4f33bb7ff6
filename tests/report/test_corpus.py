import json
import re

import numpy as np
import pytest

from attractor.corpora import Corpus, corpus_structure, page as module
from attractor.corpora.embeddings import VocabularyEmbeddings
from attractor.corpora.page import CorpusReport, write_corpus_report
from attractor.corpora.page_words import contexts_sentence, training_sentences
from attractor.corpora.parts import conflicting_part, realizable_part
from attractor.corpora.two_stages.corpus_training import CONFLICTING, TWO_STAGES, TrainedCorpus
from attractor.support.errors import InvalidInputError


def report_of(corpus):
    structure = corpus_structure(corpus)
    names = VocabularyEmbeddings.named("one-hot", corpus.vocabulary)
    report = CorpusReport(structure, names)
    if not structure.realizable:
        report.conflicting = conflicting_part(corpus, structure.collocation)
        report.part = realizable_part(corpus)
    return report


def test_the_report_of_what_is_not_realizable(tmp_path):
    sentences = ["the dog sees the cat", "the cat sees the dog", "a dog sees a dog", "a cat a"]
    report = report_of(Corpus.from_sentences([sentence.split() for sentence in sentences]))
    report.notices.append("Something <else>.")
    summary = write_corpus_report(tmp_path / "report", report, source="four & sentences")
    page = (tmp_path / "report" / "report.html").read_text()
    first = page[page.index('<ul class="findings">') :]
    assert first.startswith('<ul class="findings"><li>The corpus is not realizable')
    folded = re.findall(r"<details><summary>(.*?)</summary>", page)
    assert folded[0] == "The assumptions in the way, one by one" and "Labels in conflict" in folded
    assert "Assumptions not met: collocation" in page
    assert "Something &lt;else&gt;." in page and "four &amp; sentences" in page
    assert "http" not in page.replace("http://www.w3.org", "") and "<script" not in page
    for name in ("assumptions", "graphs", "collocation_realizable"):
        assert (tmp_path / "report" / f"{name}.svg").is_file()
    assert json.loads((tmp_path / "report" / "summary.json").read_text()) == summary
    assert summary["realizable_part"]["share"] == pytest.approx(report.part.share)


def test_a_corpus_without_relations_has_a_report(tmp_path):
    report = report_of(Corpus.from_samples(["a", "a"], "bc", "abc"))
    summary = write_corpus_report(tmp_path / "report", report, source="")
    assert summary["relations"] == 0 and summary["conflicting_labels"]["components"] == 0


def test_of_many_relations_the_first_queries_are_listed(monkeypatch):
    report = report_of(Corpus.from_sentences(["SVOP", "VOP", "OPP", "PSV"]))
    monkeypatch.setattr(module, "MOST_RELATIONS", 3)
    summary = report.summary()
    assert summary["queries_listed"] == len(summary["orders"]) == 2
    assert summary["queries"] == 4 and summary["relations"] == 5


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInputError, match="out"):
        write_corpus_report(tmp_path, report_of(Corpus.from_sentences(["ab"])), source="")


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({}, "every token of a sentence but the first, as a label, with all of"),
        ({"context_length": 1}, "the last one of"),
        ({"context_length": 3, "every_prefix": False}, "every label given, with the last 3 of"),
    ],
)
def test_what_a_sample_is(other, expected):
    structure = corpus_structure(Corpus([0, 1, 2, 3], [0, 4], **other))
    assert expected in contexts_sentence(structure)


@pytest.mark.parametrize(
    ("correlation", "expected"),
    [(0.999, "points where it is predicted"), (0.95, "is on its way"), (0.2, "does not point"),
     (None, "has not moved")],
)  # fmt: skip
def test_verdicts_in_words(correlation, expected):
    layer = {"status": "optimal", "correlation": correlation}
    summary = {
        "samples": 3, "share": 0.5, "steps": 10, "least_optimal_attention": 0.99991,
        "feed_forward": layer, "attention": {"status": "infeasible", "correlation": None},
    }  # fmt: skip
    corpus = Corpus([0, 1], [0, 2])
    said = " ".join(training_sentences(TrainedCorpus(TWO_STAGES, corpus, None, summary)))
    assert f"The feed-forward layer {expected}" in said and "50 % by weight" in said
    assert "Attention has no direction to turn to" in said and "infeasible" in said
    assert "0.99991" in said


def test_the_finite_part_in_words():
    summary = {
        "samples": 3, "share": 1.0, "steps": 10, "step_length": 0.05, "status": "optimal",
        "cyclic_dimension": 2, "correlation_outside": np.float64(0.999), "finite_norm": 1.5,
        "finite_distance": 0.025, "loss_floor": 0.231, "mass": 0.9999,
    }  # fmt: skip
    said = training_sentences(TrainedCorpus(CONFLICTING, Corpus([0, 1], [0, 2]), None, summary))
    assert "cannot go below 0.231." in said[-1] and "0.025 away" in said[-1]
