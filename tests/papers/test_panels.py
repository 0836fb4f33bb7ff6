"""What figures draw in which panel, from made-up data."""

import numpy as np
import pytest
import xarray as xr

from attractor.papers import get_figure


def labels_of(axes):
    return [line.get_label() for line in axes.get_lines()] + [
        artist.get_label() for artist in (*axes.collections, *axes.patches)
    ]


def test_the_relaxed_direction_is_drawn_where_a_label_has_slack():
    kinds = ["every label at the margin", "one label beyond it"]
    path = (("labels", "kernel", "step", "coordinate"), np.ones((2, 1, 5, 2)).cumsum(2))
    ray = (("labels", "coordinate"), np.ones((2, 2)))
    keys = (("labels", "sequence", "token", "coordinate"), np.ones((2, 3, 2, 2)).cumsum(2))
    names = ("head_solution", "prompt_solution", "relaxed_solution")
    data = xr.Dataset(
        {"prompt": path, "head": path, "keys": keys, **dict.fromkeys(names, ray)},
        {"labels": kinds, "kernel": ["exact"], "step": np.arange(5)},
    )
    tight, slack = get_figure("max-margin/joint-training").draw(data).axes
    assert "relaxed max-margin direction" in labels_of(slack)
    assert "relaxed max-margin direction" not in labels_of(tight)
    assert "max-margin direction" in labels_of(tight)


@pytest.mark.parametrize("as_published", [False, True])
def test_the_published_head_is_drawn_and_named_beside_the_probability(as_published):
    figure = get_figure("mirror-descent/joint-probabilities")
    kernels = ["exact", "as published"][: 1 + as_published]
    along = ("p", "kernel", "record")
    rising = np.broadcast_to(np.linspace(0.3, 1, 120), (3, len(kernels), 120))
    names = [f"{name}_probability" for name in ("softmax", "logistic", "published_logistic")]
    steps = {"step": (along, np.broadcast_to(np.arange(120), rising.shape))}
    data = xr.Dataset(
        {name: (along, rising) for name in names} | steps,
        {"p": [1.75, 2.0, 3.0], "kernel": kernels},
    )
    attention, prediction = figure.draw(data).axes
    assert len(attention.get_lines()) == 3
    assert labels_of(prediction).count("as published") == as_published
    named = [text.get_text() for text in prediction.get_legend().get_texts()]
    assert ("as published" in named) == as_published and "$p = 2$" in named


@pytest.mark.parametrize("as_published", [False, True])
def test_published_runs_are_read_beside_the_exact_ones(as_published):
    protocols = ["exact", "as published", "exact with eps"][: 1 + 2 * as_published]
    exponents, size = [1.75, 2.0, 3.0], np.array([1e-6, 3e-3, 2e-3])[: len(protocols)]
    apart = 1 + 9.0 * (1 - np.eye(3))  # each run ends nearest to its own solution
    values = size[:, None, None, None, None] * apart[:, :, None, None] * np.ones((5, 1))
    data = xr.Dataset(
        {"divergence": (("protocol", "p", "solution", "instance", "record"), values)},
        {"protocol": protocols, "p": exponents, "solution": exponents},
    )
    readings = get_figure("mirror-descent/directional-divergence").readings(data)
    over = [reading.value for reading in readings if "over the exact one" in reading.text]
    assert over == pytest.approx([3000.0] * 2 * as_published)
    assert ("0.003, 0.002 and 1e-06" in readings.values["stopped"]) == as_published
