"""Adversarial data: on them the negative control of a claim passes, which shows that it can.

Each is made of the example of the claim. Most are data on which the wrong object is the right one;
they need not meet the assumptions. ``WITHOUT`` lists what has none, and why.
"""

import numpy as np
import scipy.optimize

from attractor.corpora import Corpus
from attractor.papers import Case, CorpusCase
from attractor.prompts import AttentionHead, HeadCase
from attractor.prompts.measures import Empirical
from attractor_further.critical_temperature.data import logarithmic_gaps
from attractor_further.gaussian_mixtures.claims.discriminant_saddles import DISCRIMINANT_SADDLES
from attractor_further.gaussian_mixtures.discriminant import classes
from attractor_further.gaussian_mixtures.discriminant_head import head_risk
from attractor_further.gaussian_mixtures.mixture_data import mixture, noisy_points, two_classes
from attractor_further.in_context_convergence.data import features
from attractor_further.mechanics.data import limits


def _on_an_axis(case):
    """A single constraint on a single entry, where solutions of all norms are the same."""
    return Case.from_scores(
        [[[1.0, 0], [0, 0]]],
        [[1.0, 0]],
        queries=np.eye(case.tokens.query_dimension)[:1],
        parameterization=case.parameterization,
        optimizer=case.optimizer,
        steps=case.steps,
    )


def _long_row(case):
    """One support token among many others far away, so that the bound on their odds is loose."""
    keys = [[[1.0, 0], [0, 0], *28 * [[-40.0, 0]]]]
    return Case.from_scores(keys, [[1.0, *29 * [0]]])


def _one_context(*labels):
    """One context with equally frequent followers: one matrix of rank one, in all norms."""
    return lambda case: _samples(["ab"] * len(labels), labels, "abc")


def _samples(contexts, labels, vocabulary):
    """A corpus of contexts of letters."""
    return CorpusCase(Corpus.from_samples([*map(list, contexts)], list(labels), list(vocabulary)))


def _equal_attention(case):
    """The same head with no scores: the mean of all tokens, whatever their law."""
    return case.replace(head=AttentionHead(0 * case.U, case.V))


def _nearly_equal_attention(case):
    return case.replace(head=AttentionHead(1e-7 * case.U, case.V))


def _counted(*counts):
    """Orthonormal features that occur so often."""
    basis = np.eye(len(counts))
    head = AttentionHead(basis, basis)
    return HeadCase(head, Empirical(np.repeat(basis, counts, axis=0)), Empirical(basis))


def _scored(*scores):
    """Tokens of a row of scores."""
    tokens = Empirical(np.array(scores)[:, None])
    return HeadCase(AttentionHead([[1.0]], [[1.0]]), tokens, Empirical([[1.0], [1.0]]))


def _one_feature_asked_for(case):
    """All queries are the feature that is most frequent, too."""
    return features(2, dominant=3).replace(queries=Empirical([[1.0, 0], [1.0, 0]]))


def _long(case):
    """Prompts so long that they are as good as infinite ones."""
    return case.replace(lengths=(10**10, 10**11, 10**12))


def _of_one_step(case):
    """Embeddings so long that training on conflicting labels is over in one step."""
    norm = float(limits(case).direction.value)
    return case.replace(embeddings=np.sqrt(800 * norm / 1.5) * case.table)


def _asked_the_origin(case):
    """All queries are zero."""
    return case.replace(queries=Empirical(np.zeros((1, case.tokens.dimension))))


def _opposite_points(case):
    """Opposite means, and queries along them, for which the second head returns nothing."""
    return noisy_points((2.0, 0), (-2.0, 0)).replace(queries=Empirical([[1.0, 0], [-0.5, 0]]))


def _tiny_classes(case):
    """Classes at so small a scale that no gate moves over them."""
    size, weights, labels = 1e-11, [0.6, 0.4], np.array([[1.0], [-1]])
    points, covariance = size * np.eye(2), np.diag([size**2, size**2, 0])
    tokens, queries = (
        mixture(weights, np.column_stack([points, signs]), [covariance] * 2)
        for signs in (labels, 0 * labels)
    )
    return HeadCase(case.head, tokens, queries)


def _as_likely_as_a_gate_asks(case):
    """A probability of the label at which heads without values are critical for the drawn gate."""

    def gradient(probability):
        made = two_classes(probability=probability)
        (head, *_) = DISCRIMINANT_SADDLES.exchanged().object(made)
        return head_risk(classes(made), head).gradient[-1]

    return two_classes(probability=scipy.optimize.brentq(gradient, 0.6, 0.9, xtol=1e-12))


_GROUPS = {
    _on_an_axis: """
        folklore/muon-margin folklore/muon-margin-repaired folklore/adam-margin
        folklore/adam-margin-in-memories folklore/sign-momentum-margin folklore/lion-margin
        folklore/decaying-steps-reach-the-margin folklore/key-query-descent-margin
        folklore/key-query-margin folklore/weight-decay-low-rank folklore/weight-decay-margin""",
    lambda case: _samples(["aa"], "a", "ab"): "mechanics/label-mass-loss-is-convex",
    _of_one_step: "mechanics/conflicts-leave-a-finite-part",
    _one_context("a", "b"): """
        linear-next-token/more-dimensions-than-contexts linear-next-token/entropy-is-the-infimum
        linear-next-token/finite-part-of-decoders linear-next-token/descent-of-decoders
        linear-next-token/regularization-path-of-decoders linear-next-token/descent-keeps-odds""",
    _one_context("a"): """
        multiclass-descent/margin-of-normalized-descent
        multiclass-descent/margin-of-spectral-descent
        multiclass-descent/margin-of-normalized-momentum multiclass-descent/margin-of-muon
        associative-memory/loss-of-muon-falls-exponentially
        associative-memory/first-step-of-muon-is-balanced
        mechanics/regularization-path-of-label-mass mechanics/no-conflicts-no-finite-part
        mechanics/conflicts-leave-the-direction""",
    _asked_the_origin: "gaussian-mixtures/residual-denoiser gaussian-mixtures/one-head-denoiser",
    _opposite_points: "gaussian-mixtures/two-head-denoiser",
    _tiny_classes: "gaussian-mixtures/bayes-parameters-critical",
    _as_likely_as_a_gate_asks: "gaussian-mixtures/discriminant-saddles",
    _long_row: "critical-temperature/certified-concentration",
    _equal_attention: """
        gaussian-mixtures/mixture-attention gaussian-mixtures/mixture-sensitivity
        gaussian-mixtures/linear-attention-gap in-context-convergence/discrete-attention
        token-sample-complexity/sample-complexity-exponent""",
    _nearly_equal_attention: "token-sample-complexity/uniform-rate",
    lambda case: logarithmic_gaps(2): "critical-temperature/row-concentration",
    lambda case: _scored(0, -np.log(2), -1.6, -1.6): "critical-temperature/row-spread",
    lambda case: _counted(9, 3, 1): "in-context-convergence/frequent-feature-first",
    _one_feature_asked_for: "in-context-convergence/discrete-selection",
    lambda case: two_classes((1.0, 0), (-1.0, 0), 0.5): "gaussian-mixtures/discriminant-minimizers",
    lambda case: two_classes((0.0, 0), (0.0, 0), 0.5): """
        gaussian-mixtures/bayes-discriminant gaussian-mixtures/discriminant-escape
        gaussian-mixtures/discriminant-balance-kept""",
    lambda case: noisy_points((4.0, 0), (0.0, 4), spread=1e-9): (
        "gaussian-mixtures/iterated-denoiser"
    ),
    _long: """
        trained-linear-models/linear-attention-optimum
        trained-linear-models/linear-attention-limit""",
    lambda case: case.replace(lengths=(200, 201)): (
        "trained-linear-models/linear-attention-test-error"
    ),
}
ADVERSARIAL = {name: make for make, names in _GROUPS.items() for name in names.split()}
"""By name of a claim, what makes adversarial data of its example."""
_REASONS = {
    "all that is trained has the rate of the statement": """
        linear-next-token/loss-of-descent in-context-convergence/feature-training-rate
        token-sample-complexity/hard-attention""",
    "none is known": """
        multiclass-descent/margin-of-sign-descent multiclass-descent/margin-of-sign-momentum
        multiclass-descent/margin-of-adam gaussian-mixtures/discriminant-local-convergence
        gaussian-mixtures/discriminant-global-convergence gaussian-mixtures/one-head-gap""",
}
WITHOUT = {name: why for why, names in _REASONS.items() for name in names.split()}
"""By name of a claim without adversarial data, why there are none."""
