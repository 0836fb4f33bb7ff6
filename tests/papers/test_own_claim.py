"""A claim and its data from outside of the library: ``own_claim.py`` is all that it takes."""

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from attractor.cli.application import app
from attractor.files import reading
from attractor.papers import Ledger, Outcome, check_claim, examine
from attractor.papers.ledger.packs import load_claims
from attractor.support.errors import InvalidInputError

TRIANGLE = np.array([[0, 1], [1, 2], [2, 0]])


@pytest.fixture
def own(monkeypatch):
    monkeypatch.setattr(reading, "_REGISTERED", list(reading._REGISTERED))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    load_claims("own_claim:claim")
    yield sys.modules["own_claim"]
    del sys.modules["own_claim"]


@pytest.fixture
def handshakes(own):
    return own.claim.claims["bridges/handshakes"]


@pytest.mark.parametrize("name", ["claim", "number"])
def test_a_ledger_and_a_measure_name_what_they_declare(own, handshakes, name):
    assert load_claims(f"own_claim:{name}") == {"bridges/handshakes": handshakes}


def test_what_is_no_claim_is_refused(own):
    with pytest.raises(InvalidInputError, match=r"name: own_claim:odd is no claim\. Give a Claim"):
        load_claims("own_claim:odd")
    with pytest.raises(InvalidInputError, match=r"'own_claim' .* has no 'none'"):
        load_claims("own_claim:none")


def test_it_is_examined_as_any_other(handshakes):
    assert examine(handshakes, handshakes.example()).outcome is Outcome.HOLDS
    assert examine(handshakes.exchanged(), handshakes.example()).outcome is Outcome.FAILS
    broken = examine(handshakes, handshakes.broken["no loops"]())
    assert broken.outcome is Outcome.ASSUMPTION_NOT_MET
    assert broken.reason == "no loops: 1 loops"


def test_a_counterexample_becomes_smaller(own, handshakes):
    edges = np.array([[0, 1], [1, 2], [2, 0], [3, 4]])
    found = check_claim(handshakes.exchanged(), [own.GraphCase(edges)])
    assert found.outcome is Outcome.FAILS
    assert found.counterexample.case.edges.tolist() == [[0, 1], [1, 2]]


def raising(error):
    def raises(*_):
        raise error

    return raises


REFUSED = InvalidInputError("edges", "there are too few", "Give more")
PLACES = {
    "assumption": (Outcome.ASSUMPTION_NOT_MET, "no loops: it cannot be checked on these data, "),
    "conclusion": (Outcome.ASSUMPTION_NOT_MET, "it cannot be measured on these data, "),
    "control": (Outcome.VACUOUS, "no wrong claim to tell it from can be measured on these data, "),
}


def raising_in(claim, place, error):
    """The claim, which raises an error in one place."""
    if place == "assumption":
        (assumption,) = claim.given
        broken = dataclasses.replace(assumption, check=raising(error))
        return dataclasses.replace(claim, given=(broken,))
    name = {"conclusion": "right", "control": "wrong"}[place]
    return dataclasses.replace(claim, **{name: raising(error)})


@pytest.mark.parametrize("place", PLACES)
def test_data_that_cannot_be_used_are_an_outcome_in_words(handshakes, place):
    claim = raising_in(handshakes, place, REFUSED)
    outcome, words = PLACES[place]
    found = examine(claim, claim.example())
    assert (found.outcome, found.refused) == (outcome, REFUSED)
    assert found.reason == f"{words}edges: there are too few"
    assert check_claim(claim, [claim.example()]).outcome is outcome


@pytest.mark.parametrize("place", PLACES)
def test_a_claim_whose_own_data_cannot_be_used_is_in_error(handshakes, place):
    with pytest.raises(InvalidInputError, match="too few"):
        check_claim(raising_in(handshakes, place, REFUSED))


@pytest.mark.parametrize("error", [TypeError("t"), ValueError("v"), AssertionError("a")])
@pytest.mark.parametrize("place", PLACES)
def test_other_errors_are_no_outcome(handshakes, place, error):
    claim = raising_in(handshakes, place, error)
    with pytest.raises(type(error)):
        check_claim(claim, [claim.example()])


def run(*words):
    done = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_one_claim_that_cannot_use_a_file_leaves_the_others(own, handshakes, tmp_path):
    refusing = raising_in(handshakes, "conclusion", REFUSED)
    own.claim.claims["bridges/refusing"] = dataclasses.replace(refusing, name="bridges/refusing")
    own.claim.claims["bridges/third"] = dataclasses.replace(handshakes, name="bridges/third")
    own.GraphCase(TRIANGLE).save(tmp_path / "graph.npz")
    out = tmp_path / "out"
    said = run("claims", "own_claim:claim", "--data", tmp_path / "graph.npz", "--out", out)
    assert {name: one["outcome"] for name, one in said["claims"].items()} == {
        "bridges/handshakes": "holds",
        "bridges/refusing": "assumption not met",
        "bridges/third": "holds",
    }
    assert "edges: there are too few" in (out / "report.html").read_text()


def test_the_command_line_finds_a_counterexample_and_leaves_it_in_a_file(own, handshakes, tmp_path):
    wrong = dataclasses.replace(handshakes.exchanged(), name="bridges/wrong")
    own.WRONG = wrong
    own.GraphCase(np.array([[0, 1], [1, 2], [2, 0], [3, 4]])).save(tmp_path / "graph.npz")
    out = tmp_path / "out"
    said = run("claims", "own_claim:WRONG", "--data", tmp_path / "graph.npz", "--out", out)
    found = said["claims"]["bridges/wrong"]
    assert found["outcome"] == "fails"
    (case,) = reading.load(out / found["counterexample"]["file"]).data_sets()
    assert case.edges.tolist() == [[0, 1], [1, 2]]


def test_a_report_of_it_is_made_again_where_it_is_named_again(own, tmp_path):
    report = tmp_path / "out" / "report.html"
    run("claims", "own_claim:claim", "--out", report.parent)
    refused = CliRunner().invoke(app, ["reproduce", str(report)])
    assert refused.exit_code == 2 and "a file is never trusted to name" in refused.output
    assert run("reproduce", report, "--claim", "own_claim:claim")["same"]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"at_least": 0}, "at_most: bridges/other has no bound or two"),
        ({"on": []}, "on: bridges/other has no data"),
        ({"given": ["no loops"]}, "given"),
    ],
)
def test_a_declaration_that_lacks_something_is_refused(own, bad, words):
    declare = Ledger(own.EULER, own.GraphCase)
    good = {"right": 1, "wrong": 2, "at_most": 0, "because": "a count", "on": own.GraphCase}
    with pytest.raises(InvalidInputError, match=words):
        declare("other", "a summary", **good | bad)


def test_a_measure_takes_data_and_an_object(own):
    declare = Ledger(own.EULER, own.GraphCase)
    terms = {"right": 1, "wrong": 2, "at_most": 0, "because": "a count", "on": own.GraphCase}
    with pytest.raises(InvalidInputError, match="does not take data and an object"):
        declare("other", "a summary", **terms)(lambda case: 0.0)
    declare("other", "a summary", **terms)(lambda case, named: 0.0)
    with pytest.raises(InvalidInputError, match="name: bridges/other is declared twice"):
        declare("other", "a summary", **terms)
