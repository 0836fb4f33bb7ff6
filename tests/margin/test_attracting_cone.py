import numpy as np
import pytest
from margin_examples import unit

from attractor.attention import LinearHead
from attractor.margin import MarginProblem, attracting_cone, locally_optimal_selections, solve
from attractor.margin.selection import Selection, token_scores
from attractor.support.errors import DuplicateTokensWarning, InvalidInputError
from attractor.tokens import Tokens


def unit_prompts(seed, n=3, T=4, d=8):
    """Random unit tokens, head and labels, drawn in this order."""
    rng = np.random.default_rng(seed)
    keys, v = unit(rng.standard_normal((n, T, d))), unit(rng.standard_normal(d))
    return Tokens.prompt_vector(keys, np.sign(rng.standard_normal(n))), LinearHead(v)


def every_cone(tokens, head):
    found = locally_optimal_selections(tokens, head).locally_optimal_selections
    return [attracting_cone(tokens, head, found[i]) for i in range(len(found.mask))]


def queried(seed):
    """Ragged rows with queries of their own, two for each sequence."""
    rng = np.random.default_rng(seed)
    keys, queries = rng.normal(size=(2, 4, 6)), rng.normal(size=(2, 2, 3))
    mask = np.ones((2, 2, 4), dtype=bool)
    mask[1, 1, 3] = False
    labels = rng.choice([-1.0, 1.0], size=(2, 2))
    return Tokens(keys, queries, labels, mask), LinearHead(rng.normal(size=6))


def members(cone, count, seed=0):
    """Matrices on the rim of the cone, some of them the closest and some far out."""
    rng = np.random.default_rng(seed)
    axis = cone.solution.W / np.linalg.norm(cone.solution.W)
    off = rng.normal(size=(count, *axis.shape))
    off -= np.einsum("nde,de->n", off, axis)[:, None, None] * axis
    off /= np.linalg.norm(off, axis=(1, 2), keepdims=True)
    cosine = 1 - cone.opening * (1 - 1e-6)
    length = cone.radius * np.where(np.arange(count) % 2, 1.0 + 1e-9, 5.0)
    return length[:, None, None] * (cosine * axis + np.sqrt(1 - cosine**2) * off)


def test_constants_lie_where_they_were_measured():
    cones = [cone for seed in range(3) for cone in every_cone(*unit_prompts(seed))]
    assert len(cones) == 10
    openings, radii = (
        np.array([getattr(c, name) for c in cones]) for name in ("opening", "radius")
    )
    assert openings.min() == pytest.approx(7e-6, rel=0.05)
    assert openings.max() == pytest.approx(2.5e-3, rel=0.05)
    assert radii.min() == pytest.approx(59, abs=1)
    tokens, head = unit_prompts(7)
    far = attracting_cone(tokens, head, Selection.from_index(tokens, [1, 3, 2]))
    assert far.radius == pytest.approx(1819, abs=1)
    assert 2 * far.delta == pytest.approx(0.016, abs=1e-4)


@pytest.mark.parametrize("data", [unit_prompts, queried])
def test_inside_the_selection_leads_and_support_tokens_come_next(data):
    tried = 0
    for seed in range(4):
        tokens, head = data(seed)
        for cone in every_cone(tokens, head):
            W = members(cone, 40)
            assert cone.contains(W).all()
            scale = np.linalg.norm(W, axis=(1, 2)) / np.linalg.norm(cone.solution.W)
            scores = tokens.scores(W) / scale[:, None, None, None]
            selected = cone.solution.problem.selection.mask
            support = cone.local_optimality.support_tokens
            others = tokens.mask & ~selected & ~support
            top = np.where(selected, scores, -np.inf).max(-1)
            least_support = np.where(support, scores, np.inf).min(-1)
            best_support = np.where(support, scores, -np.inf).max(-1)
            best_other = np.where(others, scores, -np.inf).max(-1)
            assert (top - best_support >= 0.5).all()
            assert (top - best_other >= 1 + cone.delta - 1e-6).all()
            assert (least_support - best_other >= cone.delta - 1e-6).all()
            tried += 1
    assert tried > 5


@pytest.mark.parametrize("data", [unit_prompts, queried])
def test_inside_every_row_with_support_tokens_pulls_along_the_solution(data):
    for seed in range(4):
        tokens, head = data(seed)
        gamma = np.where(tokens.mask, token_scores(tokens, head), 0)
        for cone in every_cone(tokens, head):
            scores = tokens.scores(members(cone, 20))
            support = cone.local_optimality.support_tokens
            along = np.where(tokens.mask, tokens.scores(cone.solution.W), 0)
            # Weights relative to those of the best support token, which may be below 1e-308.
            log = scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True)
            best = np.where(support, log, -np.inf).max(-1, keepdims=True)
            covered = np.broadcast_to(support.any(-1), best.shape[:-1])
            best = np.where(covered[..., None], best, 0)
            pairs = np.exp(np.minimum(log[..., :, None] + log[..., None, :] - best[..., None], 700))
            apart = (gamma[..., :, None] - gamma[..., None, :]) * (
                along[..., :, None] - along[..., None, :]
            )
            pull = (pairs * apart).sum((-1, -2)) / 2
            mass = np.where(support, np.exp(np.minimum(log - best, 700)), 0).sum(-1)
            assert (pull >= 0.9 * cone.score_gap * mass)[covered].all()


def test_outside_is_outside():
    tokens, head = unit_prompts(1)
    cone = every_cone(tokens, head)[2]
    W = members(cone, 6)
    assert not cone.contains(W / 10).any()
    assert not cone.contains(-W).any()
    axis = cone.solution.W / cone.solution.norm
    along = (W * axis).sum((1, 2))[:, None, None] * axis
    wider = along + 1.001 * (W - along)
    assert not cone.contains(2 * wider).any()
    assert not cone.contains(np.zeros((8, 1)))
    assert cone.contains(2 * cone.radius * axis)
    assert not cone.contains(np.full((8, 1), np.nan))


def test_rows_without_support_tokens_are_named():
    # The second row is settled by what the first one asks for.
    keys = np.array([[[1.0, 0], [0, 0]], [[9.0, 0], [0, 0]]])
    tokens = Tokens.prompt_vector(keys, [1, 1])
    cone = attracting_cone(tokens, LinearHead([1.0, 0]), Selection.from_index(tokens, [0, 0]))
    assert cone.uncovered[:, 0].tolist() == [False, True]
    assert cone.delta == 0.5
    assert cone.reach == pytest.approx(9)
    assert cone.opening == pytest.approx((0.5 / 9) ** 2 / 8)
    assert cone.radius == pytest.approx(2 * np.log(64 * 2 * 9 * 9 / 1))
    assert "rows without support tokens" in repr(cone)


def test_no_cone_where_the_selection_is_not_locally_optimal():
    tokens, head = unit_prompts(0)
    census = locally_optimal_selections(tokens, head)
    failing = census.selections[np.flatnonzero(~census.locally_optimal)[0] :][0]
    cone = attracting_cone(tokens, head, failing)
    assert np.isnan(cone.opening) and np.isnan(cone.radius)
    assert "scores no less" in cone.reason and cone.reason in repr(cone)
    assert not cone.contains(1e6 * cone.solution.W)
    equal = Tokens.prompt_vector([[[1.0, 0], [0, 0]]], [1])
    tied = attracting_cone(equal, lambda x: 0 * x[..., 0], Selection.from_index(equal, [0]))
    assert "scores no less" in tied.reason
    nearly = attracting_cone(
        equal, lambda x: 1 + np.finfo(float).eps * x[..., 0], Selection.from_index(equal, [0])
    )
    assert nearly.local_optimality.worst_advantage > 0  # by one rounding, which is no advantage
    assert "scores no less" in nearly.reason


def test_batches_give_each_instance_its_cone_or_a_reason():
    first, head = unit_prompts(0)
    keys = np.stack([first.keys, unit_prompts(2)[0].keys, first.keys])
    keys[2, 0] = keys[2, 0, :1]
    tokens = Tokens.prompt_vector(keys, np.tile(first.labels[:, 0], (3, 1)))
    selection = Selection.from_index(tokens, [[1, 1, 0]] * 3)
    with pytest.warns(DuplicateTokensWarning):
        cones = attracting_cone(tokens, head, selection)
    assert cones.reason[0] == "" and "no solution" in cones.reason[2]
    assert np.isfinite(cones.radius[0]) and np.isnan(cones.radius[2])
    alone = attracting_cone(first, head, selection[0])
    assert cones.opening[0] == pytest.approx(float(alone.opening), rel=1e-9)
    W = 2 * cones.radius[0] * alone.solution.W / alone.solution.norm
    assert cones.contains(W).tolist() == [True, False, False]
    assert f"3, {np.isfinite(cones.opening).sum()} with a cone" in repr(cones)
    assert cones.to_xarray()["opening"].dims == ("instance",)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_the_scale_of_keys_scales_the_radius_alone(scale):
    tokens, head = unit_prompts(1)
    scaled = Tokens(tokens.keys * scale, tokens.queries, tokens.labels, values=tokens.values)
    selection = Selection.from_index(tokens, [2, 1, 1])
    cone, expected = (attracting_cone(data, head, selection) for data in (scaled, tokens))
    assert cone.opening == pytest.approx(float(expected.opening), rel=1e-9)
    assert cone.radius * scale == pytest.approx(float(expected.radius), rel=1e-9)
    assert cone.contains(2 * cone.radius * (cone.solution.W / cone.solution.norm))


def test_bad_input_is_refused():
    tokens, head = unit_prompts(0)
    both = Selection(np.arange(4) < np.full((3, 1, 1), 2), np.zeros((3, 1), dtype=bool))
    with pytest.raises(InvalidInputError, match="Select one token"):
        attracting_cone(tokens, head, both)
    first, second = (Selection.from_index(tokens, [i, 1, 0]) for i in (1, 3))
    solution = solve(MarginProblem.from_selection(tokens, first))
    assert attracting_cone(tokens, head, first, solution).solution is solution
    with pytest.raises(InvalidInputError, match="solution"):
        attracting_cone(tokens, head, second, solution)
