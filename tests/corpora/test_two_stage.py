import mpmath
import numpy as np
import pytest
from runs import two_stages

from attractor import VocabularyHead, gradient_descent, train
from attractor.corpora import Corpus, collocation, partial_orders
from attractor.corpora.generators import order_first_corpus
from attractor.corpora.samples import attention_tokens, distinct_samples
from attractor.corpora.two_stages.two_stage import train_two_stages
from attractor.corpora.two_stages.two_stage_measures import (
    attention_solutions,
    direction_distance,
    measure_two_stages,
)
from attractor.support.errors import InvalidInputError


@pytest.fixture(scope="module")
def trained(worked_example):
    return train_two_stages(worked_example, record=[0, 1, 2, 300, 900])


@pytest.mark.long
def test_worked_example_goes_where_the_paper_says(trained):
    measured = measure_two_stages(trained)
    last = measured.isel(instance=0, step=-1)
    gap = trained.feed_forward.W()[0, 0]
    assert gap[1, 0] - gap[2, 0] == pytest.approx(900 * 0.1 / np.sqrt(3), rel=1e-12)
    assert float(last["correlation"]) == pytest.approx(0.9995, abs=5e-5)
    assert float(last["norm"]) == pytest.approx(22.48, abs=5e-3)


def predicted(trained, context):
    """Logits of the next token, and attention to each token of a context, of unit embeddings."""
    weights = np.exp(trained.attention.W()[0, 0][context, context[-1]])
    weights /= weights.sum()
    return weights @ trained.feed_forward.W()[0, 0].T[context], weights


@pytest.mark.parametrize(
    ("sentence", "label", "attended"), [("SP", "V", "S"), ("OSP", "P", "O"), ("VP", "O", "V")]
)
def test_worked_example_predicts_unseen_sentences(
    trained, worked_example, sentence, label, attended
):
    names = worked_example.vocabulary
    context = np.array([[names.index(word) for word in sentence]])
    logits, weights = predicted(trained, context[0])
    assert names[int(logits.argmax())] == label
    share = weights[sentence.index(attended)]
    assert share == pytest.approx(0.9995, abs=2e-4)


def test_worked_example_ties_two_non_comparable_tokens(trained, worked_example):
    names = worked_example.vocabulary
    context = np.array([[names.index(word) for word in "SVP"]])
    logits, weights = predicted(trained, context[0])
    assert logits[names.index("V")] == pytest.approx(logits[names.index("O")], abs=1e-12)
    assert weights[:2] == pytest.approx([0.4999, 0.4999], abs=2e-4)


def test_first_stage_is_exact_from_zero(trained):
    measured = measure_two_stages(trained)
    later = measured.isel(instance=0, feed_forward_step=slice(1, None))
    steps = later["feed_forward_step"].values
    assert (later["feed_forward_distance"] < 1e-24).all()
    assert np.allclose(later["feed_forward_norm"], steps * 0.1, rtol=1e-12)
    gap = steps * 0.1 / np.sqrt(3)
    assert np.allclose(later["feed_forward_loss"], np.log1p(3 * np.exp(-gap)), rtol=1e-12, atol=0)


def test_losses_are_those_of_training_and_of_fifty_digits(trained):
    measured = measure_two_stages(trained).isel(instance=0)
    assert np.allclose(measured["loss"], trained.attention.data["loss"][0, 0], rtol=1e-9)
    step = measured.sel(step=2)
    W, W_ov = trained.attention.W(2)[0, 0], trained.feed_forward.W()[0, 0]
    samples, follows = trained.samples[0], trained.collocations[0].inverse
    with mpmath.workdps(50):
        loss, floor = mpmath.mpf(0), mpmath.mpf(0)
        for context, label in zip(samples.contexts, samples.labels, strict=True):
            words = context[context >= 0]
            weights = [mpmath.e ** mpmath.mpf(W[word, words[-1]]) for word in words]
            logits = [
                sum(w * mpmath.mpf(W_ov[v, x]) for w, x in zip(weights, words, strict=True))
                / sum(weights)
                for v in range(4)
            ]
            ideal = [mpmath.mpf(W_ov[v, follows[label]]) for v in range(4)]
            for values, name in ((logits, "loss"), (ideal, "floor")):
                total = sum(mpmath.e**value for value in values)
                if name == "loss":
                    loss += (mpmath.log(total) - values[label]) / 9
                else:
                    floor += (mpmath.log(total) - values[label]) / 9
        assert float(step["loss"]) == pytest.approx(float(loss), rel=1e-10)
        excess = float(mpmath.log(loss - floor))
    assert float(step["log_excess_loss"]) == pytest.approx(excess, rel=1e-10)


@pytest.mark.long
def test_several_corpora_train_as_each_alone():
    both = two_stages()
    corpora = both.corpora
    alone = train_two_stages(corpora[1], steps=(20, 20))
    assert np.allclose(both.attention.W()[1], alone.attention.W()[0], rtol=1e-12, atol=1e-14)
    repeat = train_two_stages(corpora, steps=(20, 20), initial_scales=(0.1, [0.0, 0.2]), seed=5)
    again = train_two_stages(corpora, steps=(20, 20), initial_scales=(0.1, [0.0, 0.2]), seed=5)
    assert np.array_equal(repeat.attention.W(), again.attention.W())
    assert not repeat.attention.W(0)[0].any() and repeat.attention.W(0)[1].any()


@pytest.mark.long
def test_frequencies_count_as_repeated_sentences_would():
    contexts, labels = [["a"], ["b"], ["c"], ["a", "c"], ["b", "c"]], list("bcabc")
    weighted = Corpus.from_samples(contexts, labels, counts=[1, 1, 1, 1, 3])
    repeated = Corpus.from_samples([*contexts, *[["b", "c"]] * 2], [*labels, "c", "c"])
    found = [
        train_two_stages(c, steps=(50, 50), optimizers=(gradient_descent(1.0),) * 2).attention.W()
        for c in (weighted, repeated)
    ]
    assert np.allclose(*found, rtol=1e-13)
    whole = attention_tokens(distinct_samples(weighted), np.eye(3))
    assert whole.weights.mean() == pytest.approx(1)
    plain = train(
        type(whole)(
            np.repeat(whole.keys, [1, 1, 1, 1, 3], 0),
            np.repeat(whole.queries, [1, 1, 1, 1, 3], 0),
            np.repeat(whole.labels, [1, 1, 1, 1, 3], 0),
            np.repeat(whole.mask, [1, 1, 1, 1, 3], 0),
        ),
        VocabularyHead(np.eye(3)),
        gradient_descent(1.0),
        steps=30,
        initial=np.zeros((3, 3)),
        loss="cross_entropy",
    )
    same = train(
        whole, VocabularyHead(np.eye(3)), gradient_descent(1.0), steps=30,
        initial=np.zeros((3, 3)), loss="cross_entropy",
    )  # fmt: skip
    assert np.allclose(same.W(), plain.W(), rtol=1e-13)
    assert np.allclose(same.data["loss"], plain.data["loss"], rtol=1e-13)


def test_direction_distance_is_accurate_where_cosines_are_not():
    W = np.eye(3)
    tilted = W + 1e-12 * np.diag([1.0, -1.0, 0.0])
    assert direction_distance(tilted, W) == pytest.approx(1e-24 / 3, rel=1e-3)
    assert np.isnan(direction_distance(np.zeros((3, 3)), W))


@pytest.mark.long
def test_incomplete_collocations_train_alone_only():
    corpus = Corpus.from_sentences([list("ab"), list("bac"), list("ab")])
    run = train_two_stages(corpus, steps=(5, 5))
    assert run.feed_forward.contexts.embeddings.shape[-2] == 2
    with pytest.raises(InvalidInputError, match="one at a time"):
        train_two_stages([corpus, corpus], steps=(5, 5))


def test_bad_input_is_named(worked_example):
    with pytest.raises(InvalidInputError, match="corpora"):
        train_two_stages([])
    with pytest.raises(InvalidInputError, match="one size"):
        train_two_stages([worked_example, order_first_corpus(6).corpus])
    with pytest.raises(InvalidInputError, match="initial_scales"):
        train_two_stages(worked_example, initial_scales=(-1.0, 0.0))


def test_solutions_are_of_the_orders(trained, worked_example):
    (solution,) = attention_solutions(trained)
    orders = partial_orders(worked_example, collocation(worked_example))
    assert solution.problem.constraints == len(orders.edges) == 5
