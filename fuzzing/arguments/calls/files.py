"""Calls of ``attractor.files``, ``provenance`` and ``report``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attractor import corpora, files, maps, papers, prompts, report
from attractor.results import provenance
from fuzzing.arguments import example_files as given, examples as ex
from fuzzing.arguments.table import Call

FILE = {"path": "file", "folder": "file", "directory": "out"}
"""What a path is called where its content or what lies there is what is wrong."""


def calls() -> Iterator[Call]:
    """One call of each."""
    yield Call(files.load, path=given.TOKEN_FILE, blames=FILE)
    yield Call(files.load_tokens, path=given.TOKEN_FILE, blames=FILE)
    yield Call(corpora.CorpusCase.read, path=given.CORPUS_FILE, blames=FILE)
    yield Call(corpora.load_corpus, path=given.CORPUS_FILE, blames=FILE)
    yield Call(prompts.load_head, path=given.HEAD_FILE, blames=FILE)
    yield Call(papers.save_classifiers, path="a.nc", loaded=given.LOADED_CLASSIFIERS)
    yield Call(
        corpora.save_corpus, path="c.npz", corpus=ex.CORPUS, embeddings=ex.EMBEDDINGS,
        takes={"embeddings": "array none"},
    )  # fmt: skip
    yield Call(prompts.save_head, path="h.npz", head=ex.PROMPT_HEAD, tokens=ex.GAUSSIAN)
    yield Call(prompts.save_in_context, path="r.npz", loaded=given.IN_CONTEXT_CASE)
    yield Call(prompts.save_regression, path="r.npz", loaded=given.LOADED_REGRESSION)
    yield Call(
        files.save_tokens, path="t.npz", tokens=ex.TOKENS, head=ex.HEAD,
        takes={"initial": "array none"},
    )  # fmt: skip
    case = {"self": given.CASE}
    yield Call(
        files.Case.from_scores, keys=np.eye(3)[None] + 1, scores=np.array([[1.0, 0.0, 0.5]]),
        takes={"keys": "array", "scores": "array", "queries": "array none"},
        blames={
            "keys": "scores values labels", "scores": "labels values keys",
            "queries": "keys labels",
        },
    )  # fmt: skip
    yield Call(files.Case.read, path=given.TOKEN_FILE, blames=FILE)
    yield Call(files.Case.save, **case, path="case.npz")
    yield Call(files.Case.solution, **case)
    yield Call(corpora.CorpusCase.save, self=given.CORPUS_CASE, path="corpus.npz")
    yield Call(prompts.HeadCase.save, self=given.HEAD_CASE, path="head.npz")
    yield Call(prompts.RegressionCase.save, self=given.REGRESSION_CASE, path="task.npz")
    yield Call(prompts.InContextCase.save, self=given.IN_CONTEXT_CASE, path="tasks.npz")
    yield Call(
        prompts.InContextCase.of_task, task=ex.IN_CONTEXT_TASK, tasks=8, longest=4, lengths=[2],
        sigmas=8, blames={"lengths": "length"},
    )  # fmt: skip
    yield Call(papers.ClassifierCase.save, self=given.CLASSIFIER_CASE, path="results.nc")
    yield Call(
        corpora.CorpusCase.with_vocabulary, self=given.CORPUS_CASE, most=2,
        blames={"most": "vocabulary"},
    )  # fmt: skip
    yield Call(files.LoadedTokens.read, path=given.TOKEN_FILE, blames=FILE)
    yield Call(papers.ClassifierCase.read, path=given.CLASSIFIERS_FILE, blames=FILE)
    yield Call(files.register_file, kind=prompts.HeadCase)
    yield Call(
        provenance.Provenance.record,
        kind="claim",
        name="rate",
        arguments={"a": 1},
        takes={"seeds": "iterable sequence array", "bibtex": "iterable sequence array"},
    )
    yield Call(provenance.Provenance.from_json, text=given.PROVENANCE_TEXT)
    yield Call(files.data_hash, tokens=ex.TOKENS, head=ex.HEAD)
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
    yield Call(maps.paired, first=ex.BIAS, second=ex.BIAS)
    yield Call(maps.labeled, path=given.RUN_FILE, blames=FILE, nan=True)
