"""Verdicts of several attention heads, together and by head."""

import numpy as np
import pytest
from sizes import USUAL, drawn

import attractor as at
from attractor.support.errors import InvalidInputError


@pytest.fixture(scope="module")
def data():
    tokens, head = drawn(USUAL)
    return tokens, [head, at.LinearHead(head.weight[:, ::-1])]


@pytest.fixture(scope="module")
def run(data):
    return at.train(
        *data, at.normalized_gradient_descent(0.1), steps=2000, seeds=2, record=[0, 200, 2000],
        parameterization="2 x W",
    )  # fmt: skip


@pytest.fixture(scope="module")
def verdict(run):
    return at.verify(run)


def test_one_head_has_the_verdict_of_a_run_without_that_axis(data):
    tokens, (head, _) = data
    settings = {"steps": 100, "record": [0, 100]}
    one, several = (
        at.verify(
            at.train(tokens, head, at.gradient_descent(5.0), parameterization=name, **settings)
        )
        for name in ("W", "1 x W")
    )
    for name in one.data.data_vars:
        found = several.data[name]
        if "attention_head" in found.dims:
            found = found.isel(attention_head=0)
        assert np.array_equal(found.values, one.data[name].values), name
    assert np.array_equal(several.data.margin_ratio_by_head[..., 0], one.data.margin_ratio)


@pytest.mark.long
def test_the_stack_is_measured_by_its_definition(run, verdict, data):
    tokens, _ = data
    W = run.W()
    for i, s in np.ndindex(2, 2):
        kept = [at.attended_tokens(tokens[i], W[i, s, h]) for h in (0, 1)]
        alone = [at.solve(at.MarginProblem.from_selection(tokens[i], one)) for one in kept]
        worst = min(one.problem.margins(W[i, s, h]).min() for h, one in enumerate(alone))
        value = np.hypot(*[one.value for one in alone])
        expected = worst / np.linalg.norm(W[i, s]) * value
        assert float(verdict.margin_ratio[i, s]) == pytest.approx(expected, rel=1e-9)
        for h, one in enumerate(alone):
            own = one.problem.margins(W[i, s, h]).min() / np.linalg.norm(W[i, s, h]) * one.value
            found = float(verdict.data.margin_ratio_by_head[i, s, -1, h])
            assert found == pytest.approx(own, rel=1e-9)
            assert np.array_equal(verdict.data.reached[i, s, h, :, 0], kept[h].index)
    assert (verdict.margin_ratio > 0.93).all() and verdict.errors == []
    assert verdict.data.predicted.dims == ("instance", "attention_head", "sequence", "query")
    assert "log_excess_loss" not in verdict.data  # the loss is that of the sum of heads


def test_what_may_be_asked_of_a_verdict_by_heads(run, verdict, data, tmp_path):
    tokens, heads = data
    summary = verdict.summary()
    assert len(summary["margin_ratio_by_head"]) == 2
    assert "stacked" in verdict.why and "attention head" in str(verdict)
    verdict.to_json(tmp_path / "verdict.json")
    alone = at.verify(run.attention_head(1), geometry="nuclear")
    assert alone.data.reached.dims == ("instance", "seed", "sequence", "query")
    chosen = at.verify(run, geometry="spectral", arrangement="side by side")
    problem = at.MarginProblem.from_heads(
        tokens, at.optimal_tokens(tokens, at.PredictionHeads(heads)), arrangement="side by side"
    )
    given = at.verify(run, at.solve(problem, "spectral"))
    same = (verdict.selection_agreement == 1).values
    assert same.any()
    assert given.margin_ratio.values[same] == pytest.approx(chosen.margin_ratio.values[same], 1e-6)
    last = at.train(
        tokens, heads, at.normalized_gradient_descent(0.1), steps=5, record=[0, 5], weights="last",
        parameterization="2 x W",
    ).attention_head(0)  # fmt: skip
    assert np.isnan(last.data.norm[..., 0]).all()
    assert np.allclose(last.data.norm[..., 1], np.linalg.norm(last.W(), axis=(-2, -1)))
    with pytest.raises(InvalidInputError, match="2 attention heads"):
        run.attention_head(2)
    with pytest.raises(InvalidInputError, match="arrangement"):
        at.verify(run.attention_head(0), arrangement="stacked")


def test_heads_that_are_trained_beside_them_have_no_statement(data):
    run = at.train(
        *data, at.normalized_gradient_descent([0.1, 0.2]), steps=20, record=[0, 20],
        parameterization="v, 2 x W",
    )  # fmt: skip
    verdict = at.verify(run)
    assert verdict.data.margin_ratio_by_head.dims == (
        "learning_rate", "instance", "seed", "step", "attention_head",
    )  # fmt: skip
    assert "predictions of 2 attention heads are added" in verdict.why
    assert "head_weight" in run.attention_head(0).data


def test_pictures_are_drawn_by_head(run, verdict):
    figure = run.plot()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "attention head 0", "attention head 1",
    ]  # fmt: skip
    loss, norm, _ = figure.axes
    assert loss.get_ylabel() == "training loss, of all heads"
    drawn = [
        line for line in norm.lines if line.get_label() in ("attention head 0", "attention head 1")
    ]
    assert len(drawn) == 2
    (legend,) = verdict.plot().legends
    assert legend.get_texts()[0].get_text() == "all heads"
    before = at.report.write.attention_weights(run.tokens[0], run.W()[0, 0])
    figure = at.plots.attention_figure(before, before, None)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert "before training, attention head 0" in titles
    assert "after training, attention head 1" in titles
