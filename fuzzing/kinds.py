"""The kinds of input file: an undamaged one of each, and what reads it.

Reading is always real. Where a file that is undamaged, or damaged so that it is still valid, would
begin work of minutes, that work alone is left out (``Kind.stub``), after everything was checked:
the pictures of corpus reports, the checks of claims, and what ``reproduce`` runs again, in whose
place the undamaged result is handed back.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import importlib.abc
import importlib.util
import json
import runpy
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import typer

ROOT = Path(__file__).parents[1]
FIGURE = "max-margin/global-and-local"
CLAIM = "max-margin/optimal-tokens-minimize-loss"


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of input file.

    Attributes:
        file: The undamaged one, in the folder of originals; what lies beside it is copied with it.
        read: Arguments of ``attractor`` with FILE for the file and FOLDER for where it lies, or a
            function of the file.
        stub: What is left out once the file was read, given the folder of originals.
    """

    file: str
    read: tuple[str, ...] | Callable[[Path], Any]
    stub: Callable[[Path], contextlib.AbstractContextManager[Any]] = lambda _: (
        contextlib.nullcontext()
    )


class _OnImport(importlib.abc.MetaPathFinder):
    """Has a module changed once it is imported, so that what is not needed stays unloaded."""

    def __init__(self, module: str, change: Callable[[], None]) -> None:
        self.module, self.change = module, change

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.loader is not None
        execute = spec.loader.exec_module

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            self.change()

        spec.loader.exec_module = execute_and_change
        return spec


@contextlib.contextmanager
def _replaced(module: str, name: str, replacement: Callable[[Any], Any]) -> Iterator[None]:
    """Replaces an attribute of a module by what is made of it, now or when it is imported."""
    with contextlib.ExitStack() as changes:

        def change() -> None:
            it = sys.modules[module]
            changes.enter_context(mock.patch.object(it, name, replacement(getattr(it, name))))

        if module in sys.modules:
            change()
        else:
            finder = _OnImport(module, change)
            sys.meta_path.insert(0, finder)
            changes.callback(lambda: finder in sys.meta_path and sys.meta_path.remove(finder))
        yield


def _done(*_: Any, **__: Any) -> None:
    raise typer.Exit(0)


def _no_pictures(_: Path) -> Any:
    return _replaced("attractor.corpora.page", "write_corpus_report", lambda _: _done)


def _no_checks(_: Path) -> Any:
    return _replaced("attractor.papers.ledger.check", "check_claim", lambda _: _done)


def _no_command(folder: str) -> Callable[[Path], Any]:
    """Has ``reproduce`` make nothing again: what a command would write is copied."""

    def without_work(originals: Path) -> Any:
        def of(find: Callable[[str], Any]) -> Callable[[str], Any]:
            def found(command: str) -> Any:
                @functools.wraps(find(command))
                def run(*, out: Path, **_: Any) -> None:
                    shutil.copytree(originals / folder, out)

                return run

            return found

        return _replaced("attractor.papers.commands.reproduce", "function_of", of)

    return without_work


def _certificate(file: Path) -> int:
    checker = runpy.run_path(str(ROOT / "tools" / "verify_certificate.py"))
    with mock.patch.object(sys, "argv", ["verify_certificate.py", str(file)]):
        return checker["main"]()


def _model(file: Path) -> None:
    from attractor.models import load_model

    load_model(file)


def _reader_of(module: str, kind: str) -> Callable[[Path], None]:
    """Loads a run and prints it, as a user does who wants to see what it is."""

    def read(file: Path) -> None:
        run = getattr(importlib.import_module(module), kind).load(file)
        str(run), run._repr_html_()

    return read


def _head(file: Path) -> None:
    from attractor.prompts import load_head

    head = load_head(file)
    repr(head), head.hash, head.token_moments


def _images(file: Path) -> None:
    from attractor.models.datasets.images import load_images

    load_images(file.parent)


def _reviews(file: Path) -> None:
    from attractor.models.datasets.reviews import load_reviews

    load_reviews(file)


def _tokenizer(file: Path) -> None:
    from attractor.models.datasets.tokenizer import load_tokenizer

    load_tokenizer(file)


_REPRODUCE = ("reproduce", "FILE")
_OF_CLAIMS = (*_REPRODUCE, "--data", "FOLDER/../tokens.npz")
_CORPUS = ("corpus", "FILE", "--out", "FOLDER/out")
_CLAIMS = ("claims", "--data", "FILE", "--out", "FOLDER/out")
_RUN = ("--steps", "20", "--seeds", "1", "--out")
_TRAIN = ("train", "FOLDER/../tokens.npz", *_RUN, "FOLDER/../out.nc", "--checkpoint", "FOLDER")

_LAWS = (("mixture", "npz"), ("product", "npz"), ("product", "safetensors"), ("empirical", "npz"))
"""Heads whose tokens are of other laws."""

KINDS = {
    "tokens.npz": Kind("tokens.npz", ("solve", "FILE")),
    "tokens.safetensors": Kind("tokens.safetensors", ("solve", "FILE")),
    "corpus.txt": Kind("corpus.txt", _CORPUS, _no_pictures),
    "corpus.npz": Kind("corpus.npz", _CORPUS, _no_pictures),
    "corpus.safetensors": Kind("corpus.safetensors", _CORPUS, _no_pictures),
    "head.npz": Kind("head.npz", ("prompt-length", "FILE")),
    **{f"{law}.{suffix}": Kind(f"{law}.{suffix}", _head) for law, suffix in _LAWS},
    "regression.npz": Kind("regression.npz", _CLAIMS, _no_checks),
    "in-context.npz": Kind("in-context.npz", _CLAIMS, _no_checks),
    "classifiers.nc": Kind("classifiers.nc", _CLAIMS, _no_checks),
    "run.nc": Kind("run.nc", ("verify", "FILE")),
    "decoder.nc": Kind("decoder.nc", _reader_of("attractor.corpora.linear", "LinearTrajectory")),
    "stages.nc": Kind("stages.nc", _reader_of("attractor.corpora", "TwoStageTrajectory")),
    "training.nc": Kind("training.nc", _reader_of("attractor.models", "ClassifierTrajectory")),
    "context.nc": Kind(
        "context.nc", _reader_of("attractor.prompts.regression", "InContextTrajectory")
    ),
    "checkpoint.json": Kind("checkpoint/attractor-checkpoint.json", _TRAIN),
    "checkpoint.state": Kind("checkpoint/state.safetensors", _TRAIN),
    "checkpoint.measurements": Kind("checkpoint/measurements-000000.safetensors", _TRAIN),
    "certificate.json": Kind("certificate.json", _certificate),
    "model.safetensors": Kind("model.safetensors", _model),
    **{
        f"figure.{suffix}": Kind(
            f"figure/global-and-local.{suffix}", _REPRODUCE, _no_command("figure")
        )
        for suffix in ("png", "svg", "nc")
    },
    "report.html": Kind("report/report.html", _REPRODUCE, _no_command("report")),
    "report.json": Kind("report/summary.json", _REPRODUCE, _no_command("report")),
    "claims.html": Kind("claims/report.html", _OF_CLAIMS, _no_command("claims")),
    "claims.json": Kind("claims/claims.json", _OF_CLAIMS, _no_command("claims")),
    "images": Kind("images/train-images-idx3-ubyte", _images),
    "reviews.csv": Kind("reviews.csv", _reviews),
    "tokenizer.json": Kind("tokenizer.json", _tokenizer),
}


def make_originals(folder: Path, *, trained: bool = True) -> None:
    """Writes an undamaged file of every kind, the same bytes each time.

    Args:
        folder: Where; it must not exist.
        trained: Whether to write those, too, that take seconds to train.
    """
    folder.mkdir(parents=True)
    for kind in ("npz", "safetensors"):
        _run("example", "tokens", folder / f"tokens.{kind}")
        _run("example", "corpus", folder / f"corpus.{kind}")
    _run("example", "corpus", folder / "corpus.txt")
    _run("example", "head", folder / "head.npz")
    for law, suffix in _LAWS:
        _run("example", "head", folder / f"{law}.{suffix}", "--law", law)
    tokens = folder / "tokens.npz"
    _run("solve", tokens, "--certificate", folder / "certificate.json")
    if trained:
        _run("train", tokens, *_RUN, folder / "run.nc", "--checkpoint", folder / "checkpoint")
        _write_runs(folder)
    _write_results(folder)
    _write_data(folder)
    _write_models(folder)


def _run(*words: Any) -> None:
    from typer.testing import CliRunner

    from attractor.cli.application import app

    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exit_code:
        raise RuntimeError(f"{words}: {done.output}") from done.exception


def _write_runs(folder: Path) -> None:
    """A run of every other kind."""
    import optax

    from attractor.corpora import Corpus, train_two_stages
    from attractor.models import (
        ClassificationData,
        Examples,
        TextTransformerConfig,
        train_classifier,
    )
    from attractor.prompts.regression import RegressionTask, train_in_context

    corpus = Corpus.from_sentences([["a", "b"], ["b", "c"], ["c", "a", "b"]])
    stages = train_two_stages(corpus, steps=(3, 3))
    stages.save(folder / "stages.nc")
    stages.feed_forward.save(folder / "decoder.nc")
    texts = Examples(np.arange(12).reshape(4, 3) % 5, [0, 1, 0, 1])
    config = TextTransformerConfig(vocabulary=5, length=3, width=4, blocks=1, heads=2, hidden=4)
    data = ClassificationData(texts, test=texts)
    train_classifier(config, data, optax.adam(1e-2), epochs=2, batch=2).save(folder / "training.nc")
    task = RegressionTask(np.eye(2), label_noise=0.1)
    context = train_in_context(task, length=8, steps=3, batch=4, held_out=4)
    context.save(folder / "context.nc")


def _write_results(folder: Path) -> None:
    """A figure, a report and outcomes, of the form of real ones, that say what real ones say."""
    import xarray as xr
    from matplotlib.figure import Figure

    from attractor import plots
    from attractor.results.provenance import Provenance, embed

    for name in ("figure", "report", "claims"):
        (folder / name).mkdir()
    asked = {"size": "quick", "seeds": 1, "seed": 0, "as_published": False}
    made = Provenance.record("figure", FIGURE, arguments=asked, data="a: b", seeds=[0])
    data = xr.Dataset(
        {"path": (("step", "axis"), np.arange(6.0).reshape(3, 2))},
        {"step": [0, 1, 2], "axis": ["x", "y"]},
    )
    stored = folder / "figure" / "global-and-local.nc"
    data.to_netcdf(stored, engine="h5netcdf")
    embed(stored, made)
    with plots.style():
        picture = Figure(figsize=(1, 1))
        picture.subplots().plot([0, 1])
        plots.save_figure(picture, folder / "figure", "global-and-local", provenance=made)
    asked = {"optimizer": ["ngd", "md:p=1.5"], "lr": 0.1, "parameterization": "W"}
    asked |= {"size": "quick", "data_sets": 1, "steps": 20, "matched": False}
    asked |= {"seed": 0, "data": False}
    made = Provenance.record("report", "matrix", arguments=asked, seeds=[0], settings={"steps": 20})
    numbers = {"optimizers": [{"optimizer": "ngd", "margin_ratio": {"l_1": 0.5}}], "steps": 20}
    _write_pages(folder / "report", "summary.json", numbers, made)
    asked = {"names": [CLAIM], "data": True, "seed": 0}
    made = Provenance.record("claim", CLAIM, arguments=asked, data="a", seeds=[0])
    outcome = {"outcome": "holds", "measured": {"value": 1e-9}}
    _write_pages(folder / "claims", "claims.json", {"claims": {CLAIM: {"data": [outcome]}}}, made)


def _write_pages(folder: Path, name: str, contents: Any, made: Any) -> None:
    from attractor.results.provenance import embed

    (folder / name).write_text(json.dumps(contents, indent=2), "utf-8")
    page = "<!DOCTYPE html>\n<html><head><title>A</title></head><body><p>A</p></body></html>\n"
    (folder / "report.html").write_text(page, "utf-8")
    for file in (name, "report.html"):
        embed(folder / file, made)


def _write_data(folder: Path) -> None:
    """Results of classifiers, in-context tasks, images and reviews."""
    import xarray as xr

    from attractor.papers import CLASSIFIERS_LAYOUT

    rng = np.random.default_rng(0)
    np.savez(folder / "regression.npz", covariance=[[1.0, 0.5], [0.5, 1.0]], weight_variance=1.0)
    np.savez(
        folder / "in-context.npz",
        prompts=rng.normal(size=(8, 4, 2)),
        queries=rng.normal(size=(8, 2)),
        labels=rng.normal(size=8),
        length=[1, 2],
    )
    labels = {
        "optimizer": ["p = 1.1", "p = 2"],
        "seed": [0, 1],
        "matrix": ["queries", "keys", "values"],
        "block": [1, 2],
        "epoch": [1, 2],
    }
    variables = {
        name: (axes, rng.random([len(labels[axis]) for axis in axes]))
        for name, (axes, _) in CLASSIFIERS_LAYOUT.items()
    }
    variables["status"] = (("optimizer", "seed"), np.zeros((2, 2), int))
    results = xr.Dataset(variables, labels, {"data": "text", "chance": 0.5, "test_examples": 2000})
    results.to_netcdf(folder / "classifiers.nc", engine="h5netcdf")
    images = folder / "images"
    images.mkdir()
    pixels = rng.integers(256, size=(20, 4, 4), dtype=np.uint8)
    head = np.array([0x803, 20, 4, 4], ">u4").tobytes()
    (images / "train-images-idx3-ubyte").write_bytes(head + pixels.tobytes())
    numbers = np.arange(20, dtype=np.uint8) % 10
    (images / "train-labels-idx1-ubyte").write_bytes(
        np.array([0x801, 20], ">u4").tobytes() + numbers.tobytes()
    )
    lines = [f'"review {row}, with ""quotes"" and more",{row % 2}' for row in range(20)]
    (folder / "reviews.csv").write_text("\n".join(["text,label", *lines, ""]), "utf-8")


def _write_models(folder: Path) -> None:
    """A model that was not trained, and a tokenizer."""
    import jax
    from tokenizers import Tokenizer, models, processors

    from attractor.models import TextTransformerConfig, build_model, save_model

    config = TextTransformerConfig(vocabulary=9, length=4, width=4, blocks=1, heads=2, hidden=8)
    save_model(
        folder / "model.safetensors",
        jax.jit(lambda key: build_model(config, key=key))(jax.random.key(0)),
    )
    words = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "a": 3}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]"])
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A", None, [("[CLS]", 2)])
    (folder / "tokenizer.json").write_text(json.dumps(json.loads(tokenizer.to_str())), "utf-8")


def arguments(kind: Kind, file: Path) -> list[str]:
    """What the command line is called with to read a file."""
    assert not callable(kind.read)
    words = {"FILE": str(file), "FOLDER": str(file.parent)}
    return [
        words.get(one, one.replace("FOLDER", words["FOLDER"]) if "FOLDER/" in one else one)
        for one in kind.read
    ]


def place(kind: Kind, originals: Path, work: Path, content: bytes) -> Path:
    """Lays a damaged file where what belongs to it lies beside it."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    source = originals / kind.file
    if source.parent == originals:
        file = work / "input" / source.name
        file.parent.mkdir()
    else:
        file = work / source.relative_to(originals)
        shutil.copytree(source.parent, file.parent)
        shutil.copy(originals / "tokens.npz", work)
    file.write_bytes(content)
    return file


def main() -> None:
    """Reads one file in a process of its own: ``python -m fuzzing.kinds KIND ORIGINALS FILE``."""
    from attractor.cli import main as attractor
    from attractor.support.errors import AttractorError

    name, originals, file = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    kind = KINDS[name]
    with kind.stub(originals):
        if callable(kind.read):
            try:
                sys.exit(kind.read(file) or 0)
            except AttractorError as error:
                print(error, file=sys.stderr)
                sys.exit(2)
        sys.argv = ["attractor", *arguments(kind, file)]
        attractor()


if __name__ == "__main__":
    main()
