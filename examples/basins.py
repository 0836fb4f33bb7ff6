"""For every start in the plane, the token that a prompt vector ends on. Writes basins.png."""

import matplotlib.pyplot as plt

import attractor as at
from attractor.maps.plots import basin_map_axes
from attractor.papers import Case

CASES = {
    "one sequence, scores (1, .9, 0)": (
        3.0,
        Case.from_scores([[[-0.1, 1], [1, 0], [0, 0]]], [[1, 0.9, 0]]),
    ),
    "two sequences, scores (1, 0) each": (
        8.0,
        Case.from_scores([[[1, 0], [0, 0]], [[-2, 3], [0, 0]]], [[1, 0], [1, 0]]),
    ),
}
optimizer = at.normalized_gradient_descent(0.1)
with at.plots.style():
    figure, panels = plt.subplots(1, 2, figsize=(6.75, 4.6), layout="compressed")
    for axes, (title, (extent, case)) in zip(panels, CASES.items(), strict=True):
        found = at.maps.basin_map(
            case.tokens,
            case.head,
            optimizer,
            parameterization="p",
            extent=extent,
            resolution=40,
            steps=1000,
        )
        basin_map_axes(axes, found.data)
        axes.set_title(title)
        axes.get_legend().set(loc="upper center", bbox_to_anchor=(0.5, -0.17))
    figure.savefig("basins.png", dpi=200)
