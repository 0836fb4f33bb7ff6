"""A vision transformer: attention gets sparse while its weights grow; maps of the class token."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Int
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from attractor.analysis.sparsity import effective_support
from attractor.models import (
    ClassifierTrajectory,
    Examples,
    VisionTransformerConfig,
    head_matrices,
    train_classifier,
)
from attractor.models.datasets import Images
from attractor.papers.figure import Figures, Readings, Request, at_least, at_most
from attractor.papers.mirror_descent.classifiers.experiment import Schedule
from attractor.papers.mirror_descent.images import COLORED, ImageTask, image_task, images_of
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import PAGE
from attractor.plots.design.pairs import panel_letters
from attractor.plots.design.roles import ordered_line_styles
from attractor.results.paper import MAX_MARGIN

_SHADES = ScalarMappable(Normalize(0, 6.0), "viridis")
"""Colors of multiples of uniform attention."""
_MOST_PATCHES = 8
_SHOWN = 3
"""Images whose maps are drawn."""
_MEASURED = slice(250)
"""Images that attention is averaged over."""


def _compute(request: Request) -> xr.Dataset:
    settings = request.settings
    images = images_of(settings["images"], request.source)
    task = image_task(
        Schedule(settings["epochs"], None, 0),
        images,
        sizes=settings["split"] if images.splits is None else settings["given_split"],
        seed=request.seed,
        **settings["model"] | ({} if request.source is None else {"patch": _patch(images)}),
    )
    request.uses("data", **task.arrays)
    # A run of fewer epochs is the beginning of a longer one, so that doubling costs twice one run.
    epochs = [0, *(2**k for k in range(int(np.log2(settings["epochs"])) + 1))]
    total = sum(max(epoch, 1) for epoch in epochs) * request.seeds
    steps = -(-len(task.data.train) // task.schedule.batch)
    with request.bar("vision transformer", total * steps) as advance:
        runs = [_trained(request, task, epoch, advance) for epoch in epochs]
    test = task.data.test
    assert test is not None  # sizes ask for one
    shown = _one_of_each_class(test)
    found = xr.concat([_measured(task, run, test, shown) for run in runs], "epoch")
    name = settings["images"] if request.source is None else request.source.name
    classes = np.array(images.classes)
    return found.assign_coords(
        epoch=epochs, true_class=("image", classes[test.labels[shown]])
    ).assign_attrs(images=name, classes=len(classes), learning_rate=settings["learning_rate"])


def _patch(images: Images) -> int:
    """The side of patches that cut images of the user into 8 x 8 or fewer; more take hours."""
    rows, columns, channels = images.pixels.shape[1:]
    if channels > 1:
        rows = columns = COLORED  # as images in color are resized
    common = math.gcd(rows, columns)
    least = -(-max(rows, columns) // _MOST_PATCHES)
    return next((side for side in range(least, common) if common % side == 0), common)


def _trained(request: Request, task: ImageTask, epochs: int, advance: Any) -> ClassifierTrajectory:
    """The run of so many epochs; with none, one of steps that rounding leaves nothing of."""
    rate = request.settings["learning_rate"] if epochs else 1e-30
    return train_classifier(
        task.config,
        task.data,
        optax.adam,
        learning_rate=rate,
        epochs=max(epochs, 1),
        batch=task.schedule.batch,
        seeds=request.seeds,
        seed=request.seed,
        augment=task.augment,
        prepare=task.prepare,
        checkpoint=request.checkpoint(f"epoch-{epochs}"),
        progress=advance,
    )


def _one_of_each_class(test: Examples) -> Int[np.ndarray, "image"]:
    """The first test image of each of a few classes."""
    _, first = np.unique(test.labels, return_index=True)
    return np.sort(first)[:_SHOWN]


@eqx.filter_jit
def _attention(model: Any, images: Array) -> Float[Array, "image block head query token"]:
    """Attention weights of a model, by one program: its operations one by one compile longer."""
    return model(images, return_attention=True)[1]


def _measured(
    task: ImageTask, run: ClassifierTrajectory, test: Examples, shown: Int[np.ndarray, "image"]
) -> xr.Dataset:
    """What attention does in the models of all seeds, and the maps of the first one."""
    config = task.config
    assert isinstance(config, VisionTransformerConfig)
    prepare = jnp.asarray if task.prepare is None else task.prepare
    some, pictures = (prepare(jnp.asarray(test.inputs[rows])) for rows in (_MEASURED, shown))
    support, norm = [], []
    models: list[Any] = [run.model(seed, "last") for seed in run.data["seed"].values.tolist()]
    for model in models:
        attention = _attention(model, some)
        share = effective_support(np.asarray(attention)) / attention.shape[-1]
        support.append(share.mean((0, 2, 3)))
        norm.append(np.linalg.norm(head_matrices(model)["W"], axis=(-1, -2)).mean(-1))
    maps = np.asarray(_attention(models[0], pictures))[:, -1, :, 0, 1:].mean(1)
    rows, columns = (side // config.patch for side in config.image)
    pixels = np.asarray(pictures, dtype=np.float64)
    lowest, highest = (edge(pixels, axis=(1, 2, 3), keepdims=True) for edge in (np.min, np.max))
    accuracy = run.data["last_test_accuracy"].values
    return xr.Dataset(
        {
            "effective_support": (("seed", "block"), np.stack(support)),
            "norm": (("seed", "block"), np.stack(norm)),
            "test_accuracy": (("seed",), accuracy),
            "class_map": (("image", "row", "column"), maps.reshape(-1, rows, columns)),
        },
        {"seed": run.data["seed"].values, "block": np.arange(1, config.blocks + 1)},
    ).assign(
        pixels=(("image", "y", "x", "channel"), (pixels - lowest) / (highest - lowest + 1e-12))
    )


def _readings(data: xr.Dataset) -> Readings:
    from scipy.stats import spearmanr  # a second to load

    support, norm = (data[name].mean(["seed", "block"]) for name in ("effective_support", "norm"))
    related: Any = spearmanr(support, norm)
    return Readings(
        at_most("effective support at the end, over that at the start",
                support[-1] / support[0], 0.9),
        at_least("norm of attention weights at the end, over that at the start",
                 norm[-1] / norm[0], 1.1),
        at_most("rank correlation of support and norm along training",
                related.statistic, -0.8),
        at_least("test accuracy at the end, over that of chance",
                 data["test_accuracy"].mean("seed")[-1] * data.attrs["classes"], 2.0),
        percent_start=100 * float(support[0]),
        percent_end=100 * float(support[-1]),
        growth=float(norm[-1] / norm[0]),
        accuracy=float(data["test_accuracy"].mean("seed")[-1]),
    )  # fmt: skip


def _draw(data: xr.Dataset) -> Figure:
    figure = Figure(figsize=(PAGE, 5.4))
    parts: Any = figure.subfigures(2, 1, height_ratios=(1, 1.45))
    upper, lower = parts
    support, norm, both = upper.subplots(1, 3)
    blocks = data["block"].values.tolist()
    place = np.maximum(data["epoch"].values, 0.5)
    for block, style in zip(blocks, ordered_line_styles(len(blocks)), strict=True):
        one = data.sel(block=block)
        for axes, name in ((support, "effective_support"), (norm, "norm")):
            every = one[name]
            axes.plot(place, every.mean("seed"), color=style["color"], label=f"block {block}")
            low, high = every.min("seed"), every.max("seed")
            axes.fill_between(place, low, high, color=style["color"], alpha=0.15, linewidth=0)
        both.plot(
            one["norm"].mean("seed"), one["effective_support"].mean("seed"), marker="o",
            markersize=3, color=style["color"], label=f"block {block}",
        )  # fmt: skip
    for axes in (support, norm):
        axes.set(xscale="log", xlabel="epoch")
        ticks = [0.5, *(tick for tick in (1, 10, 100, 1000) if tick <= place[-1])]
        axes.set_xticks(ticks, ["0", *(f"{tick:g}" for tick in ticks[1:])])
    support.set(ylabel="effective support / T", ylim=(0, 1.02))
    norm.set(ylabel=r"$\|W_K^\top W_Q\|_F / \sqrt{d_h}$")
    norm.set_ylim(bottom=0)
    both.set(xlabel="norm of attention weights", ylabel="effective support / T", ylim=(0, 1.02))
    both.set_xlim(left=0)
    support.legend(loc="lower left")
    panel_letters((support, norm, both))
    _draw_maps(lower, data)
    return figure


def _draw_maps(figure: Any, data: xr.Dataset) -> None:
    """A row an image: the image, and its map at a few epochs."""
    every = data["epoch"].values
    chosen = np.unique(np.round(np.linspace(0, len(every) - 1, 5)).astype(int))
    cells = figure.subplots(data.sizes["image"], 1 + len(chosen), squeeze=False)
    for row, (axes, image) in enumerate(zip(cells, data["image"].values, strict=True)):
        picture = data["pixels"].isel(epoch=0).sel(image=image).values
        gray = picture.shape[-1] == 1
        axes[0].imshow(picture[..., 0] if gray else picture, cmap="gray" if gray else None)
        axes[0].set_ylabel(str(data["true_class"].sel(image=image).item()))
        maps = data["class_map"].sel(image=image).values[chosen]
        for cell, values, epoch in zip(axes[1:], maps, every[chosen], strict=True):
            cell.imshow(values * values.size, norm=_SHADES.norm, cmap=_SHADES.cmap)
            if row == 0:
                cell.set_title(f"epoch {epoch}")
        for cell in axes:
            cell.set(xticks=[], yticks=[])
            cell.grid(visible=False)
    cells[0, 0].set_title("image")
    bar = figure.colorbar(_SHADES, ax=cells, shrink=0.85, pad=0.01, extend="max")
    bar.set_label("attention of [CLS], times patches")


_DIGITS = {"train": 900, "validation": 300, "test": 500}
_MNIST = {"images": "MNIST", "split": {"train": 4000, "validation": 500, "test": 500}}

VISION_TRANSFORMER = Figures(MAX_MARGIN).figure(
    "vision-transformer",
    "a vision transformer: attention gets sparse as its weights grow; maps of the class token",
    statement="experiment: vision transformer",
    published="CIFAR-10: effective support of attention maps, norm of attention weights, and "
    "attention of [CLS] over an image at several epochs",
    sizes={
        "quick": {
            "images": "digits",
            "split": _DIGITS,
            "given_split": _DIGITS,
            "seeds": 2,
            "epochs": 32,
            "learning_rate": 3e-3,
            "model": {"patch": 2, "width": 32, "blocks": 2, "heads": 4, "hidden": 64},
        },
        "small": {
            **_MNIST,
            "given_split": {"train": 4000, "validation": 1000, "test": 4000},
            "seeds": 3,
            "epochs": 64,
            "learning_rate": 1e-3,
            "model": {"patch": 4, "width": 64, "blocks": 4, "heads": 4, "hidden": 128},
        },
        "paper": {
            **_MNIST,
            "given_split": {"train": None, "validation": 5000, "test": None},
            "seeds": 3,
            "epochs": 256,
            "learning_rate": 3e-4,
            "model": {"patch": 4, "width": 192, "blocks": 6, "heads": 6, "hidden": 384},
        },
    },
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Vision transformers trained on {attrs[images]} by Adam with steps of "
        "{attrs[learning_rate]:g}, which read {accuracy:.0%} of test images rightly. (a) Effective "
        "support of attention, (||s||_1 / ||s||_2)^2 over the number of tokens, mean over heads, "
        "queries and test images: from {percent_start:.0f} to {percent_end:.0f} % of the tokens; "
        "(b) norm of the attention weights, mean over heads, {growth:.3g} times as large at the "
        "end; (c) one against the other. Lines: means over {sizes[seed]} seeds, bands from the "
        "lowest to the highest. Below: attention of the class token in the last block, mean over "
        "heads, as a multiple of uniform attention, of the first seed."
    ),
    takes="the binary version of CIFAR-10, or a folder in the format of MNIST",
)
