"""Every figure at its quick size: all its files, and the conclusion it is drawn for."""

import string

import pytest

from attractor.papers import PAPERS, all_figures
from attractor.papers.drawing import draw, read_data
from attractor.papers.figure import SIZES
from attractor.results.provenance import read_provenance

FIGURES = all_figures("attractor")
LONG = (
    "transformers-as-svms/local-convergence",
    "transformers-as-svms/global-selection",
    "transformers-as-svms/convergence-types",
    "transformers-as-svms/several-tokens",
    "max-margin/vision-transformer",
    "transformers-as-svms/key-query-width",
    "mirror-descent/directional-divergence",
    "mirror-descent/joint-probabilities",
    "next-token/training",
    "large-prompt/official-runs",
    "large-prompt/flows",
    "large-prompt/trained-models",
    "mirror-descent/text-generalization",
    "mirror-descent/text-selection",
    "mirror-descent/attended-words",
    "mirror-descent/weight-sparsity",
    "mirror-descent/vision",
)
"""Figures that compile for long, and whose computations other tests look at more closely."""

TRAINING_LONG = (
    "transformers-as-svms/concave-head",
    "mirror-descent/divergence-table",
    "mirror-descent/entry-paths",
)
"""Figures that take longer without optimizations than it takes to compile them optimized."""


def check_conclusion(name, folder):
    figure = FIGURES[name]
    drawn = draw(figure, folder)
    wrong = [reading for reading in drawn.readings if not reading.agrees]
    assert drawn.readings and not wrong
    assert not _not_named_in_caption(figure, drawn.data)
    for kind in ("png", "svg", "nc"):
        assert read_provenance(drawn.files[kind]) == drawn.provenance
    stored = read_data(drawn.files["nc"])
    written = f"{figure.caption(stored)}\n\n{figure.bibtex}\n"
    assert drawn.files["txt"].read_text() == written


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in FIGURES if name not in LONG + TRAINING_LONG])
def test_quick_figure_shows_its_conclusion(name, tmp_path):
    check_conclusion(name, tmp_path)


@pytest.mark.parametrize(
    "name", [*TRAINING_LONG, *(pytest.param(name, marks=pytest.mark.slow) for name in LONG)]
)
def test_figure_that_trains_for_long_shows_its_conclusion(name, tmp_path, optimized):
    check_conclusion(name, tmp_path)


def _not_named_in_caption(figure, data):
    """Keys of numbers that stand for nothing in the caption, as published or not."""
    caption = figure.caption
    words = caption.template + (caption.artifact.caption if caption.artifact else "")
    fields = [field for _, field, _, _ in string.Formatter().parse(words) if field]
    return set(figure.readings(data).values) - {field.split("[")[0] for field in fields}


@pytest.mark.parametrize("name", FIGURES)
def test_says_what_it_is(name):
    figure = FIGURES[name]
    assert name.split("/")[0] in PAPERS
    assert tuple(figure.sizes) == SIZES
    assert figure.summary and len(figure.summary) < 110 and not figure.summary.endswith(".")
    for size in SIZES:
        assert figure.settings(size)["seeds"] >= 1
