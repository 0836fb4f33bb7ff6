"""Files, texts, images and models that valid calls read."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import jax
import numpy as np
import optax
import xarray as xr

import attractor as at
from attractor import corpora, files, heads, models, papers, prompts
from attractor.models.datasets import reviews
from attractor.papers import CLASSIFIERS_LAYOUT
from attractor.results import provenance
from fuzzing.arguments import examples as ex
from fuzzing.arguments.table import Lazy

_KEPT = Lazy(lambda: tempfile.TemporaryDirectory())


def _place(name: str) -> Path:
    return Path(_KEPT.value.name) / name


def _write(name: str, content: str | bytes) -> Path:
    place = _place(name)
    place.parent.mkdir(exist_ok=True, parents=True)
    place.write_bytes(content if isinstance(content, bytes) else content.encode())
    return place


def _saved(name: str, save: object, *arguments: object) -> Path:
    save(_place(name), *arguments)  # type: ignore[operator]
    return _place(name)


TOKEN_FILE = Lazy(lambda: _saved("t.npz", files.save_tokens, ex.TOKENS.value, ex.HEAD.value))
CORPUS_FILE = Lazy(lambda: _saved("c.npz", corpora.save_corpus, ex.CORPUS.value))
HEAD_FILE = Lazy(
    lambda: _saved("h.npz", prompts.save_head, ex.PROMPT_HEAD.value, ex.GAUSSIAN.value)
)
AUDIT_FILE = Lazy(lambda: _saved("a.nc", lambda path: ex.AUDIT.value.save(path)))
CHECKPOINT_AUDIT_FILE = Lazy(
    lambda: _saved("k.nc", lambda path: ex.CHECKPOINT_AUDIT.value.save(path))
)
RECORD_FILE = Lazy(lambda: _saved("m.nc", lambda path: ex.MONITORED.value.save(path)))
LOADED_REGRESSION = Lazy(
    lambda: prompts.RegressionCase(ex.TASK.value, (10,), 0.1, 0.1, float("inf"))
)


def _results() -> papers.ClassifierCase:
    coordinates = {
        "optimizer": ["p = 1.1", "Adam"],
        "seed": [0, 1],
        "matrix": ["queries", "keys", "values"],
        "block": [1, 2],
        "epoch": [1, 2],
    }
    shapes = {name: len(values) for name, values in coordinates.items()}
    variables = {
        name: (axes, np.full([shapes[each] for each in axes], 0.5))
        for name, (axes, _) in CLASSIFIERS_LAYOUT.items()
    }
    data = xr.Dataset(
        variables, coordinates, {"data": "text", "chance": 0.5, "test_examples": 2000}
    )
    data.to_netcdf(_place("results.nc"), engine="h5netcdf")
    loaded = at.load(_place("results.nc"))
    assert isinstance(loaded, papers.ClassifierCase)
    return loaded


LOADED_CLASSIFIERS = Lazy(_results)
CLASSIFIERS_FILE = Lazy(lambda: LOADED_CLASSIFIERS.value and _place("results.nc"))

PROVENANCE = Lazy(lambda: provenance.Provenance.record("claim", "rate", arguments={"a": 1}))
PROVENANCE_TEXT = Lazy(lambda: PROVENANCE.value.to_json())
PICTURE_FOLDER = Lazy(lambda: _write("pictures/page.html", "<html><head></head></html>").parent)
PICTURE = Lazy(lambda: _write("page.html", "<html><head></head></html>"))


def _embedded() -> Path:
    page = _write("marked.html", "<html><head></head></html>")
    provenance.embed(page, PROVENANCE.value)
    return page


PICTURE_WITH_PROVENANCE = Lazy(_embedded)

TEXTS = tuple(f"a {word} {thing}" for thing in ("film", "play", "song") for word in ("bad", "good"))
REVIEW_FILE = Lazy(
    lambda: _write(
        "reviews.csv", "text,label\n" + "".join(f"{t},{i % 2}\n" for i, t in enumerate(TEXTS))
    )
)
REVIEWS = Lazy(lambda: reviews.load_reviews(REVIEW_FILE.value))
TOKENIZER = Lazy(lambda: models.datasets.train_tokenizer(TEXTS, vocabulary=40, minimum_count=1))
TOKENIZER_FILE = Lazy(lambda: _saved("tokenizer.json", lambda path: TOKENIZER.value.save(path)))
TOKENIZER_TEXT = Lazy(lambda: TOKENIZER_FILE.value.read_text())
TEXT_WORDS = Lazy(lambda: TOKENIZER.value.words("a good film"))
TEXT_VALUES = Lazy(lambda: np.ones(len(TEXT_WORDS.value.word_of_position)))


def _images() -> Path:
    pixels = np.arange(12 * 20, dtype=np.uint8)
    head = struct.pack(">4I", 0x803, 12, 5, 4)
    _write("idx/train-images-idx3-ubyte", head + pixels.tobytes())
    labels = struct.pack(">2I", 0x801, 12) + bytes(i % 3 for i in range(12))
    return _write("idx/train-labels-idx1-ubyte", labels).parent


IMAGE_FILE = Lazy(_images)
IMAGES = Lazy(lambda: models.datasets.load_images(IMAGE_FILE.value))

TEXT_CONFIG = Lazy(
    lambda: models.TextTransformerConfig(
        vocabulary=8, length=3, width=4, blocks=1, heads=2, hidden=4, dropout=0.1
    )
)
VISION_CONFIG = Lazy(
    lambda: models.VisionTransformerConfig(
        image=(4, 4), channels=1, patch=2, classes=2, width=4, blocks=1, heads=2, hidden=4
    )
)
TEXT_CONFIG_TEXT = Lazy(lambda: TEXT_CONFIG.value.to_json())
MODEL = Lazy(lambda: models.build_model(TEXT_CONFIG.value, key=jax.random.key(0)))
MODEL_FILE = Lazy(lambda: _saved("model.safetensors", models.save_model, MODEL.value))
EXAMPLES = Lazy(
    lambda: models.Examples(np.array([[1, 2, 3], [2, 3, 4], [4, 5, 6]]), np.array([0, 1, 0]))
)
CLASSIFICATION = Lazy(lambda: models.ClassificationData(EXAMPLES.value, EXAMPLES.value))
OPTAX = Lazy(lambda: optax.sgd(0.1))
SCORE = Lazy(lambda: lambda rate: -abs(rate - 0.1))
CLASSIFIER = Lazy(
    lambda: models.train_classifier(
        TEXT_CONFIG.value, CLASSIFICATION.value, OPTAX.value, epochs=1, batch=3
    )
)
RECORDS = Lazy(lambda: heads.load_records(RECORD_FILE.value))


def _infeasible() -> at.Solution:
    keys = np.array([[[0.0, 1], [0, -1]], [[1, 0], [-1, 0]], [[1, 0], [-1, 0]]])
    tokens = at.Tokens(keys, np.array([[0.0, 1], [1, 0], [1, 0]]), [1, 1, -1])
    selection = at.optimal_tokens(tokens, at.LinearHead([1.0, 1.0]))
    return at.solve(at.MarginProblem.from_selection(tokens, selection))


INFEASIBLE = Lazy(_infeasible)


RUN_FILE = Lazy(lambda: _saved("run.nc", lambda path: ex.RUN.value.save(path)))
CLASSIFIER_FILE = Lazy(lambda: _saved("classifier.nc", lambda path: CLASSIFIER.value.save(path)))
DECODER_FILE = Lazy(lambda: _saved("decoder.nc", lambda path: ex.DECODER.value.save(path)))
TWO_STAGE_FILE = Lazy(lambda: _saved("stages.nc", lambda path: ex.TWO_STAGES.value.save(path)))
IN_CONTEXT_FILE = Lazy(lambda: _saved("context.nc", lambda path: ex.IN_CONTEXT.value.save(path)))
IN_CONTEXT_FOLDER = Lazy(
    lambda: _saved("contexts", lambda path: ex.IN_CONTEXT_RUNS.value.save(path))
)
BIAS_FILE = Lazy(lambda: _saved("bias.nc", lambda path: ex.BIAS.value.save(path)))
BASIN_MAP_FILE = Lazy(lambda: _saved("map.nc", lambda path: ex.BASIN_MAP.value.save(path)))
BASIN_SHARES_FILE = Lazy(lambda: _saved("shares.nc", lambda path: ex.BASIN_SHARES.value.save(path)))
CASE = Lazy(lambda: files.Case(ex.TOKENS_OF_ONE.value, ex.HEAD.value))
CORPUS_CASE = Lazy(lambda: corpora.CorpusCase(ex.CORPUS.value))
HEAD_CASE = Lazy(
    lambda: prompts.HeadCase(ex.PROMPT_HEAD.value, ex.GAUSSIAN.value, ex.GAUSSIAN.value)
)
REGRESSION_CASE = Lazy(lambda: prompts.RegressionCase(ex.TASK.value))
IN_CONTEXT_CASE = Lazy(
    lambda: prompts.InContextCase.of_task(ex.IN_CONTEXT_TASK.value, 8, 4, [2], sigmas=8)
)
TRANSFER_FILE = Lazy(lambda: _saved("risks.nc", lambda path: ex.TRANSFER.value.save(path)))
CLASSIFIER_CASE = Lazy(lambda: papers.ClassifierCase(LOADED_CLASSIFIERS.value.data))
CLAIM_NAME = Lazy(lambda: next(n for n, c in papers.all_claims().items() if c.takes is papers.Case))
CLAIM = Lazy(lambda: papers.get_claim(CLAIM_NAME.value))
CASES = Lazy(lambda: [CASE.value])
FIGURE_NAME = Lazy(lambda: next(iter(papers.all_figures())))
FIGURE = Lazy(lambda: papers.get_figure(FIGURE_NAME.value))
PAPER = Lazy(lambda: CLAIM.value.paper)
ASSUMPTION = Lazy(lambda: CLAIM.value.given[0])
CLAIMS = Lazy(lambda: papers.Claims(PAPER.value, papers.Case))
CONTRAST = Lazy(lambda: papers.Comparison("a", dict, dict, "b", dict, 0.0, "none"))
REQUEST = Lazy(lambda: papers.Request("quick", {}))
