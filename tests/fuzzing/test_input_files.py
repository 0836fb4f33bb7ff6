"""The fuzzer of input files: what it does to files, and a few of them read."""

import json

import pytest

from attractor.cli.application import app  # noqa: F401 - not a part of any test's time
from fuzzing.input_files import main, mutated, read_here, report
from fuzzing.kinds import KINDS, make_originals, place

QUICK = {
    "tokens.npz": 20, "tokens.safetensors": 20, "corpus.txt": 8, "corpus.npz": 12,
    "corpus.safetensors": 12, "regression.npz": 8, "in-context.npz": 8,
    "classifiers.nc": 8,
    "certificate.json": 40, "model.safetensors": 25, "figure.png": 10, "figure.svg": 10,
    "figure.nc": 10, "report.html": 10, "report.json": 20, "claims.json": 10, "images": 20,
    "reviews.csv": 20, "tokenizer.json": 20, "mixture.npz": 12, "product.npz": 12,
    "product.safetensors": 12, "empirical.npz": 12,
}  # fmt: skip
"""Kinds that take little time, and how many of each."""


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzzing") / "originals"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
        make_originals(folder, trained=False)
        yield folder


@pytest.mark.parametrize("name", QUICK)
def test_damaged_files_end_in_a_message(name, originals, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    allowed = (0, 1, 2) if name == "certificate.json" else (0, 2, 3)
    contents = set()
    for number in range(QUICK[name]):
        content = mutated(name, number, 7, originals)
        assert content == mutated(name, number, 7, originals)
        contents.add(content)
        code, words = read_here(
            name, place(KINDS[name], originals, tmp_path / "w", content), originals
        )
        assert code in allowed, f"{number}: {words}"
        assert number or code == 0, f"the whole file is not read: {words}"
    assert len(contents) > QUICK[name] / 2


@pytest.mark.slow
def test_a_killed_run_goes_on_and_every_kind_is_read(tmp_path, monkeypatch):
    def run(count):
        given = (
            "--count",
            str(count),
            "--processes",
            "1",
            "--out",
            str(tmp_path),
            "--kind",
            *kinds,
        )
        monkeypatch.setattr("sys.argv", ["fuzz", *given])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code

    kinds = list(KINDS)
    run(3)
    kinds = ["tokens.npz"]
    first = (tmp_path / "tokens.npz.jsonl").read_text()
    (tmp_path / "tokens.npz.jsonl").write_text(first[:-20])  # a line that was being written
    run(5)
    table = json.loads((tmp_path / "report.json").read_text())
    assert table == report(tmp_path) and set(table) == set(KINDS)
    assert table["tokens.npz"]["read"] == 6
