import itertools
import json

import numpy as np
import pytest

from attractor.cli.session import ExitCode, Session
from attractor.corpora import load_corpus
from attractor.corpora.corpus import MOST_TRAINED
from attractor.results.provenance import read_provenance

SENTENCES = "S V O P\nV O P\nO P P\nP S V\n"


@pytest.fixture
def realizable(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(SENTENCES)
    return path


@pytest.fixture
def conflicting(tmp_path):
    """Contexts that end in q ask for a and for b, from the same tokens."""
    path = tmp_path / "conflicting.npz"
    contexts = np.array([[0, 1, 2], [1, 0, 2], [1, 3, 2], [-1, -1, 0], [-1, -1, 1]])
    np.savez(
        path, contexts=contexts, labels=[0, 1, 1, 1, 3], vocabulary=["a", "b", "q", "c"],
        counts=[2, 1, 1, 1, 1],
    )  # fmt: skip
    return path


def test_what_a_corpus_hides_under_the_names_of_the_field(run_json, realizable, tmp_path):
    found, result = run_json("corpus", realizable, "--out", tmp_path / "report")
    assert result.exit_code == found["exit_code"] == 0
    assert found["command"] == "corpus"
    assert found["collocation"] == {"S": "V", "V": "O", "O": "P", "P": "S"}
    assert found["orders"] == {
        "S": [["S", "P"]], "V": [["V", "S"]], "O": [["O", "S"], ["O", "V"]], "P": [["O", "P"]],
    }  # fmt: skip
    assert found["classes"]["O"]["non-optimal"] == ["S", "V"]
    assert found["realizable"] is True and found["samples"] == 9
    assert found["embeddings"]["orthonormal"] is True
    assert "training" not in found and "conflicting_labels" not in found
    page = (tmp_path / "report" / "report.html").read_text()
    assert "The corpus is realizable, and meets every other assumption" in page
    assert page.count("<figure>") == 3  # none of assumptions, as all are met
    assert json.loads((tmp_path / "report" / "summary.json").read_text())["samples"] == 9
    assert read_provenance(tmp_path / "report" / "orders.png").name == "corpus"


@pytest.mark.long
def test_trains_both_layers_to_where_they_are_predicted(run_json, realizable, tmp_path):
    found, result = run_json("corpus", realizable, "--train", "--steps", 900, "--out", "report")
    assert result.exit_code == 0, result.stderr
    (trained,) = found["training"]
    assert trained["samples"] == 9
    assert trained["feed_forward"]["correlation"] == pytest.approx(1, abs=1e-12)
    assert trained["feed_forward"]["solution_norm"] == pytest.approx(3**0.5)
    assert trained["attention"]["correlation"] == pytest.approx(0.9995, abs=2e-4)
    assert trained["attention"]["norm"] == pytest.approx(22.48, abs=0.01)
    assert "two_stages.svg" in {path.name for path in (tmp_path / "report").iterdir()}


@pytest.mark.usefixtures("blank_pictures")
def test_a_report_comes_out_the_same(run_json, realizable):
    run_json("corpus", realizable, "--context", 2, "--out", "report")
    _, result = run_json("reproduce", "report/summary.json")
    assert result.exit_code == ExitCode.BAD_INPUT and "error: data:" in result.stderr
    again, result = run_json("reproduce", "report/orders.svg", "--data", realizable)
    assert result.exit_code == 0, result.stderr
    assert again["same"] and again["name"] == "corpus" and not again["changed"]


def test_what_is_not_realizable_is_said_first_and_routed_to_graphs_with_cycles(
    run_json, conflicting
):
    found, result = run_json("corpus", conflicting, "--train", "--steps", 400)
    assert result.exit_code == 0, result.stderr
    words = result.stderr.replace("\n", " ")
    assert words.index("no; not met") < words.index("labels in conflict")
    assert found["realizable"] is False
    part = found["conflicting_labels"]
    assert part["cyclic_relations"] == 2 and part["cyclic_dimension"] == 1
    trained = found["training"][-1]
    assert trained["kind"] == "conflicting labels" and trained["cyclic_dimension"] == 1
    assert trained["correlation_outside"] > 0.95
    # Of three samples with weights 2, 1, 1 two conflict: the floor is their entropy.
    assert trained["finite_norm"] == pytest.approx(np.log(2) / 2**0.5, rel=1e-6)
    assert trained["finite_distance"] < 0.06


@pytest.mark.usefixtures("blank_pictures")
def test_a_vocabulary_larger_than_the_embeddings_is_no_error(run_json, realizable):
    found, result = run_json("corpus", realizable, "--embedding", "gaussian:3")
    assert result.exit_code == 0, result.stderr
    assert found["embeddings"] == {"name": "gaussian:3", "dimension": 3, "orthonormal": False}
    assert "gaussian:3 in 3 dimensions, not orthonormal" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "status"), [(3, "optimal"), (1, "infeasible")])
def test_problems_are_solved_with_the_embeddings_given(run_json, realizable, dimension, status):
    found, result = run_json(
        "corpus", realizable, "--embedding", f"gaussian:{dimension}", "--train", "--steps", 50
    )
    assert result.exit_code == 0, result.stderr
    assert found["training"][0]["feed_forward"]["status"] == status
    if status == "infeasible":
        assert "no direction to turn to" in result.stderr.replace("\n", " ")


@pytest.mark.usefixtures("blank_pictures")
def test_options_and_what_was_left_out(run_json, realizable):
    realizable.write_text(SENTENCES + "\nS\nS V X\n")
    found, result = run_json("corpus", realizable, "--context", 1, "--vocabulary", 4)
    assert result.exit_code == 0
    assert found["context_length"] == 1 and found["vocabulary"] == 5
    assert len(found["notices"]) == 3 and "<other>" in found["notices"][2]


@pytest.mark.slow
def test_a_vocabulary_of_the_size_asked_for_is_not_too_large(run_json, tmp_path):
    words = [f"w{number:03}" for number in range(110)]
    pairs = [f"{one} {two} {two}" for one, two in itertools.pairwise(words)]
    path = tmp_path / "long.txt"
    path.write_text("\n".join(pairs))
    found, _ = run_json(  # which ends without training: contexts of one token leave no choice
        "corpus", path, "--context", 1, "--vocabulary", 100, "--train", "--steps", 1
    )
    assert found["vocabulary"] == 101
    assert "it has 101 tokens" not in " ".join(found["notices"])


def test_what_cannot_be_trained_on_is_told(run_json, tmp_path):
    path = tmp_path / "alone.txt"
    path.write_text("a b\nb a\n")
    found, result = run_json("corpus", path, "--train", "--out", "report")
    assert result.exit_code == found["exit_code"] == ExitCode.BAD_INPUT
    assert "nothing was trained. Not trained in two stages" in found["error"]["message"]
    assert (tmp_path / "report" / "report.html").is_file() and found["realizable"] is True
    assert "attention has nothing to choose" in found["notices"][0]
    assert "training" not in found


@pytest.mark.parametrize(
    ("content", "named"),
    [(b"", "no tokens"), (b"a\nb\n", "single token"), (b"a \xff b\n", "byte 3, on line 1")],
)
def test_bad_files_end_in_a_message_and_leave_nothing(run, tmp_path, content, named):
    (tmp_path / "bad.txt").write_bytes(content)
    result = run("corpus", "bad.txt", "--out", "report")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert named in result.stderr.replace("\n", " ") and result.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["bad.txt"]


@pytest.mark.parametrize(
    "arguments",
    [("--embedding", "bert"), ("--context", 0), ("--vocabulary", 0), ("--steps", 0)],
)
def test_bad_options(run, realizable, arguments):
    assert run("corpus", realizable, *arguments).exit_code == ExitCode.BAD_INPUT


def test_each_command_names_the_other(run, realizable, file):
    result = run("check", realizable)
    assert result.exit_code == ExitCode.BAD_INPUT and "attractor corpus" in result.stderr
    result = run("corpus", file)
    assert result.exit_code == ExitCode.BAD_INPUT and "attractor check" in result.stderr


def test_help_shows_the_layout(run):
    text = run("corpus", "--help").stdout
    for line in ("sentences", "(n, L)", "contexts", "labels", "embeddings", "(V, d)"):
        assert line in text


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("name", ["corpus.txt", "corpus.npz"])
def test_the_example_is_realizable(run_json, tmp_path, name):
    found, result = run_json("example", "corpus", name, "--out", tmp_path / "folder")
    assert result.exit_code == 0 and found["sentences"] == 4
    found, _ = run_json("corpus", found["file"])
    assert found["realizable"] is True and found["collocation"]["dogs"] == "chase"


def test_docstrings_are_an_example_of_real_language(run, run_json):
    assert run("example", "corpus", "a.txt", "--module", "json").exit_code == ExitCode.BAD_INPUT
    found, result = run_json("example", "corpus", "a.txt", "--docstrings", "--module", "json")
    assert result.exit_code == 0
    corpus = load_corpus("a.txt").corpus
    assert corpus.sentences == found["sentences"] > 50
    assert "json" in corpus.vocabulary


def test_more_tokens_than_training_takes_are_refused_before_work(run_json, realizable):
    found, result = run_json("corpus", realizable, "--vocabulary", 101, "--train")
    assert result.exit_code == ExitCode.BAD_INPUT and found["error"]["argument"] == "vocabulary"
    assert "Give --vocabulary 100" in found["error"]["remedy"]
    assert run_json("corpus", realizable, "--vocabulary", 101)[1].exit_code == 0
    MOST = MOST_TRAINED - 1  # and <other>
    text = " ".join(f"w{number}" for number in range(MOST + 2))
    realizable.write_text(f"{text}\n")
    assert load_corpus(realizable, vocabulary=MOST).corpus.vocabulary_size == MOST_TRAINED


def test_says_what_to_try_next_and_how_long_training_takes(run, realizable, monkeypatch):
    said = []
    monkeypatch.setattr(Session, "takes", lambda self, *what: said.append(what))
    assert f"attractor corpus {realizable} --train\n" in run("corpus", realizable).stdout
    result = run("corpus", realizable, "--train", "--steps", 5)
    assert f"attractor corpus {realizable} --train --steps 20\n" in result.stdout
    ((what, seconds, _),) = said
    assert what == "Training" and 0 < seconds < 1


def test_the_terminal_says_in_a_few_lines_what_the_report_says_in_many(run, conflicting, tmp_path):
    result = run("corpus", conflicting)
    assert result.exit_code == 0 and len(result.stdout.splitlines()) < 25
    assert "All of it in words, with examples and pictures: attractor corpus" in result.stdout


def test_a_corpus_of_one_long_line_has_every_answer(run_json, tmp_path):
    words = np.random.default_rng(0).integers(0, 10, 16_000)
    (tmp_path / "line.txt").write_text(" ".join(map(str, words)))
    found, result = run_json("corpus", tmp_path / "line.txt")
    assert result.exit_code == 0, result.stderr
    assert found["linear"]["contexts"] == found["samples"] == 15_999
    assert found["conflicting_labels"]["share"] > 0.99 and found["realizable_part"]["share"] > 0


def test_too_many_relations_of_labels_leave_every_other_answer(run_json, conflicting, monkeypatch):
    monkeypatch.setattr("attractor.corpora.structures.orders._MOST", 3)
    found, result = run_json("corpus", conflicting)
    assert result.exit_code == 0, result.stderr
    assert "conflicting_labels" not in found and found["realizable"] is False
    assert found["linear"]["contexts"] == 5 and found["realizable_part"]["share"] > 0
    assert any("No labels in conflict" in notice for notice in found["notices"])
