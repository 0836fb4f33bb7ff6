import io
import re

import numpy as np
import pytest
import xarray as xr

import attractor as at
from attractor.analysis.predictions.prediction import predicted_problem
from attractor.analysis.predictions.trained import what_was_trained, with_instances
from attractor.geometry import get_geometry
from attractor.margin.selection import Selection
from attractor.papers.max_margin.data import joint_training
from attractor.report.words import verdict_sentences

STEP = at.normalized_gradient_descent(0.1, per_factor=True)
HEAD = at.LinearHead(np.array([-1.0, 0.0]))
KEPT = [1, 1, 1]


def train_jointly(tokens, steps=2000):
    start = np.array([0.0, -1.0])
    return at.train(tokens, HEAD, STEP, steps=steps, initial=start, parameterization="v, p")


def with_third_token(height):
    keys = [[[0, 0], [1, 1]], [[0, 0], [1, -1]], [[0, 0], [0.5, height]]]
    return at.Tokens(np.array(keys, float), np.ones((3, 1)), [1.0, -1.0, 1.0])


def predict(
    tokens, index=KEPT, head=HEAD, *, head_trained=True, loss="logistic", geometry="frobenius"
):
    tokens = with_instances(tokens)
    trained = what_was_trained(tokens, head, loss, head_trained=head_trained)
    selection = Selection.from_index(tokens, np.array([index]))
    return predicted_problem(tokens, selection, trained, get_geometry(geometry))


def changed(run, **attributes):
    return at.Trajectory(**(vars(run) | attributes))


@pytest.fixture(scope="module")
def relaxing():
    """The published setting in which one label lies beyond the margin."""
    return train_jointly(joint_training(all_labels_support=False).tokens)


def test_labels_beyond_the_margin_relax_the_problem_of_joint_training(relaxing):
    verdict = at.verify(relaxing)
    assert verdict.margin_ratio.item() > 0.998
    assert verdict.correlation.item() > 0.999998
    tokens = relaxing.tokens
    selection = Selection.from_index(tokens, KEPT)
    label = at.solve(at.label_problem(tokens, selection))
    by_hand = at.solve(at.relaxed_problem(tokens, selection, at.label_support(label)))
    held = at.verify(relaxing, by_hand)
    assert verdict.margin_ratio.item() == pytest.approx(held.margin_ratio.item(), rel=1e-12)
    assert verdict.summary()["problem"] == {"relaxed margin problem": 1}
    plain = at.verify(relaxing, at.solve(at.MarginProblem.from_selection(tokens, selection)))
    assert plain.margin_ratio.item() < 0.65


def test_the_head_is_held_against_its_label_problem(relaxing):
    verdict = at.verify(relaxing)
    assert verdict.label_margin_ratio.item() == pytest.approx(1, abs=1e-9)
    assert verdict.label_correlation.item() == pytest.approx(1, abs=1e-9)
    np.testing.assert_array_equal(verdict.data["label_support"].values.ravel(), [1, 1, 0])
    np.testing.assert_allclose(verdict.label.W, [[[0], [1]]], atol=1e-9)
    assert verdict.summary()["largest_label_gap"] < 1e-9
    along = verdict.data["label_margin_ratio"].values.ravel()
    assert along[0] < 0 < along[-1]  # it starts the wrong way
    turned = relaxing.data["head_weight"] * 0 + np.array([1.0, 1.0])
    by_hand = at.verify(changed(relaxing, data=relaxing.data.assign(head_weight=turned)))
    assert by_hand.label_margin_ratio.item() == pytest.approx(0, abs=1e-12)  # min(2, 0, 2)


def test_every_text_says_which_problem_it_is_and_why(relaxing):
    verdict = at.verify(relaxing)
    texts = [str(verdict), verdict._repr_html_(), " ".join(verdict_sentences(verdict))]
    for text in texts:
        flat = " ".join(re.sub("<[^>]*>", " ", text).split())
        assert "relaxed margin problem" in flat
        assert "1 of 3 labels lie beyond its margin" in flat
    assert max(map(len, texts[0].splitlines())) <= 80
    assert "label margin ratio" in texts[0] and "label margin ratio" in texts[2]
    assert "Training got there" in texts[2]
    assert "1 of 3 labels" in verdict.summary()["why"]
    stream = io.BytesIO()
    verdict.to_xarray().to_netcdf(stream, engine="h5netcdf")
    with xr.open_dataset(io.BytesIO(stream.getvalue()), engine="h5netcdf") as read:
        assert read["problem"].item() == "relaxed margin problem"


def test_the_plain_problem_where_every_label_is_at_the_margin():
    run = train_jointly(joint_training(all_labels_support=True).tokens)
    verdict = at.verify(run)
    assert verdict.summary()["problem"] == {"margin problem": 1}
    assert "every label is at its margin" in verdict.why
    plain = at.solve(at.MarginProblem.from_selection(run.tokens, at.attended_tokens(
        run.tokens, run.W()[0, 0])))  # fmt: skip
    assert verdict.margin_ratio.item() == at.verify(run, plain).margin_ratio.item()
    assert verdict.label_correlation.item() > 0.999998


def test_a_head_too_short_beside_the_matrix_is_no_case_for_the_relaxed_problem(relaxing):
    verdict = at.verify(relaxing)
    assert not verdict.data["head_lags"].any()
    short = relaxing.data.assign(head_weight=relaxing.data["head_weight"] / 2)
    verdict = at.verify(changed(relaxing, data=short))
    expected = at.rate_ratio_direction(
        relaxing.tokens, Selection.from_index(relaxing.tokens, KEPT), 1.0
    ).critical_ratio
    assert verdict.data["critical_ratio"].item() == pytest.approx(float(expected), rel=1e-9)
    assert 0.5 < verdict.data["head_ratio"].item() < 0.51
    assert verdict.data["head_lags"].all()
    assert "rate_ratio_direction" in " ".join(verdict_sentences(verdict))


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"settings": {"loss": "squared"}}, "the squared loss has no exponential tail"),
        ({"head": at.ReLUHead(np.ones((2, 2)))}, "it is not linear"),
        ({"head": None}, "the file does not say"),
    ],
)
def test_what_no_statement_covers_is_compared_with_a_stand_in(relaxing, attributes, words):
    settings = relaxing.settings | attributes.pop("settings", {})
    verdict = at.verify(changed(relaxing, settings=settings, **attributes))
    assert words in verdict.why
    assert "give its solution" in verdict.why
    assert "label_margin_ratio" not in verdict.data
    sentences = " ".join(verdict_sentences(verdict))
    assert "for want of a prediction" in sentences and "Training" not in sentences
    with pytest.raises(AttributeError, match="linear head"):
        _ = verdict.label_margin_ratio


def test_tokens_by_which_no_head_tells_labels_apart():
    keys = np.array([[[0, 0], [1, 1]], [[0, 0], [1, 1]], [[0, 0], [0.5, 1]]])
    found = predict(at.Tokens(keys, np.ones((3, 1)), [1.0, -1.0, 1.0]))
    assert found.kind == ["margin problem, as a stand-in"]
    assert "no head tells the labels apart" in found.why[0]
    assert "Train for longer" in found.why[0]
    assert not found.label.separable.any()


def test_labels_too_near_the_margin_to_tell_are_named():
    # In the Frobenius norm fractions tell; in others a certificate, whose gap is not zero.
    for height in (1.0, 1 + 1e-12, 1 + 5e-9, 1 + 1e-5):
        assert "leaves it open" not in predict(with_third_token(height)).why[0]
    assert predict(with_third_token(1 + 1e-12)).kind == ["relaxed margin problem"]
    power = "l_1.5"
    for height in (1.0, 1 + 1e-5):
        assert "leaves it open" not in predict(with_third_token(height), geometry=power).why[0]
    found = predict(with_third_token(1 + 5e-9), geometry=power)
    assert found.kind == ["margin problem"]
    assert "1 rows, counted as at the margin" in found.why[0]
    assert "relaxed_problem(tokens, selection, supports)" in found.why[0]


def test_no_direction_where_no_row_at_the_margin_has_a_choice():
    tokens = at.Tokens(
        [[[0.0, 1.0], [5.0, 5.0]], [[0.0, 0.0], [0.0, 3.0]]],
        np.ones((2, 1)),
        [1.0, 1.0],
        mask=[[True, False], [True, True]],
    )
    found = predict(tokens, [0, 1])
    assert found.kind == ["none"]
    assert "rate_ratio_direction" in found.why[0]
    assert found.solution.norm[0] == 0


def test_rows_of_weight_zero_have_no_label_to_meet():
    keys = np.array([[[0, 0], [1, 1]], [[0, 0], [1, -1]], [[0, 0], [0.5, 0.1]]])
    whole = at.Tokens(keys, np.ones((3, 1)), [1.0, -1.0, 1.0])
    light = at.Tokens(keys, np.ones((3, 1)), [1.0, -1.0, 1.0], weights=[1.0, 1.0, 0.0])
    assert predict(whole).label.solution.norm[0] > 1.5
    found = predict(light)
    assert found.label.solution.norm[0] == pytest.approx(1)
    np.testing.assert_array_equal(found.label.at_margin.ravel(), [1, 1, 0])


def test_tokens_of_the_same_score_exert_no_force_on_each_other():
    # The second row keeps its last token, which scores as the one at the origin.
    keys = [[[1.0, 0], [0, 0], [-1, 0]], [[-2, 3], [0, 0], [0, 0.3]]]
    scores = [[1.0, 0, 0], [1, 0, 0]]
    tokens = at.Tokens(keys, np.ones((2, 1)), [1.0, 1.0], values=np.array(scores)[..., None])
    run = at.train(
        tokens,
        at.LinearHead([1.0]),
        at.normalized_gradient_descent(0.1),
        steps=300,
        initial=np.array([[5.0], [0.1]]),
    )
    verdict = at.verify(run)
    assert verdict.summary()["problem"] == {"margin problem of tie classes": 1}
    assert "tokens of the same score exert no force" in verdict.why
    assert verdict.margin_ratio.item() > 0.99
    assert verdict.correlation.item() > 0.999
    plain = at.MarginProblem.from_selection(tokens, Selection.from_index(tokens, [0, 2]))
    assert at.verify(run, at.solve(plain)).correlation.item() < 0.9
    # Given back, its own solution is one of these tokens.
    assert at.verify(run, verdict.solution).margin_ratio.item() == verdict.margin_ratio.item()


def test_rows_of_equal_scores_only_predict_nothing():
    tokens = with_third_token(1.0)
    found = predict(tokens, head=at.LinearHead([0.0, 0.0]), head_trained=False)
    assert found.kind == ["none"]
    assert "no direction is predicted" in found.why[0]


def test_tokens_that_attention_cannot_tell_apart_are_kept_equal():
    keys = np.array([[[0, 0], [1, 1], [1, 1]], [[0, 0], [1, -1], [0, 0.5]]])
    tokens = with_instances(at.Tokens(keys, np.ones((2, 1)), [1.0, -1.0]))
    mask = np.array([[[[False, True, True]], [[False, True, False]]]])
    selection = Selection(mask, mask.sum(-1) > 1)
    trained = what_was_trained(tokens, HEAD, "logistic", head_trained=True)
    found = predicted_problem(tokens, selection, trained, at.Frobenius())
    assert found.solution.problem.equality.sum() == 1
    np.testing.assert_allclose(found.label.solution.W[0], [[0], [1]], atol=1e-9)
