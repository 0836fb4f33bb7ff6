"""The words that text classifiers attend to, over fixed sentences, as a table."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextPath

from attractor.papers.figure import Figures, Readings, Request, at_least
from attractor.papers.mirror_descent.classifiers.contest import interval, learned_seeds
from attractor.papers.mirror_descent.classifiers.experiment import experiment
from attractor.papers.mirror_descent.classifiers.styles import in_words
from attractor.papers.mirror_descent.texts import SIZES, TAKES, task_of
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, PAGE
from attractor.results.paper import MIRROR_DESCENT

_EXPONENTS = ["p = 1.1", "p = 2", "p = 3"]
_TEXTS = {
    "planted words": "made-up reviews, where they stand for words of a class and for noise",
    "film reviews": "film reviews",
}
_SIZE, _PAD, _GAP, _MARGIN = 6.5, 1.3, 1.0, 4.0
"""Size of the type, and what is left free in a word's ground, between them and at the left, in
points."""
_TOP, _LINE, _BOTTOM = 0.25, 0.2, 0.42
"""Heights of the title, of a line and of the scale, in inches."""
_DARKEST = 0.6
"""The attention from which on a word is as dark as can be."""
_SHADES = ScalarMappable(Normalize(0, _DARKEST), "Blues")


def _compute(request: Request) -> xr.Dataset:
    task = task_of(request)
    assert task.sentences is not None
    found = experiment(request, task, request.settings["optimizers"], kind="text")
    kept = found[["word_attention", "first_attention", "test_accuracy", "status"]]
    return (
        kept.sel(optimizer=_EXPONENTS)
        .assign(
            text=(("sentence", "word"), task.sentences.words),
            sign=(("sentence", "word"), task.sentences.signs),
            share_by_chance=("sentence", task.sentences.by_chance),
        )
        .assign_attrs(texts=_TEXTS[request.settings["texts"]])
    )


def _learned(data: xr.Dataset) -> xr.DataArray:
    """Which models know more than chance; others attend to words for no reason."""
    by_optimizer = [learned_seeds(data, [name]) for name in data["optimizer"].values]
    return xr.DataArray(
        by_optimizer, {name: data[name] for name in ("optimizer", "seed")}, ["optimizer", "seed"]
    )


def _share(data: xr.Dataset) -> xr.DataArray:
    """The share of attention on telling words: mean over sentences that have some, by model."""
    telling = data["sign"] != 0
    share = data["word_attention"].where(telling).sum("word").where(telling.any("word"))
    return share.mean("sentence").where(_learned(data)).transpose("optimizer", "seed")


def _first_at_telling(data: xr.Dataset) -> xr.DataArray:
    """Of the sentences with telling words, those whose most attended word is one, by model."""
    telling = data["sign"] != 0
    some = telling.any("word")
    attention = data["word_attention"].isel(sentence=some.values)
    most = attention.fillna(-1).argmax("word")
    there = telling.isel(sentence=some.values).isel(word=most)
    return there.sum("sentence").where(_learned(data)).transpose("optimizer", "seed")


def _readings(data: xr.Dataset) -> Readings:
    share, telling = _share(data), (data["sign"] != 0).any("word")
    chance = float(data["share_by_chance"].where(telling).mean())
    first, second = (share.sel(optimizer=name) for name in _EXPONENTS[:2])
    mean, half = interval((first - second).to_numpy())
    low, high = mean - half, mean + half
    return Readings(
        *(
            at_least(f"share of attention of {name} on telling words over that by chance",
                     share.sel(optimizer=name).mean() / chance, 1.0)
            for name in _EXPONENTS[:2]
        ),
        at_least("share of p = 1.1 on telling words less that of p = 2, mean over seeds", mean, 0),
        chance=chance,
        share=in_words(share),
        tops=in_words(_first_at_telling(data), ".1f"),
        telling=int(telling.sum()),
        difference=mean,
        low=low,
        high=high,
        settled="leaves out" if low > 0 or high < 0 else "does not leave out",
        stuck=int((~_learned(data)).sum()),
        models=_learned(data).size,
    )  # fmt: skip


def _draw(data: xr.Dataset) -> Figure:
    lines = data.sizes["sentence"]
    height = _TOP + lines * _LINE + _BOTTOM
    figure = Figure(figsize=(PAGE, height))
    figure.set_layout_engine("none")
    mean = data["word_attention"].where(_learned(data)).mean("seed")
    for place, name in enumerate(_EXPONENTS):
        # Places in inches, so that words lie where their width says.
        left, width = place * PAGE / len(_EXPONENTS), PAGE / len(_EXPONENTS)
        axes = figure.add_axes(
            (left / PAGE, _BOTTOM / height, width / PAGE, lines * _LINE / height)
        )
        axes.set(xlim=(0, 72 * width), ylim=(lines, 0))
        axes.axis("off")
        axes.set_title(f"${name}$", x=_MARGIN / (72 * width))
        for line in range(lines):
            words = [word for word in data["text"].values[line].tolist() if word]
            telling = data["sign"].values[line] != 0
            _sentence(axes, line, words, telling, mean.sel(optimizer=name).values[line])
    scale = figure.add_axes((0.4, 0.52 * _BOTTOM / height, 0.2, 0.08 / height))
    figure.colorbar(_SHADES, cax=scale, orientation="horizontal", ticks=[0, 0.2, 0.4, 0.6])
    scale.set_title("attention", fontsize=_SIZE, pad=2)
    return figure


def _sentence(
    axes: Axes,
    line: int,
    words: list[str],
    telling: Bool[np.ndarray, "word"],
    attention: Float[np.ndarray, "word"],
) -> None:
    """The words of a sentence, on a ground as dark as the attention that each gets."""
    most = int(np.argmax(np.nan_to_num(attention[: len(words)])))
    left = _MARGIN
    for place, word in enumerate(words):
        font = FontProperties(size=_SIZE, weight="bold" if telling[place] else "normal")
        width = TextPath((0, 0), word, prop=font).get_extents().width + 2 * _PAD
        dark = np.nan_to_num(attention[place])
        axes.add_patch(Rectangle((left, line + 0.1), width, 0.7, color=_SHADES.to_rgba(dark)))
        axes.text(left + width / 2, line + 0.47, word, font=font, ha="center", va="center",
                  color="white" if dark > 0.7 * _DARKEST else COLORS["black"])  # fmt: skip
        if place == most:
            axes.plot([left, left + width], [line + 0.87] * 2, color=COLORS["orange"],
                      linewidth=1.2, solid_capstyle="butt")  # fmt: skip
        left += width + _GAP


ATTENDED_WORDS = Figures(MIRROR_DESCENT).figure(
    "attended-words",
    "the words of fixed sentences that text classifiers attend to, for three exponents",
    statement="experiment: sentiment of film reviews, table of attended words",
    published=(
        "forty sentences of one pivotal word, attention of one model each of p = 1.1 and p = 2 as "
        "shading, and which of both attends to that word more"
    ),
    sizes=SIZES,
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Attention of the position that the class is read from on the words of eight sentences of "
        "our own, by classifiers of {attrs[texts]}; in the last block, mean over heads and over "
        "those of {sizes[seed]} models that have learned ({stuck} of {models} have not): the "
        "darker the more; bold words tell the class, and the word attended to most is underlined. "
        "What a sentence lacks to one lies on the marks that begin and end a text. Share of "
        "attention on the bold words, mean over the {telling} sentences with some: {share}; by "
        "chance {chance:.3f}. That of p = 1.1 less that of p = 2 is {difference:.3f} ({low:.3f} to "
        "{high:.3f}), which {settled} zero. Sentences whose most attended word is a bold one: "
        "{tops}."
    ),
    takes=TAKES,
)
