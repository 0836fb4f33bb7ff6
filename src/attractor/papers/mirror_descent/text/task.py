"""Texts with a class, and words that tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int

from attractor.models import ClassificationData, Examples, TextTransformer, TextTransformerConfig
from attractor.models.datasets import PlantedPart, planted_reviews
from attractor.papers.mirror_descent.classifiers.task import ClassifierTask, Schedule
from attractor.papers.mirror_descent.classifiers.weights import measure_weights
from attractor.papers.mirror_descent.text.sentences import FixedSentences, planted_sentences

_TOGETHER = 100
_BINS = 12


@dataclass(frozen=True, eq=False, kw_only=True)
class TextTask(ClassifierTask):
    """A text task.

    Attributes:
        telling: Where words that tell the class stand in the texts to test with.
        sentences: Fixed sentences to look at word by word; None for none.
    """

    telling: Bool[np.ndarray, "n token"]
    sentences: FixedSentences | None = None

    @property
    def arrays(self) -> dict[str, Any]:
        """Everything that results depend on, by name."""
        fixed = {} if self.sentences is None else {"sentences": self.sentences.ids}
        return super().arrays | {"telling": self.telling} | fixed

    @property
    def frequencies(self) -> Float[np.ndarray, "vocabulary"]:
        """Number of occurrences of each token in the texts trained on."""
        train = self.data.train
        real = train.inputs if train.mask is None else train.inputs[train.mask]
        vocabulary = int(max(real.max() + 1, getattr(self.config, "vocabulary", 0)))
        return np.bincount(real.ravel(), minlength=vocabulary).astype(np.float64)

    def measure(self, model: TextTransformer) -> xr.Dataset:
        """Attention of the read-out on texts to test with, and sparsity of the weights."""
        test = self.data.test
        assert test is not None
        mask = np.ones(test.inputs.shape, bool) if test.mask is None else test.mask
        looked = attended_words(model, test.inputs, mask, self.telling, self.frequencies)
        attention = {
            "attention": ("block", looked.attention),
            "attention_by_frequency": ("block", looked.by_frequency),
            "attention_by_chance": looked.chance,
            "rescaled_attention": looked.rescaled,
        }
        return measure_weights(model).assign(attention | self._of_sentences(model))

    def _of_sentences(self, model: TextTransformer) -> dict[str, Any]:
        """Attention of the last block on each word of the fixed sentences, and where it begins."""
        if self.sentences is None:
            return {}
        last = _first_rows(model, self.sentences.ids, self.sentences.mask)[:, -1]
        return {
            "word_attention": (("sentence", "word"), self.sentences.by_word(last)),
            "first_attention": ("sentence", last[:, 0]),
        }


def planted_task(schedule: Schedule, *, seed: int = 0, **model: Any) -> TextTask:
    """Made-up reviews with planted words, for a small model.

    Args:
        schedule: Length of training.
        seed: Of the reviews.
        model: What the config of the model has otherwise than the published sizes, but for the
            vocabulary and the length.
    """
    reviews = planted_reviews(seed=seed)
    data = ClassificationData(
        *(_examples(part) for part in (reviews.train, reviews.validation, reviews.test)),
        settings=reviews.settings,
    )
    config = TextTransformerConfig(
        vocabulary=reviews.settings["vocabulary"], length=reviews.settings["length"], **model
    )
    return TextTask(
        data,
        config,
        schedule,
        telling=reviews.test.planted,
        sentences=planted_sentences(reviews),
    )


def _examples(part: PlantedPart) -> Examples:
    return Examples(part.ids, part.labels, part.mask)


class AttendedWords(NamedTuple):
    """Shares of attention, means over sentences that have a telling word.

    Attributes:
        attention: On the telling words of a sentence together, mean over heads, by block.
        chance: What uniform attention would give them.
        by_frequency: What they would get if each had as many times the share of uniform attention
            as other tokens of like frequency in the texts trained on have in the mean, by block.
        rescaled: The published reading: attention of the last block, mean over heads, rescaled to
            0 at the least and 1 at the most attended token of the sentence, at telling words.
        sentences: How many sentences.
    """

    attention: Float[np.ndarray, "block"]
    chance: float
    by_frequency: Float[np.ndarray, "block"]
    rescaled: float
    sentences: int


def attended_words(
    model: TextTransformer,
    ids: Int[np.ndarray, "n token"],
    mask: Bool[np.ndarray, "n token"],
    telling: Bool[np.ndarray, "n token"],
    frequencies: Float[np.ndarray, "vocabulary"],
) -> AttendedWords:
    """Measures the attention of the first position, which the class is read from.

    Args:
        model: The model; nothing is dropped.
        ids: Numbers of tokens.
        mask: Where they are real tokens.
        telling: Where telling words stand.
        frequencies: How often each token occurs in the texts trained on.
    """
    some = (telling & mask).any(1)
    ids, mask, telling = ids[some], mask[some], (telling & mask)[some]
    if not len(ids):
        nothing = np.full(model.config.blocks, np.nan)
        return AttendedWords(nothing, np.nan, nothing, np.nan, 0)
    rows = _first_rows(model, ids, mask)  # sentence, block, token
    return AttendedWords(
        attention=(rows * telling[:, None]).sum(-1).mean(0),
        chance=float((telling.sum(1) / mask.sum(1)).mean()),
        by_frequency=_by_frequency(rows, mask, telling, frequencies[ids]),
        rescaled=_rescaled(rows[:, -1], mask, telling),
        sentences=len(ids),
    )


def _first_rows(
    model: TextTransformer, ids: Int[np.ndarray, "n token"], mask: Bool[np.ndarray, "n token"]
) -> Float[np.ndarray, "n block token"]:
    """The attention of the first position, mean over heads."""
    extra = -len(ids) % _TOGETHER  # all batches of one size, so that one program does
    batches = [
        jnp.concatenate([part, part[:1].repeat(extra, 0)]).reshape(-1, _TOGETHER, part.shape[1])
        for part in (ids, mask)
    ]
    found = [np.asarray(_first_row(model, *batch)) for batch in zip(*batches, strict=True)]
    return np.concatenate(found).astype(np.float64)[: len(ids)]


@eqx.filter_jit
def _first_row(model: TextTransformer, ids: Array, mask: Array) -> Float[Array, "n block token"]:
    _, attention = model(ids, mask, return_attention=True)
    return attention[..., 0, :].mean(-2)


def _by_frequency(
    rows: Float[np.ndarray, "n block token"],
    mask: Bool[np.ndarray, "n token"],
    telling: Bool[np.ndarray, "n token"],
    frequency: Float[np.ndarray, "n token"],
) -> Float[np.ndarray, "block"]:
    """Attention that telling words would get as other tokens of like frequency do."""
    others = mask & ~telling
    others[:, 0] = False  # the token every text begins with
    if not others.any():
        return np.full(rows.shape[1], np.nan)
    level = np.log1p(frequency)
    edges = np.unique(np.quantile(level[others], np.linspace(0, 1, _BINS + 1)[1:-1]))
    place = np.digitize(level, edges)
    counts = np.bincount(place[others], minlength=len(edges) + 1)
    known = np.flatnonzero(counts)
    share = 1 / mask.sum(1, keepdims=True)  # of a token in a text, were attention uniform
    found = []
    for block in range(rows.shape[1]):
        relative = (rows[:, block] / share)[others]
        sums = np.bincount(place[others], relative, minlength=len(edges) + 1)
        mean = np.interp(np.arange(len(counts)), known, sums[known] / counts[known])
        found.append((mean[place] * share * telling).sum(1).mean())
    return np.array(found)


def _rescaled(
    rows: Float[np.ndarray, "n token"],
    mask: Bool[np.ndarray, "n token"],
    telling: Bool[np.ndarray, "n token"],
) -> float:
    least = np.where(mask, rows, np.inf).min(1, keepdims=True)
    most = np.where(mask, rows, -np.inf).max(1, keepdims=True)
    span = np.where(most > least, most - least, 1)  # nothing stands out where all are alike
    return float(((rows - least) / span)[telling].mean())
