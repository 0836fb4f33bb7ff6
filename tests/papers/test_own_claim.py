"""A claim and its data from outside of the library: ``own_claim.py`` is all that it takes."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from attractor.cli.application import app
from attractor.files import reading
from attractor.papers import (
    Exponent,
    Outcome,
    all_claims,
    examine,
    examine_control,
    get_claim,
    register_claim,
    registry,
)
from attractor.papers.check import check_claim
from attractor.support.errors import InvalidInputError


@pytest.fixture
def own(monkeypatch):
    monkeypatch.setattr(reading, "_REGISTERED", list(reading._REGISTERED))
    monkeypatch.setattr(registry, "_REGISTERED", {})
    return runpy.run_path(str(Path(__file__).parent / "own_claim.py"))


def test_it_is_found_and_examined_as_any_other(own):
    claim = get_claim("bridges/handshakes")
    assert claim is own["HANDSHAKES"] and list(all_claims())[-1] == claim.name
    assert examine(claim, claim.example()).outcome is Outcome.HOLDS
    assert examine_control(claim, claim.example()).outcome is Outcome.FAILS
    broken = examine(claim, claim.broken["no loops"]())
    assert broken.outcome is Outcome.ASSUMPTION_NOT_MET
    assert broken.reason == "no loops: 1 loops"


def test_a_counterexample_becomes_smaller(own):
    claim, edges = own["HANDSHAKES"], np.array([[0, 1], [1, 2], [2, 0], [3, 4]])
    wrong = own["dataclasses"].replace(claim, conclusion=claim.control, control=claim.conclusion)
    found = check_claim(wrong, [own["GraphCase"](edges)])
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


def raising_in(own, place, error):
    """The claim, which raises an error in one place."""
    claim, replace = own["HANDSHAKES"], own["dataclasses"].replace
    if place == "assumption":
        (assumption,) = claim.assumptions
        return replace(claim, assumptions=[replace(assumption, check=raising(error))])
    return replace(claim, **{place: replace(getattr(claim, place), measure=raising(error))})


@pytest.mark.parametrize("place", PLACES)
def test_data_that_cannot_be_used_are_an_outcome_in_words(own, place):
    claim = raising_in(own, place, REFUSED)
    outcome, words = PLACES[place]
    found = examine(claim, claim.example())
    assert (found.outcome, found.refused) == (outcome, REFUSED)
    assert found.reason == f"{words}edges: there are too few"
    assert check_claim(claim, [claim.example()]).outcome is outcome


@pytest.mark.parametrize("place", PLACES)
def test_a_claim_whose_own_data_cannot_be_used_is_in_error(own, place):
    with pytest.raises(InvalidInputError, match="too few"):
        check_claim(raising_in(own, place, REFUSED))


@pytest.mark.parametrize("error", [TypeError("t"), ValueError("v"), AssertionError("a")])
@pytest.mark.parametrize("place", PLACES)
def test_other_errors_are_no_outcome(own, place, error):
    claim = raising_in(own, place, error)
    with pytest.raises(type(error)):
        check_claim(claim, [claim.example()])


def test_one_claim_that_cannot_use_a_file_leaves_the_others(own, tmp_path):
    refusing = raising_in(own, "conclusion", REFUSED)
    register_claim(own["dataclasses"].replace(refusing, name="bridges/refusing"))
    register_claim(own["dataclasses"].replace(own["HANDSHAKES"], name="bridges/third"))
    own["GraphCase"](np.array([[0, 1], [1, 2], [2, 0]])).save(tmp_path / "graph.npz")
    arguments = ["claims", "--data", tmp_path / "graph.npz", "--out", tmp_path / "out", "--json"]
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    outcomes = {name: one["outcome"] for name, one in json.loads(done.stdout)["claims"].items()}
    assert outcomes == {
        "bridges/handshakes": "holds",
        "bridges/refusing": "assumption not met",
        "bridges/third": "holds",
    }
    assert "edges: there are too few" in (tmp_path / "out" / "report.html").read_text()


def test_the_command_line_checks_it_on_a_file_of_its_kind(own, tmp_path):
    own["GraphCase"](np.array([[0, 1], [1, 2], [2, 0]])).save(tmp_path / "graph.npz")
    arguments = ["claims", "--data", tmp_path / "graph.npz", "--out", tmp_path / "out", "--json"]
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert list(said["claims"]) == ["bridges/handshakes"]


def test_the_claim_written_out_in_contributing_holds(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", {})
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    (block,) = (part.split("```")[0] for part in text.split("```python\n")[1:])
    assert block.count("\n") < 40
    exec(block, {})
    claim = get_claim("max-margin/longer-keys")
    found = check_claim(claim)
    assert found.outcome is Outcome.HOLDS and len(found.findings) == 2
    assert examine(claim.about(Exponent(-1.25)), claim.example()).outcome is Outcome.FAILS
    assert examine_control(claim, claim.example()).outcome is Outcome.FAILS


def test_what_is_measured_apart_names_nothing_to_exchange(own):
    with pytest.raises(InvalidInputError, match="handshakes measures its wrong conclusion apart"):
        own["HANDSHAKES"].about(1.0)


def test_no_claim_of_the_papers_is_replaced():
    with pytest.raises(InvalidInputError, match=r"^claim: max-margin/"):
        register_claim(get_claim("max-margin/global-path"))
