"""Adversarial data: on them the negative control of a claim passes, which shows that it can.

Each is made of the example of the claim. Most are data on which the wrong object is the right one;
they need not meet the assumptions. ``WITHOUT`` lists what has none, and why.
"""

from dataclasses import replace

import numpy as np

from attractor.attention import LinearHead, ReLUHead
from attractor.corpora import Corpus
from attractor.corpora.files.corpus import CorpusCase
from attractor.margin.selection import Selection
from attractor.papers import Case
from attractor.papers.large_prompt.claims.concentration import from_two
from attractor.papers.large_prompt.data import line
from attractor.papers.large_prompt.in_context_data import small
from attractor.papers.large_prompt.regression_data import independent, unequal
from attractor.papers.max_margin.data import joint_training, one_sequence, two_scores
from attractor.papers.measurements.attended import choosing
from attractor.papers.mirror_descent.claims._examples import with_exponent
from attractor.papers.next_token.data import grammar, with_long_embeddings
from attractor.papers.next_token.training import attention_solution, longest_context
from attractor.papers.transformers_as_svms.claims.heads import CONCAVE_HEAD_KEEPS_SEVERAL
from attractor.papers.transformers_as_svms.random_data import enclosed_token, random_unit_tokens
from attractor.prompts.head import AttentionHead
from attractor.prompts.regression.flows._trained_limit import finite_prompt_limit
from attractor.prompts.regression.task import RegressionTask
from attractor.tokens import Tokens


def _nearly_twice(case):
    """Every token but the selected ones twice, barely apart: to drop one constraint is nothing."""
    tokens, best = case.tokens, case.selection.mask[:, 0].argmax(-1)
    every = np.arange(tokens.length)
    others = [np.delete(every, token) for token in best]
    index = np.array([[*every, *rest, rest[0]] for rest in others])[..., None]
    keys = np.take_along_axis(tokens.keys, index, 1)
    added = keys[:, tokens.length :]
    added += 1e-7 * np.random.default_rng(0).standard_normal(added.shape)
    own = tokens.values is not tokens.keys
    values = np.take_along_axis(tokens.values, index, 1) if own else None
    twice = Tokens(keys, tokens.queries, tokens.labels, values=values)
    chosen = None if case.chosen is None else Selection.from_index(twice, best)
    return case.replace(tokens=twice, chosen=chosen)


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


def _joint_on_an_axis(case):
    """The same for attention and the head."""
    queries = np.ones((1, case.tokens.query_dimension))
    tokens = Tokens([[[0.0, 0], [1, 0]]], queries, np.ones(1))
    return case.replace(tokens=tokens, head=LinearHead(np.array([1.0, 0])))


def _without_scores(case):
    """The same tokens with no score, so that nothing moves."""
    tokens = case.tokens
    return Case.from_scores(
        tokens.keys,
        np.zeros(tokens.keys.shape[:2]),
        queries=tokens.queries[:, 0],
        parameterization=case.parameterization,
        optimizer=case.optimizer,
    )


def _one_that_counts(case):
    """Two sequences, of which the one with the larger multiplier has next to no score."""
    return Case.from_scores(
        [[[0.5, 0], [0, 0]], [[0, 1.0], [0, 0]]],
        [[1e-100, 0], [1.0, 0]],
        parameterization=case.parameterization,
    )


def _repeated(case):
    """Every second sequence in place of the one after it."""
    tokens, index = case.tokens, np.arange(case.tokens.sequences) // 2 * 2
    same = Tokens(tokens.keys[index], tokens.queries[index], tokens.labels[index])
    return case.replace(tokens=same)


def _all_twice(case):
    """Every sequence twice, so that one of them less is nothing."""
    keys, queries, labels = (
        np.repeat(array, 2, axis=0)
        for array in (case.tokens.keys, case.tokens.queries, case.tokens.labels)
    )
    return case.replace(tokens=Tokens(keys, queries, labels))


def _active_on_both(case):
    """Two tokens on which one unit is active: with labels -1 one of them stays as well."""
    tokens = Tokens([[[1.0, 0], [0.5, 0]]], [[1.0, 0]], np.ones(1))
    return case.replace(tokens=tokens, head=ReLUHead(np.array([[1.0], [0]])))


def _exchanged(case):
    """The results of one optimizer as those of another."""
    return case.replace(data=case.data.assign_coords(optimizer=case.data.optimizer.values[::-1]))


def _equal_attention(case):
    """The same head with no scores: the mean of all tokens, whatever their law."""
    return case.replace(head=AttentionHead(0 * case.U, case.V))


def _nearly_equal_attention(case):
    return case.replace(head=AttentionHead(1e-7 * case.U, case.V))


def _without_values(case):
    return case.replace(head=AttentionHead(case.U, 0 * case.V))


def _of_unit_covariance(case):
    unit = np.eye(case.task.dimension)
    return case.replace(task=replace(case.task, covariance=unit, query_covariance=unit))


def _of_narrow_scores(case):
    return case.replace(task=RegressionTask(1e-8 * case.task.covariance))


def _of_one_limit(case):
    """Two inputs of variances for which training on finite prompts ends where infinite ones do."""
    return case.replace(task=RegressionTask(np.diag([0.1945642836042396, 1.0])))


def _as_good_as_noise(case):
    """Labels whose noise hides a token more or less."""
    return case.replace(task=replace(case.task, label_noise=1e6))


def _with_far_second_best(case):
    """Tokens of low score to both sides, which no matrix leaves behind."""
    keys, scores = [[[0.0, 0], [0, 0.1], [1, 0], [-1, 0]]], [[1.0, 0.9, -100, -100]]
    return Case.from_scores(keys, scores, parameterization=case.parameterization)


def _of_no_weight(case):
    """A sequence of huge scores has the largest multiplier, and next to no part in the loss.

    The third sequence, of scores like the second, makes the slope past that margin -1 again.
    """
    return Case.from_scores(
        [[[0.9999, 0], [0, 0]], [[0, 1.0], [0, 0]], [[1, 0.7582], [0, 0]]],
        [[5000.0, 4999], [1, 0], [1, 0]],
        parameterization=case.parameterization,
    )


def _in_one_dimension(case):
    """Two tokens on a line, where a cone has no edge."""
    tokens = Tokens([[[1.0], [0]]], [[1.0]], np.ones(1))
    return Case(tokens, LinearHead(np.ones(1)), case.parameterization)


def _barely_separable(case):
    """The best token is nearly enclosed, and its solution so long that radii are small beside it.

    The last token is selected, whose own solution is short.
    """
    barely = Case.from_scores(
        [[[0.0, 1e-9, 0], [-1, 0, 0], [1, 0, 0], [0, 0, -1000]]],
        [[1.0, -1, 0.99, -1]],
        parameterization=case.parameterization,
    )
    return choosing(barely, [3], "a token far away")


def _in_one_step_of_signs(case):
    """A step so long that it decides alone, in a direction that leaves the best token."""
    keys, scores = [[[0.0, 0], [-1, 0.5], [-1, -3]]], [[1.0, 0, 1 - 1e-6]]
    made = Case.from_scores(keys, scores, parameterization="W")
    return made.replace(optimizer="sign descent:learning_rate=1e9", steps=1)


def _active_on_one_token(case):
    """Two tokens on each of which one unit is active, and on hardly any average of them."""
    tokens = Tokens([[[1.0, -1e12], [-1e12, 0.9]]], [[1.0, 0]], np.ones(1))
    return case.replace(tokens=tokens, head=ReLUHead(np.eye(2)))


def _flat(case):
    """Predictions so large that their loss, and its gradient, are zero in rounding."""
    tokens = Tokens([[[1.0, 1], [1, 0]]], [[1.0, 0]], np.ones(1))
    return case.replace(tokens=tokens, head=LinearHead(np.array([1000.0, 1])))


def _at_the_worse_token(case):
    """One step from far out on the worse of two tokens, whose runner-up is the best."""
    made = Case.from_scores([[[1.0, 0], [0, 0]]], [[1.0, 0]], parameterization="W")
    return made.replace(initial=np.array([[-1000.0], [0]]), steps=1)


def _jointly_in_one_dimension(case):
    """Tokens on a line, where all directions are one; the second label is beyond the margin."""
    tokens = Tokens([[[1.0], [0.5]], [[3], [2]]], np.ones((2, 1)), np.ones(2))
    return case.replace(tokens=tokens, head=LinearHead(np.zeros(1)))


def _samples(contexts, labels, vocabulary):
    """A corpus of contexts of letters."""
    return CorpusCase(Corpus.from_samples([*map(list, contexts)], list(labels), list(vocabulary)))


def _beside_one_query():
    """The token ``a`` is optimal under ``q``, and ``c`` not comparable; ``q`` is followed as it."""
    return _samples(["aq", *"aqc"], "bbcc", "abcq")


def _on_a_line(case):
    """Embeddings nearly on a line, where all directions are one; ``c`` lies behind ``q``."""
    table = np.column_stack([np.eye(4), 1e4 * np.array([1.0, 0, -2, -1])])
    return _beside_one_query().replace(embeddings=table)


def _attending_anyway(case):
    """Attention starts so large that training does not move it, on the token not optimal."""
    return _samples(["aq", *"aqc"], "bbca", "abcq").replace(initial_scales=(0.0, 1e6))


def _of_the_published_rate(case):
    """Embeddings of a length at which the published rate is what training has."""
    known = grammar()
    norm = float(attention_solution(known).value)
    return with_long_embeddings(known, float(np.sqrt(4 * longest_context(known) * norm / 1.1)))


def _at_rest(case):
    """A start at the limit of infinite prompts, and prompts as good as infinite."""
    return case.replace(initial_scale=case.task.dimension**0.25, lengths=(10**14,))


def _nothing_held_out(case):
    """Tasks that risks are taken on with nothing in them: every risk is zero."""
    kept = (np.arange(len(case.prompts)) % 2 == 0)[:, None]
    return case.replace(
        prompts=kept[..., None] * case.prompts,
        queries=kept * case.queries,
        labels=kept * case.labels,
        token_covariance=kept[..., None] * case.token_covariance,
    )


def _ordered_prompts(case):
    """The tokens of largest label first, so that training moves far on the shortest prompts alone.

    Queries are zero, so that attention is the mean of the tokens.
    """
    prompts, length = case.prompts.copy(), case.lengths[-1]
    order = np.argsort(-prompts[:, :length, -1], axis=1)[..., None]
    prompts[:, :length] = np.take_along_axis(prompts[:, :length], order, axis=1)
    labels = 10 * np.abs(case.labels)
    return case.replace(prompts=prompts, queries=0 * case.queries, labels=labels)


_GROUPS = {
    _nearly_twice: """
        max-margin/global-path max-margin/single-sequence-convergence max-margin/global-convergence
        max-margin/local-convergence max-margin/selected-direction transformers-as-svms/global-path
        transformers-as-svms/global-convergence transformers-as-svms/large-start
        transformers-as-svms/local-convergence""",
    _on_an_axis: """
        transformers-as-svms/norms-coincide transformers-as-svms/nuclear-solutions-not-unique
        transformers-as-svms/key-query-path transformers-as-svms/sequence-path
        transformers-as-svms/key-query-training transformers-as-svms/wide-is-global
        mirror-descent/regularization-path mirror-descent/local-convergence""",
    lambda case: _nearly_twice(_on_an_axis(case)): """
        transformers-as-svms/good-first-gradient transformers-as-svms/several-tokens""",
    _without_scores: """
        max-margin/matrix-and-prompt-equivalence mirror-descent/descent
        mirror-descent/step-identity""",
    _with_far_second_best: "max-margin/optimal-tokens-minimize-loss",
    _of_no_weight: "max-margin/least-loss-at-infinity",
    _in_one_dimension: "max-margin/local-path",
    _barely_separable: "max-margin/local-path-converse max-margin/local-path-elsewhere",
    _in_one_step_of_signs: "transformers-as-svms/only-local-optima-attract",
    _active_on_one_token: "transformers-as-svms/relu-head-best-attention",
    _flat: "transformers-as-svms/smooth-gradient",
    lambda case: random_unit_tokens(0, (4, 2, 4)): "transformers-as-svms/feasible-when-wide",
    _at_the_worse_token: "mirror-descent/endpoints",
    _jointly_in_one_dimension: "mirror-descent/joint-directions",
    lambda case: case.replace(steps=1): "mirror-descent/stays-in-cone",
    lambda case: with_exponent(case, 16.0): "mirror-descent/divergence-bounds-distance",
    lambda case: with_long_embeddings(grammar(), 1e-11): "next-token/equal-other-logits",
    lambda case: _beside_one_query(): "next-token/unseen-contexts",
    _on_a_line: "next-token/attention-direction next-token/extended-order",
    _attending_anyway: "next-token/optimal-attention-grows",
    _of_the_published_rate: "next-token/optimal-attention-rate",
    _at_rest: "large-prompt/balance-kept",
    lambda case: case.replace(lengths=(2**60,)): "large-prompt/two-heads-beat-one",
    _one_that_counts: "max-margin/no-stationary-point transformers-as-svms/no-stationary-point",
    _repeated: "transformers-as-svms/rank",
    lambda case: _repeated(random_unit_tokens(0, (2, 4, 4))): (
        "transformers-as-svms/nearly-full-rank"
    ),
    _active_on_both: "transformers-as-svms/relu-head-training",
    lambda case: CONCAVE_HEAD_KEEPS_SEVERAL.data(0)[0]: "transformers-as-svms/concave-head",
    lambda case: enclosed_token("W"): "transformers-as-svms/only-the-best-attracts",
    lambda case: two_scores(1.0): "max-margin/finite-offset",
    lambda case: one_sequence(equal_scores=False): "max-margin/several-optimal-tokens-path",
    lambda case: joint_training(all_labels_support=True).replace(optimizer=case.optimizer): """
        max-margin/relaxed-joint-path max-margin/joint-order-of-limits
        mirror-descent/relaxed-joint-path""",
    _exchanged: """
        mirror-descent/text-generalization mirror-descent/text-selection
        mirror-descent/weight-sparsity mirror-descent/vision-sparsity
        mirror-descent/vision-accuracy""",
    lambda case: grammar(): "next-token/feed-forward-norm next-token/attention-norm",
    _all_twice: "max-margin/joint-path max-margin/relaxed-joint-path-at-any-rates",
    _joint_on_an_axis: "mirror-descent/joint-path",
    lambda case: with_long_embeddings(grammar(), 4.0): "next-token/logit-gaps-from-above",
    lambda case: with_long_embeddings(grammar(), 0.3): (
        "next-token/descent-along-attention-solution"
    ),
    _equal_attention: """
        large-prompt/affine-attention large-prompt/gaussian-outputs
        large-prompt/output-concentration large-prompt/output-concentration-repaired
        large-prompt/value-gradient-concentration
        large-prompt/value-gradient-concentration-repaired
        large-prompt/score-gradient-concentration
        large-prompt/score-gradient-concentration-repaired
        large-prompt/output-rate large-prompt/score-gradient-rate large-prompt/exact-errors
        large-prompt/averaged-exponent large-prompt/exponent-of-many-directions
        large-prompt/averaged-limit""",
    _nearly_equal_attention: "large-prompt/output-bias",
    _without_values: """
        large-prompt/sub-gaussian-output-concentration
        large-prompt/sub-gaussian-output-concentration-repaired
        large-prompt/sub-gaussian-score-gradient-concentration
        large-prompt/sub-gaussian-score-gradient-concentration-repaired""",
    lambda case: from_two(line(0.1)): """
        large-prompt/sub-gaussian-value-gradient-concentration
        large-prompt/sub-gaussian-value-gradient-concentration-repaired""",
    _of_unit_covariance: "large-prompt/trained-limit large-prompt/trained-prediction",
    _of_narrow_scores: "large-prompt/heavy-tail-exponent large-prompt/leading-order",
    _as_good_as_noise: "large-prompt/small-opposite-heads",
    _of_one_limit: "large-prompt/finite-prompt-limit large-prompt/trained-risk-limit",
    lambda case: unequal(): "large-prompt/unbalanced-limit",
    lambda case: independent(1): "large-prompt/trained-horizon",
    lambda case: independent(1, (3,)): "large-prompt/finite-opposite-heads",
    lambda case: independent(5): "large-prompt/parameter-limit",
    lambda case: case.replace(initial_scale=0.1): "large-prompt/initial-scale",
    lambda case: _nothing_held_out(small()): "large-prompt/general-risk-limit",
    lambda case: _ordered_prompts(small()): "large-prompt/general-trajectory-stability",
    lambda case: case.replace(initial_scale=1e-12): "large-prompt/trajectory-stability",
    lambda case: case.replace(lengths=(10**15,)): "large-prompt/risk-falls",
    lambda case: case.replace(sigma=np.full(8192, 0.2)): "large-prompt/sub-gaussian-decay",
    lambda case: case.replace(initial_value=finite_prompt_limit(case.task)): (
        "large-prompt/fixed-value-limit"
    ),
}
ADVERSARIAL = {name: make for make, names in _GROUPS.items() for name in names.split()}
"""By name of a claim, what makes adversarial data of its example."""
_REASONS = {
    "all that is trained has the rate of the statement": """
        max-margin/gradient-descent-rate max-margin/gradient-descent-norm
        max-margin/gradient-descent-direction max-margin/normalized-gradient-descent-rate
        mirror-descent/norm-growth mirror-descent/rate
        next-token/feed-forward-direction next-token/feed-forward-loss
        next-token/feed-forward-loss-bound next-token/attention-direction-rate
        next-token/attention-loss next-token/optimal-attention-bound
        next-token/logit-gaps-from-below""",
    "the wrong direction is off by an angle that no data close": """
        next-token/feed-forward-exact next-token/feed-forward-gradient
        next-token/feed-forward-gradient-without-correction
        next-token/descent-along-own-direction next-token/closed-form
        next-token/closed-form-of-complete-orders""",
    "none is known": """
        mirror-descent/joint-endpoints
        next-token/feed-forward-direction-bound next-token/attention-direction-bound
        next-token/attention-gradient-identity next-token/unseen-contexts-with-an-optimal-token
        next-token/excess-loss-rate large-prompt/order-of-predictors""",
}
WITHOUT = {name: why for why, names in _REASONS.items() for name in names.split()}
"""By name of a claim without adversarial data, why there are none."""
