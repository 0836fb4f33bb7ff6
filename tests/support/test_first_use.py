"""Names of packages that are imported when they are first used."""

import importlib
import importlib.util
import subprocess
import sys
from types import ModuleType

import pytest

PACKAGES = [
    f"attractor.{name}"
    for name in (
        "analysis", "attention", "corpora", "corpora.linear", "corpora.mechanics", "files", "heads",
        "maps", "maps.sweeps", "margin", "papers", "plots", "plots.plane", "prompts",
        "prompts.finite_length", "prompts.length", "prompts.measures", "prompts.regression",
        "report", "results", "training", "training.flow", "training.paths",
    )
]  # fmt: skip


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_is_there_and_is_listed(name):
    package = importlib.import_module(name)
    listed = {one for one in dir(package) if not one.startswith("__")}
    assert set(package.__all__) <= listed
    others = listed - set(package.__all__)  # packages, which need not be imported for it
    found = (importlib.util.find_spec(f"{name}.{one}") for one in others)
    assert all(one and one.submodule_search_locations for one in found)
    named = [getattr(package, one) for one in package.__all__]
    assert all(hasattr(one, "__path__") for one in named if isinstance(one, ModuleType))


@pytest.mark.parametrize("name", PACKAGES)
def test_a_name_that_is_not_there_is_an_attribute_error(name):
    package = importlib.import_module(name)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = package.nothing
    assert not hasattr(package, "__wrapped__")


@pytest.mark.processes
def test_what_is_not_used_is_not_loaded():
    code = (
        "import sys, attractor.analysis, attractor.files, attractor.report; "
        "print([name for name in ('numpy', 'jax', 'xarray', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.processes
def test_methods_registered_before_anything_is_solved_stay():
    code = """
from attractor.margin import register_methods
import attractor as at
def never(task): raise SystemExit("asked for")
register_methods(at.Lp, lambda geometry: (never,))
at.solve(at.MarginProblem([[1.0, 2.0]], [[3.0, -1.0]]), at.Lp(3))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == "asked for\n"


@pytest.mark.processes
def test_modules_are_imported_while_work_goes_on():
    code = """
import sys, threading
from attractor.support.loaded import import_meanwhile
import_meanwhile("no_such_library", "colorsys")
for thread in threading.enumerate():
    thread is threading.main_thread() or thread.join()
print("colorsys" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("True\n", "")
