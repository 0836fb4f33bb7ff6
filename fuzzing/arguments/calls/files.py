"""Calls of ``attractor.files``, ``provenance`` and ``report``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attractor import files, provenance, report
from fuzzing.arguments import example_files as given
from fuzzing.arguments import examples as ex
from fuzzing.arguments.table import Call

FILE = {"path": "file", "folder": "file", "directory": "out"}
"""What a path is called where its content or what lies there is what is wrong."""


def calls() -> Iterator[Call]:
    """One call of each."""
    yield Call(files.load, path=given.TOKEN_FILE, blames=FILE)
    yield Call(files.load_tokens, path=given.TOKEN_FILE, blames=FILE)
    yield Call(files.load_corpus, path=given.CORPUS_FILE, blames=FILE)
    yield Call(files.load_head, path=given.HEAD_FILE, blames=FILE)
    yield Call(files.save_classifiers, path="a.nc", loaded=given.LOADED_CLASSIFIERS)
    yield Call(
        files.save_corpus, path="c.npz", corpus=ex.CORPUS, embeddings=ex.EMBEDDINGS,
        takes={"embeddings": "array none"},
    )  # fmt: skip
    yield Call(files.save_head, path="h.npz", head=ex.PROMPT_HEAD, tokens=ex.GAUSSIAN)
    yield Call(files.save_regression, path="r.npz", loaded=given.LOADED_REGRESSION)
    yield Call(
        files.save_tokens, path="t.npz", tokens=ex.TOKENS, head=ex.HEAD,
        takes={"initial": "array none"},
    )  # fmt: skip
    yield Call(
        provenance.Provenance.record,
        kind="claim",
        name="rate",
        arguments={"a": 1},
        takes={"seeds": "iterable sequence array", "bibtex": "iterable sequence array"},
    )
    yield Call(provenance.Provenance.from_json, text=given.PROVENANCE_TEXT)
    yield Call(provenance.data_hash, tokens=ex.TOKENS, head=ex.HEAD)
    yield Call(provenance.differences, old=given.PROVENANCE, new=given.PROVENANCE)
    yield Call(
        provenance.embed, path=given.PICTURE, provenance=given.PROVENANCE, blames={"path": "file"}
    )
    yield Call(provenance.embed_all, folder=given.PICTURE_FOLDER, provenance=given.PROVENANCE)
    yield Call(provenance.read_provenance, path=given.PICTURE_WITH_PROVENANCE, blames=FILE)
    yield Call(
        report.conflicts, solution=given.INFEASIBLE, instance_numbers=np.array([0]),
        takes={"instance_numbers": "array"},
    )  # fmt: skip
    yield Call(
        report.write_report, directory="report", prediction=ex.SOLUTION, blames=FILE,
        takes={"instance_numbers": "array none"},
    )  # fmt: skip
    yield Call(
        report.write_digits_report, directory="digits", results=given.DIGIT_RESULTS, blames=FILE
    )
