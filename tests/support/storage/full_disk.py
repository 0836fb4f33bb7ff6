"""Writes a file of every kind where there is no room for it, and says what became of it.

Usage: full_disk.py FOLDER HOW WHICH. A disk is made full by filling it (HOW is "filled": FOLDER is
a small file system) or by the limit of the system on the size of files ("limited"). WHICH is
"all", or "few" for those that need neither solver nor training. It prints a line of JSON for each.
"""

import gc
import itertools
import json
import os
import resource
import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import attractor as at
from attractor.corpora import Corpus, save_corpus
from attractor.datasets import unit_tokens
from attractor.files import save_tokens
from attractor.plots.design.look import save_figure, style
from attractor.prompts import InContextCase, save_head, save_in_context, save_regression
from attractor.prompts.example import random_head
from attractor.prompts.files.regression import RegressionCase
from attractor.prompts.regression import RegressionTask
from attractor.report import write_report
from attractor.results import save_data
from attractor.results.paper import MAX_MARGIN
from attractor.results.provenance import Provenance, embed
from attractor.support.storage import write_file

PROVENANCE = Provenance.record(
    "figure", "name", arguments={}, bibtex=[MAX_MARGIN.bibtex("a statement")]
)


def few():
    """Names of files, and functions that write them."""
    drawn, heads = unit_tokens(3, 4, 3, seeds=[0])
    tokens = at.Tokens(drawn.keys[0], drawn.queries[0], drawn.labels[0])
    head = at.LinearHead(heads.weight[0])
    corpus = Corpus.from_sentences([["dogs", "chase", "cats", "."], ["cats", ".", "."]])
    law = random_head(samples=None, seed=0)
    task = RegressionCase(RegressionTask(np.eye(2)), (4,), 1.0, 1.0, 1.0)
    prompts = InContextCase(np.ones((8, 4, 2)), np.ones((8, 2)), np.ones((8, 1)), lengths=(2,))
    data = xr.Dataset({"W": (("row", "column"), np.arange(4000.0).reshape(40, 100))})
    for ending in (".npz", ".safetensors"):
        yield f"tokens{ending}", lambda path: save_tokens(path, tokens, head)
        yield f"corpus{ending}", lambda path: save_corpus(path, corpus)
        yield f"head{ending}", lambda path: save_head(path, *law)
        yield f"task{ending}", lambda path: save_regression(path, task)
        yield f"prompts{ending}", lambda path: save_in_context(path, prompts)
    yield "text.txt", lambda path: write_file(path, "text " * 5000)
    yield "arrays.nc", lambda path: save_data(data, path, "arrays")
    for ending in (".nc", ".json", ".html"):
        yield f"embedded{ending}", lambda path: embed(path, PROVENANCE)


def others():
    """Those that take longer."""
    drawn, heads = unit_tokens(3, 4, 3, seeds=[0])
    tokens = at.Tokens(drawn.keys[0], drawn.queries[0], drawn.labels[0])
    head = at.LinearHead(heads.weight[0])
    solution = at.solve(
        at.MarginProblem.from_selection(tokens, at.optimal_tokens(tokens, head)), at.Frobenius()
    )
    run = at.train(tokens, head, at.normalized_gradient_descent(0.1), steps=20, seeds=1)
    verdict = at.verify(run)
    figure = Figure()
    figure.subplots().plot([1, 2])

    def drawn(path):
        with style():
            save_figure(figure, path.parent, "drawing")

    yield "certificate.json", solution.save_certificate
    yield "run.nc", run.save
    yield "trials.csv", verdict.to_csv
    yield "verdict.json", verdict.to_json
    yield "drawing.png", drawn
    yield "report", lambda path: write_report(path, prediction=solution, provenance=PROVENANCE)
    for ending in (".png", ".svg"):
        yield f"embedded{ending}", lambda path: embed(path, PROVENANCE)


def prepared(path):
    """What a provenance is put into."""
    figure = Figure()
    if path.suffix in (".png", ".svg"):
        figure.savefig(path)
    elif path.suffix == ".nc":
        xr.Dataset({"W": ("row", np.arange(4.0))}).to_netcdf(path, engine="h5netcdf")
    else:
        path.write_text({".json": "{}", ".html": "<html><head></head></html>"}[path.suffix])


def contents(folder):
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Full:
    """No room for a byte in a file, or on a whole disk."""

    def __init__(self, folder, how):
        self._folder, self._how = folder, how

    def __enter__(self):
        if self._how == "limited":
            self._limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (8, self._limits[1]))
            return
        with (self._folder / "filling").open("wb", buffering=0) as filling:
            try:
                while True:
                    filling.write(bytes(4096))
            except OSError:
                pass

    def __exit__(self, *error):
        if self._how == "limited":
            resource.setrlimit(resource.RLIMIT_FSIZE, self._limits)
        else:
            (self._folder / "filling").unlink()


def main(folder, how, which):
    gc.freeze()  # what the libraries hold need not be gone through for every file
    for name, write in itertools.chain(few(), others() if which == "all" else ()):
        place = Path(folder) / "place"
        place.mkdir()
        found = {"name": name, "error": None}
        if name.startswith("embedded"):
            prepared(place / name)
        for begun in (False, True):  # a new file, then one that is there already
            before = contents(place)
            with Full(Path(folder), how):
                try:
                    write(place / name)
                except OSError as error:
                    found |= {"error": type(error).__name__, "message": str(error)}
                    del error
                gc.collect()
            found["same"] = contents(place) == before and found.get("same", True)
            found["left"] = [path.name for path in place.rglob(".*")]
            if not begun and not name.startswith("embedded"):
                write(place / name)
        print(json.dumps(found), flush=True)
        for path in sorted(place.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        place.rmdir()
    gc.collect()
    os.sync()


if __name__ == "__main__":
    main(*sys.argv[1:])
