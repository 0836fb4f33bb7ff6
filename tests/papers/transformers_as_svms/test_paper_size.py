"""Experiments at the size of the paper."""

import pytest

from attractor.papers import get_figure
from attractor.papers.drawing import compute

NAMES = (
    "global-selection",
    "convergence-types",
    "key-query-width",
    "several-tokens",
    "concave-head",
    "sequences",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_conclusions_hold_at_the_size_of_the_paper(name):
    figure = get_figure(f"transformers-as-svms/{name}")
    data, _ = compute(figure, size="paper", as_published=bool(figure.artifact))
    wrong = [reading for reading in figure.readings(data) if not reading.agrees]
    assert not wrong
