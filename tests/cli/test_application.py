"""What the command line says and refuses without loading anything for it."""

import json
import os
import pkgutil
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from commands import TABLE

import attractor
from attractor import files
from attractor.attention import get_parameterization
from attractor.cli.application import GROUP, app, command_names
from attractor.cli.commands.solve import NORMS
from attractor.cli.inputs import descended
from attractor.cli.plans import plan
from attractor.geometry import registered_geometries
from attractor.support.errors import InvalidInputError
from attractor.support.plugins import load_plugin

HEAVY = ["jax", "equinox", "optax", "diffrax", "scipy.optimize", "xarray", "pandas", "h5py",
         "matplotlib", "sklearn", "torch"]  # fmt: skip
CALL = """
import atexit, sys
from attractor.cli import main

atexit.register(lambda: print("loaded:", *(set(sys.modules) & set({!r}))))
main()
"""
ONE_BY_ONE = """
import contextlib, io, json, sys
from attractor.cli import main

found = []
for words in {}:
    sys.argv, said = ["attractor", *words], io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as ended:
            found.append((ended.code, said.getvalue(), [*set(sys.modules) & set({})]))
print(json.dumps(found))
"""
READERS = {name: row.reader for name, row in TABLE.items() if row.reader is not None}
"""What reads the file that a command takes."""


def call(tmp_path, *arguments, unwanted=HEAVY):
    """The exit code, what was printed and said, and which of the modules unwanted were loaded."""
    code = CALL.format(unwanted)
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    printed, _, loaded = done.stdout.rpartition("loaded:")
    return done.returncode, printed, done.stderr, loaded.split()


@pytest.mark.processes
@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_load_nothing(tmp_path, option):
    code, printed, _, loaded = call(tmp_path, option, unwanted=[*HEAVY, "numpy"])
    assert code == 0 and loaded == []
    assert f"attractor {attractor.__version__}" in printed or "Commands:" in printed


@pytest.mark.processes
def test_xarray_loads_no_dask_for_a_command(tmp_path):
    run = Path(__file__).parents[1] / "stored" / "run.nc"
    code, printed, _, loaded = call(tmp_path, "verify", run, unwanted=["xarray", "dask.base"])
    assert code == 0 and "margin ratio" in printed
    assert loaded == ["xarray"]


@pytest.fixture(scope="module")
def mistyped(tmp_path_factory):
    """What each command does of a file that is not there, one after the other in one process."""
    given = {name: [name, "no-file.npz"] for name in READERS}
    given["claims"] = ["claims", "--data", "no-file.npz"]
    done = subprocess.run(
        [sys.executable, "-c", ONE_BY_ONE.format(list(given.values()), HEAVY)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path_factory.mktemp("mistyped"),
    )
    return dict(zip(given, json.loads(done.stdout), strict=True))


@pytest.mark.processes
@pytest.mark.parametrize("name", READERS)
def test_a_mistyped_file_name_is_refused_before_anything_is_loaded(mistyped, name):
    code, said, loaded = mistyped[name]
    assert code == 2 and loaded == []
    assert "no-file.npz" in said
    if READERS[name]:
        with pytest.raises(InvalidInputError) as caught:
            pkgutil.resolve_name(READERS[name])(Path("no-file.npz"))
        assert said == f"error: {caught.value}\n"


def test_every_command_that_reads_a_file_is_among_them():
    reading = {name for name, row in TABLE.items() if {"file", "run", "data"} & {*row.inputs}}
    # Which data a figure takes, the figures say.
    assert reading - {"figures"} == set(READERS)


@pytest.mark.parametrize("name", command_names())
def test_help_fits_eighty_columns_and_has_its_options_before_files_and_examples(run, name):
    text = run(name, "--help").stdout
    assert max(map(len, text.splitlines())) <= 80
    assert text.index("Options:") < text.index("Examples, with the time")
    if "\n  keys " in text:
        assert text.index("Examples, with the time") < text.index("\n  keys ")


@pytest.mark.parametrize(
    "line", [line for name in command_names() for line in load_plugin(GROUP, name).examples]
)
def test_examples_can_be_read(line):
    attractor, *words = shlex.split(line)
    context = typer.main.get_command(app).make_context(attractor, words)
    name, command, rest = context.command.resolve_command(context, words)
    inner = command.make_context(name, rest)
    if hasattr(command, "commands"):  # a command of a command
        name, command, rest = command.resolve_command(inner, [*inner._protected_args, *inner.args])
        command.make_context(name, rest)


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_list_of_commands_has_whole_sentences_in_eighty_columns(run, option):
    lines = run(option).stdout.split("Commands:\n")[1].splitlines()
    listed = dict(line.split(maxsplit=1) for line in lines)
    assert list(listed) == command_names()
    assert max(map(len, lines)) <= 80 and all(line.endswith((".", "?")) for line in lines)


@pytest.mark.processes
def test_the_shell_completes_commands_and_options():
    environment = os.environ | {"_ATTRACTOR_COMPLETE": "complete_bash"}
    for words, place, completed in (
        ("attractor so", 1, "solve"),
        ("attractor solve --no", 2, "--norm"),
    ):
        given = environment | {"COMP_WORDS": words, "COMP_CWORD": str(place)}
        code = "from attractor.cli.application import app; app(prog_name='attractor')"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=given
        )
        assert done.stdout.split() == [completed]


def test_commands_that_are_not_known_are_suggested(run):
    result = run("solv")
    assert result.exit_code == 2 and "Did you mean 'solve'?" in result.stderr


def test_every_norm_is_listed(run):
    assert NORMS == ", ".join(kind.spelling for kind in registered_geometries())
    assert NORMS.replace(" ", "") in "".join(run("solve", "--help").stdout.split())


@pytest.mark.parametrize("layer", ["W", "KQ", "(v, W)", "(v, KQ)"])
def test_the_default_norm_is_that_of_the_default_optimizer(file, change, layer):
    heads = {"head": None, "initial_head": [0.0] * 10} if "v" in layer else {}
    change(file, parameterization=get_parameterization(layer).name, **heads)
    loaded = files.load_tokens(file)
    assert descended(loaded) == plan(loaded).method.own_norm
    named = files.load_tokens(file).__class__(**vars(loaded) | {"optimizer": "sign descent"})
    assert descended(named) == plan(named).method.own_norm


def test_the_version_is_the_one_that_is_cited():
    citation = (Path(__file__).parents[2] / "CITATION.cff").read_text()
    assert f"\nversion: {attractor.__version__}\n" in citation
