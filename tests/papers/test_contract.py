"""Every question of the contract notices what it asks for; the example's pack answers all."""

import dataclasses
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attractor.papers import Exponent
from attractor.papers.ledger import contract

PACK = Path(__file__).parents[2] / "examples" / "claim_pack"


@pytest.fixture(scope="module")
def claim():
    sys.path.insert(0, str(PACK))
    yield importlib.import_module("attractor_scaling").claim.claims["scaling/inverse-norm"]
    sys.path.remove(str(PACK))


def unanswered(claim, folder):
    """The questions to which a claim's answer is no."""
    contract._EXAMPLES.clear()
    asked = {one.__name__: one for one in contract.OF_CLAIMS}
    for name in claim.broken:
        asked[f"needs {name}"] = lambda *given, name=name: contract.needs_assumption(
            *given, assumption=name
        )
    found = []
    for words, ask in asked.items():
        try:
            ask(claim, folder)
        except AssertionError:
            found.append(words)
    return found


def test_a_claim_as_it_should_be_answers_all(claim, tmp_path):
    assert unanswered(claim, tmp_path) == []


def drawn(case, exponent):
    """Distance from {}."""
    return 1e-20 * int.from_bytes(os.urandom(4))


def blind(case, exponent):
    """Distance from {}."""
    return 0.0


def moving():
    """Data that are others each time."""
    return importlib.import_module("attractor_scaling").random_keys(MOVES.integers(10**6))


MOVES = np.random.default_rng(0)
MUTANTS = {
    "numbers without a seed": ({"measure": drawn}, "keeps_its_numbers"),
    "data without a seed": ({"on": (moving,)}, "keeps_its_numbers"),
    "a measure that ignores its object": ({"measure": blind}, "holds"),
    "a wrong object that is right": ({"wrong": Exponent(-1)}, "holds"),
    "a right object that is wrong": ({"right": Exponent(-1.25)}, "holds"),
    "a bound that lets neighbors pass": ({"bound": 0.26}, "holds"),
    "a failure that does not come": ({"note": "fails sometimes"}, "fails_as_it_says"),
    "a summary with a period": ({"summary": "It is."}, "says_what_it_is"),
    "no reason for the bound": ({"because": ""}, "says_what_it_is"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_what_is_wrong_with_a_claim_is_noticed(claim, mutant, tmp_path):
    changes, noticed_by = MUTANTS[mutant]
    assert noticed_by in unanswered(dataclasses.replace(claim, **changes), tmp_path)


def test_an_assumption_that_is_always_met_is_noticed(claim, tmp_path):
    (given,) = claim.given
    always = dataclasses.replace(given, check=lambda case: (True, "always"))
    found = unanswered(dataclasses.replace(claim, given=(always,)), tmp_path)
    assert f"needs {given.name}" in found


def test_an_assumption_that_nothing_breaks_is_noticed(claim, tmp_path):
    (given,) = claim.given
    unbroken = dataclasses.replace(claim, given=(dataclasses.replace(given, breaker=None),))
    assert unanswered(unbroken, tmp_path) == ["says_what_it_is"]


def test_numbers_that_files_do_not_keep_are_noticed(claim, tmp_path):
    def of_name(case, exponent):
        """Distance from {}."""
        return abs(-1 - exponent) + 1e-9 * case.about.count("seed")

    kept = dataclasses.replace(claim, measure=of_name, bound=1e-6)
    assert unanswered(kept, tmp_path) == ["survives_files"]


@pytest.mark.processes
def test_the_pack_is_installed_found_and_tested(tmp_path):
    pytest.importorskip("hatchling")

    def run(*words, **environment):
        done = subprocess.run(
            [sys.executable, *map(str, words)], cwd=tmp_path, capture_output=True, text=True,
            env={**os.environ, **environment},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    shutil.copytree(PACK, tmp_path / "pack")
    build = ("-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path)
    subprocess.run([sys.executable, *map(str, build)], cwd=tmp_path / "pack", check=True)
    (wheel,) = tmp_path.glob("*.whl")
    target = tmp_path / "installed"
    run("-m", "pip", "install", "-q", "--no-deps", "--no-index", "-t", target, wheel)
    paths = os.pathsep.join([str(target), os.environ.get("PYTHONPATH", "")])
    said = run("-m", "attractor", "claims", "--of", "attractor-scaling", "--json", PYTHONPATH=paths)
    (outcome,) = json.loads(said)["claims"].values()
    assert outcome["outcome"] == "holds"
    listed = run("-m", "attractor", "claims", "--json", PYTHONPATH=paths)
    assert "scaling/inverse-norm" in json.loads(listed)["claims"]
    test = tmp_path / "pack" / "test_attractor_scaling.py"
    asked = run("-m", "pytest", "-q", "-p", "no:cacheprovider", test, PYTHONPATH=paths)
    assert "7 passed" in asked
