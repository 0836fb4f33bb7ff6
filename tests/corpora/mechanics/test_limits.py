import mpmath
import numpy as np
import pytest
from scipy.special import softmax

from attractor.corpora.corpus import Corpus
from attractor.corpora.mechanics import attention_limits
from attractor.corpora.mechanics.limits import log_excess_loss, log_mass_outside
from attractor.support.errors import InvalidInputError, Status

exact = np.vectorize(mpmath.mpf, otypes=[object])


def exact_excess(limits, W):
    """Loss less floor, both at the finite part that was found, in 200 digits."""
    total = mpmath.mpf(0)
    contexts, kept = limits.contexts, limits.kept
    finite = exact(limits.finite.W)
    for i, weight in enumerate(contexts.weights):
        X, q = exact(contexts.keys[i]), exact(contexts.queries[i])
        label = int(contexts.is_label[i].argmax())
        at_W = [mpmath.exp(s) for s in X @ (W @ q)]
        at_end = [mpmath.exp(s) for s in X @ (finite @ q)]
        total += weight * mpmath.log(sum(at_W) / at_W[label])
        inside = sum(w for w, chosen in zip(at_end, kept[i], strict=True) if chosen)
        total -= weight * mpmath.log(inside / at_end[label])
    return total


@pytest.mark.parametrize("far", [0.5, 10.0, 40.0])
def test_the_excess_loss_keeps_its_digits(cyclic, rng, far):
    """Near the limits, where loss and floor agree in all digits that floating point has."""
    _, limits = cyclic
    for one in (limits[0], limits[3]):
        base, noise = one.finite.W, rng.normal(size=(8, 8))
        for size in (1.0, 1e-3):
            W = base + far * one.direction.W + size * noise
            with mpmath.workdps(200):
                expected = exact_excess(one, exact(W))
                log_expected = float(mpmath.log(expected))
            found = float(log_excess_loss(one, W))
            # The minimizer is one to rounding, which an exact reference sees at its square root.
            assert found == pytest.approx(log_expected, abs=1e-9)


def test_the_excess_vanishes_where_the_limits_are(cyclic, acyclic, embeddings):
    for far, (_, limits) in ((30.0, cyclic), (3000.0, acyclic)):  # cycles bring in rounding of W
        for one in limits:
            log = log_excess_loss(one, one.finite.W + far * one.direction.W)
            assert -far - 5 <= log <= -far + 3
    only = attention_limits(Corpus.from_samples([[0, 1], [0, 1]], [0, 1]), embeddings[:2])
    assert log_excess_loss(only, np.zeros((8, 8))) == -np.inf


def test_mass_outside_is_that_of_softmax(cyclic, rng):
    data, limits = cyclic
    W = rng.normal(size=(3, 8, 8))
    for E, corpus, one in zip(data.embeddings, data.corpora, limits, strict=True):
        found = np.exp(log_mass_outside(one, W))
        for sample in range(6):
            X = E[corpus.context(sample)]
            p = softmax(X @ (W @ X[-1]).T, axis=0)
            np.testing.assert_allclose(
                found[:, sample], p[~one.kept[sample]].sum(0), rtol=1e-12, atol=1e-16
            )


def test_every_token_outside_the_component_has_to_fall_behind(cyclic, acyclic):
    for _, limits in (cyclic, acyclic):
        for one in limits:
            scores = one.contexts.scores(one.direction.W)
            for sample in range(6):
                kept, others = scores[sample][one.kept[sample]], scores[sample][~one.kept[sample]]
                assert np.ptp(kept) <= 1e-10 and (others <= kept.min() - 1 + 1e-9).all()


def test_dependent_embeddings_may_leave_no_direction():
    """A label between two tokens on a line cannot be ahead of both."""
    line = np.array([[0.0, 1], [1, 1], [2, 1], [1, 0]])
    middle = attention_limits(Corpus.from_samples([[0, 1, 2, 3]], [1], list("abcd")), line)
    assert middle.direction.status is Status.INFEASIBLE and "infeasible" in repr(middle)
    end = attention_limits(Corpus.from_samples([[0, 1, 2, 3]], [2], list("abcd")), line)
    assert end.direction.status is Status.OPTIMAL


def test_a_context_without_its_label_is_refused(embeddings):
    corpus = Corpus.from_samples([[0, 1], [2, 3]], [1, 4], list("abcdef"))
    with pytest.raises(InvalidInputError, match="corpora: a context lacks its label"):
        attention_limits(corpus, embeddings)
