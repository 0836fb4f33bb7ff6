"""What is loaded, and when: nobody waits for a library that is not needed."""

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import attractor as at
from attractor import public

SLOW = (
    "jax equinox optax diffrax xarray pandas scipy.optimize scipy.sparse h5py matplotlib sklearn"
    " torch transformers"
).split()
"""Libraries that take a tenth of a second or more to load."""
PUBLIC = sorted(name for name in vars(public) if not name.startswith("_"))
INTERNAL = {"cli", "public", "version"}
"""Rooms that are not for users of the library."""

SOLVE = """
import numpy as np
import attractor as at

rng = np.random.default_rng(0)
tokens = at.Tokens(rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 4)), [1, -1, 1])
selection = at.optimal_tokens(tokens, lambda outputs: outputs @ np.arange(1.0, 6.0))
problems = [at.MarginProblem(rng.normal(size=(6, 5)), rng.normal(size=(6, 4))),
            at.MarginProblem.from_selection(tokens, selection)]
for geometry in (at.Frobenius(), at.Lp(1.5), at.Lp(1), at.Nuclear()):
    for solution in at.solve(problems, geometry):
        assert solution.status is at.Status.OPTIMAL
        str(solution), solution.rank, solution.norm
        solution.save_certificate("certificate.json")
"""
COMMAND = """
import numpy as np
from attractor.cli.application import app

rng = np.random.default_rng(0)
rows = {"keys": rng.normal(size=(3, 3, 4)), "queries": rng.normal(size=(3, 4))}
head = {"labels": np.array([1, -1, 1]), "head": rng.normal(size=4)}
np.savez("head.npz", **rows, **head)
np.savez("scores.npz", **rows, scores=rng.normal(size=(3, 3)))
np.savez("factors.npz", **rows, **head, parameterization="KQ")
np.savez("prompt.npz", keys=rows["keys"], **head, parameterization="p", initial=np.zeros(4))
np.savez("sets.npz", **{name: np.stack([value] * 2) for name, value in (rows | head).items()})
entries = "max(frobenius[0:2, 0:4], l_1[2:4, 0:4])"
for norm in ("frobenius", "l_1.5", "l_1", "l_inf", "schatten_3", "nuclear", "spectral", entries):
    app(["solve", "head.npz", "--norm", norm, "--quiet"], standalone_mode=False)
for file in ("scores.npz", "factors.npz", "prompt.npz", "sets.npz"):
    app(["solve", file, "--json"], standalone_mode=False)
app(["solve", "head.npz", "--certificate", "W.json", "--selection", "0,1,2"], standalone_mode=False)
"""
HEADS = """
import numpy as np
import attractor as at

tokens = at.Tokens(np.eye(3)[None], np.ones((1, 3)), [1])
at.optimal_tokens(tokens, at.LinearHead([1.0, 0.5, 0.2]))
"""


def loaded_by(code, folder=None):
    """Modules that are loaded once a program has run."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.processes
@pytest.mark.parametrize("code", ["import attractor", "import attractor as at; dir(at)"])
def test_attractor_itself_loads_nothing(code):
    loaded = loaded_by(code)
    ours = {name for name in loaded if name.startswith("attractor")}
    assert ours <= {
        "attractor",
        "attractor.version",
        "attractor.support",
        "attractor.support.first_use",
        "attractor.support.lazy_names",
        "attractor.support.settings",
    }
    assert not loaded & {"numpy", *SLOW}


@pytest.mark.processes
@pytest.mark.parametrize(
    "code",
    [
        "from attractor import geometry, tokens",
        "from attractor.support import randomness, storage, threads, progress",
        "from attractor.support import blas, checks, containers, memory",
        "from attractor.margin import selection",
        "from attractor import margin",
        "import attractor as at; at.Tokens, at.solve, at.MarginProblem, at.Frobenius, at.Selection",
        "import attractor as at; at.KeyQuery(2), at.Joint(at.MultiHead('p', 3))",
        "import attractor as at; at.optimal_tokens, at.solve_factorized, at.decompose, at.Status",
    ],
)
def test_what_knows_no_training_loads_no_jax(code):
    assert not loaded_by(code) & set(SLOW)


@pytest.mark.processes
def test_a_name_loads_its_own_package_alone():
    loaded = loaded_by("import attractor as at; at.Frobenius")
    ours = {name.split(".")[1] for name in loaded if name.startswith("attractor.")}
    assert not ours & {"tokens", "margin", "attention", "training"}


@pytest.mark.processes
def test_margin_problems_are_solved_without_jax(tmp_path):
    assert not loaded_by(SOLVE, tmp_path) & {"jax", "equinox", "optax", "xarray", "pandas"}


@pytest.mark.processes
def test_the_command_solve_loads_no_jax(tmp_path):
    loaded = loaded_by(COMMAND, tmp_path)
    assert (tmp_path / "W.json").exists()
    assert not loaded & {"jax", "equinox", "optax", "diffrax", "xarray", "pandas"}


@pytest.mark.processes
def test_heads_load_no_optimizers():
    loaded = loaded_by(HEADS)
    assert "jax" in loaded
    assert not loaded & {"optax", "diffrax", "xarray", "scipy.optimize", "attractor.training"}


def test_public_names_are_those_that_type_checkers_see():
    assert at.__all__ == PUBLIC
    # Functions are wrapped when they are first asked for, and public.py had some before.
    same = (inspect.unwrap(getattr(at, n)) is inspect.unwrap(getattr(public, n)) for n in PUBLIC)
    assert all(same)


def test_what_there_is_to_use_is_listed_and_nothing_else():
    here = Path(at.__file__).parent
    rooms = {path.stem for path in here.iterdir() if path.suffix in ("", ".py")}
    rooms = {name for name in rooms if not name.startswith("_")}
    assert dir(at) == sorted({*PUBLIC, *(rooms - INTERNAL), "__version__"})
    assert at.margin.solve is at.solve


@pytest.mark.parametrize("name", ["solv", "annotations_", "__wrapped__", "blass"])
def test_other_names_are_refused(name):
    with pytest.raises(AttributeError, match=f"module 'attractor' has no attribute '{name}'"):
        getattr(at, name)


def test_a_name_of_one_of_the_packages_is_told_where_it_is():
    assert at.which_norm is at.maps.which_norm
    with pytest.raises(AttributeError, match=r"'unit_tokens'; it is attractor\.datasets\.unit_tok"):
        at.unit_tokens  # noqa: B018
    with pytest.raises(AttributeError, match=r"it is attractor\.torch\.MirrorDescent$"):
        at.MirrorDescent  # noqa: B018


def test_functions_choose_tokens_as_heads_do():
    tokens = at.Tokens(np.eye(3)[None], np.ones((1, 3)), [1])
    v = np.array([0.2, 1.0, 0.5])
    by_function = at.optimal_tokens(tokens, lambda outputs: outputs @ v)
    assert by_function == at.optimal_tokens(tokens, at.LinearHead(v))
