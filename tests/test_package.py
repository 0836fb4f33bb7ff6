"""The source distribution and the wheel made from it hold all that the library needs."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*command, at, **environment):
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=at,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that the wheel was installed to, made from the source distribution alone."""
    pytest.importorskip("hatchling")
    place = tmp_path_factory.mktemp("package")
    run("-m", "hatchling", "build", "-t", "sdist", "-d", place, at=ROOT)
    (archive,) = place.glob("attractor-*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(place, filter="data")
    source = place / archive.name.removesuffix(".tar.gz")
    run("-m", "hatchling", "build", "-t", "wheel", "-d", place, at=source)
    (wheel,) = place.glob("attractor-*.whl")
    target = place / "installed"
    run("-m", "pip", "install", "-q", "--no-deps", "--no-index", "-t", target, wheel, at=place)
    return target


def files_below(folder):
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.processes
def test_what_is_installed_is_what_lies_in_the_source_tree(installed):
    assert files_below(installed / "attractor") == files_below(ROOT / "src/attractor")
    assert (installed / "attractor/py.typed").exists()
    (metadata,) = installed.glob("attractor-*.dist-info/METADATA")
    assert "Requires-Python: >=3.11" in metadata.read_text("utf-8")


@pytest.mark.processes
def test_the_installed_package_has_the_explorer(installed):
    (archive,) = installed.parent.glob("attractor-*.tar.gz")
    with tarfile.open(archive) as opened:
        names = opened.getnames()
    assert any(name.endswith("explorer/src/state.ts") for name in names)
    assert not any("node_modules" in name or "explorer/build/" in name for name in names)
    command = ("explore", "--scene", "two-basins", "--out", "page.html")
    run(installed / "bin/attractor", *command, at=installed.parent, PYTHONPATH=str(installed))
    page = (installed.parent / "page.html").read_text("utf-8")
    assert (installed / "attractor/explorer/static/explorer.js").read_text("utf-8")[:200] in page


@pytest.mark.slow
def test_the_installed_package_opens_the_widget(installed):
    pytest.importorskip("anywidget")
    code = (
        "import attractor as at\n"
        "tokens = at.Tokens.prompt_vector([[[1, 0], [0, 1]]], labels=[1])\n"
        "widget = at.explore(tokens, at.LinearHead([1, 0]), steps=5)\n"
        "assert widget.kernel['value'] > 0 and len(widget._esm) > 10_000\n"
        "print(at.__file__)\n"
    )
    place = run("-c", code, at=installed.parent, PYTHONPATH=str(installed))
    assert Path(place.strip()).is_relative_to(installed)


@pytest.mark.processes
def test_the_installed_package_solves_and_has_its_command(installed):
    code = (
        "import attractor as at\n"
        "problem = at.MarginProblem([[1, -1], [-1, 3]], [[1, 0], [0, 1]])\n"
        "print(at.__file__, round(at.solve(problem).norm ** 2, 9))\n"
    )
    path, norm = run("-c", code, at=installed.parent, PYTHONPATH=str(installed)).split()
    assert Path(path).is_relative_to(installed)
    assert norm == "0.6"
    script = installed / "bin/attractor"
    said = run(script, "--version", at=installed.parent, PYTHONPATH=str(installed))
    (metadata,) = installed.glob("attractor-*.dist-info")
    assert said.split()[-1] == metadata.name.removeprefix("attractor-").removesuffix(".dist-info")
