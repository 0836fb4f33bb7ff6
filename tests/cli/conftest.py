import json

import numpy as np
import pytest
from typer.testing import CliRunner

from attractor.cli.application import app


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory):
    """Keeps compiled programs out of the user's own cache; subprocesses share this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()

    def call(*arguments):
        return runner.invoke(app, [str(argument) for argument in arguments])

    return call


@pytest.fixture
def run_json(run):
    def call(*arguments):
        result = run(*arguments, "--json")
        return json.loads(result.stdout), result

    return call


@pytest.fixture(scope="session")
def example(tmp_path_factory):
    """The contents of the token file that the command line writes as an example."""
    path = tmp_path_factory.mktemp("example") / "tokens.npz"
    result = CliRunner().invoke(app, ["example", "tokens", str(path), "--quiet"])
    assert result.exit_code == 0
    return path.read_bytes()


@pytest.fixture
def file(tmp_path, example):
    path = tmp_path / "tokens.npz"
    path.write_bytes(example)
    return path


@pytest.fixture
def contradictory(tmp_path):
    """Two sequences that ask for opposite tokens of the same pair."""
    keys = np.array([[[1.0, 0], [-1, 0]], [[1, 0], [-1, 0]]])
    path = tmp_path / "contradictory.npz"
    np.savez(path, keys=keys, queries=np.eye(2)[[0, 0]], labels=[1, -1], head=[1.0, 0.0])
    return path


@pytest.fixture
def change():
    """Rewrites a token file with some arrays changed, or left out where None."""

    def rewrite(path, **arrays):
        with np.load(path) as stored:
            given = dict(stored) | arrays
        np.savez(path, **{name: array for name, array in given.items() if array is not None})

    return rewrite
