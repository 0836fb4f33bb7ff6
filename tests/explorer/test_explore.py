"""What is read out of a state is what the library computes of the tokens given."""

import numpy as np
import pytest

import attractor as at
from attractor.explorer import Explorer, answers, state_of
from attractor.explorer.answers import report_on
from attractor.explorer.building import _trained_head
from attractor.support.errors import InvalidInputError


def index_of(solution):
    return solution.problem.selection.index


def test_the_solution_is_that_of_the_tokens_given(flat):
    tokens, head = flat
    explorer = Explorer(state_of(tokens, head, "md:p=1.5"))
    wanted = at.solve(
        at.MarginProblem.from_selection(tokens, at.optimal_tokens(tokens, head)), at.Lp(1.5)
    )
    found = explorer.solution()
    assert found.value == pytest.approx(wanted.value, rel=1e-8)
    np.testing.assert_allclose(found.W, wanted.W, atol=1e-6)
    assert explorer.tokens.single_token_rows == 0 and not explorer.tokens.mask.all()
    other = Explorer(state_of(tokens, head, norm="l_inf", selection=[1, 1])).solution()
    assert index_of(other).tolist() == [1, 1] and other.geometry == at.Lp(np.inf)


@pytest.mark.long
def test_training_is_that_of_the_tokens_given(deep):
    tokens, head = deep
    start = np.arange(12.0).reshape(4, 3) / 12
    options = {"loss": "exponential", "steps": 30}
    optimizers = [at.gradient_descent(0.5, weight_decay=0.01), at.sign_descent(0.1)]
    explorer = Explorer(state_of(tokens, head, optimizers, start=start, **options))
    assert [o.name for o in explorer.optimizers] == ["gradient descent", "sign descent"]
    for number, optimizer in enumerate(optimizers):
        wanted = at.train(tokens, head, optimizer, initial=start, **options)
        found = explorer.train(number)
        np.testing.assert_allclose(found.W(), wanted.W(), rtol=1e-10)
        path = explorer.state["paths"][number]
        assert path["steps"] == wanted.data.step.values.tolist()
        np.testing.assert_allclose(np.reshape(path["points"], (-1, 4, 3)), wanted.data.W[0, 0])
    with pytest.raises(InvalidInputError, match=r"^number: "):
        explorer.train(2)


@pytest.mark.long
@pytest.mark.parametrize("what", ["KQ", "(v, p)"])
def test_factors_and_heads_are_trained_from_where_they_start(what):
    rng = np.random.default_rng(1)
    tokens = at.Tokens(rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 2)), [1, -1])
    head = at.LinearHead([0.3, -0.2])
    start = {"KQ": {"K": rng.normal(size=(2, 2)), "Q": rng.normal(size=(2, 2))}, "(v, p)": [0.1, 1]}
    given = {"parameterization": what, "steps": 5}
    explorer = Explorer(state_of(tokens, head, start=start[what], **given))
    wanted = at.train(
        tokens, head, at.normalized_gradient_descent(0.1), initial=start[what], **given
    )
    np.testing.assert_allclose(explorer.train().W(), wanted.W(), rtol=1e-12)
    report = report_on(explorer.state)
    assert len(report["ends"][0]) == len(explorer.state["start"])
    if what == "KQ":
        assert explorer.solution().geometry == at.Nuclear()
        assert report["value"] == explorer.solution().value and report["gap"] < 1e-8
    else:
        end = at.LinearHead(report["ends"][0][2:])
        assert explorer.solution().problem.selection == at.optimal_tokens(explorer.tokens, end)
        np.testing.assert_allclose(explorer.head.weight, head.weight)


@pytest.mark.long
def test_what_the_library_refuses_is_a_message(flat):
    state = state_of(*flat, steps=3) | {"id": "third"}
    keys = [[[1, 0], [0, 0]], [[-1, 0], [0, 0]]]  # for which no direction is right
    infeasible = state | {"keys": keys, "scores": [[1, 0], [1, 0]]}
    report = report_on(infeasible)
    assert report["state"] == "third" and report["status"] == "infeasible"
    assert "value" not in report and len(report["ends"][0]) == 2
    zero = state_of(at.Tokens(keys, keys[0], [1, 1]), at.LinearHead([1, 0]), parameterization="KQ")
    zero["start"] = [0] * 8
    report = report_on(zero | {"norm": "nuclear"})
    assert "saddle point" in report["message"] and "ends" not in report
    unknown = zero | {"trainings": [{"optimizer": "sign_descent", "learning_rate": 1}]}
    assert (
        "norm: none is known for sign descent of KQ"
        in report_on(unknown | {"start": [1] * 8})["message"]
    )


TOKENS = at.Tokens([[[1, 0], [0, 1]], [[-1, 1], [0, -2]]], [[1, 0], [0, 1]], [1, -1])
HEAD = at.LinearHead([1, 0])
FAR = np.random.default_rng(0).normal(size=(2, 2, 40))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tokens": 3}, "tokens: 3 is not Tokens"),
        ({"tokens": at.Tokens(np.ones((2, 1, 2, 2)), np.ones((2, 1, 2)), np.ones((2, 1)))},
         r"tokens: they are 2 data sets. Give one, such as tokens\[0\]"),
        ({"tokens": at.Tokens.causal(TOKENS.keys, np.ones((2, 2)))}, "tokens: each seq"),
        ({"tokens": at.Tokens(np.ones((25, 2, 2)), np.ones((25, 2)), np.ones(25))},
         "tokens: they are 25 sequences with 50 tokens. A page shows at most 24 .* 240 tokens"),
        ({"tokens": at.Tokens(np.ones((1, 241, 2)), np.ones((1, 2)), [1])}, "tokens: they are"),
        ({"tokens": at.Tokens(FAR, FAR[:, 0], [1, 1]), "head": at.LinearHead(np.ones(40))},
         "tokens: 1,600 numbers would be trained"),
        ({"tokens": at.Tokens(np.ones((1, 2, 1)), [[1]], [1]), "head": at.LinearHead([1])},
         "tokens: keys have one number"),
        ({"tokens": at.Tokens(TOKENS.keys, TOKENS.queries)}, "tokens: they carry no labels"),
        ({"tokens": at.Tokens(TOKENS.keys, TOKENS.queries, [1, 2])}, "tokens: some labels"),
        ({"tokens": at.Tokens(TOKENS.keys, TOKENS.queries, [1, 1], weights=[1, 2])},
         "tokens: some rows count more"),
        ({"head": lambda x: x[..., 0]}, "head: it is not linear"),
        ({"head": at.LinearHead([1.0])}, "head: .* dimension 1"),
        ({"optimizer": "adam"}, "optimizer: a page does not have Adam"),
        ({"optimizer": at.normalized_gradient_descent(0.1, eps=1e-3)}, "optimizer: .* with eps"),
        ({"optimizer": at.gradient_descent([0.1, 0.2])}, "optimizer: .* no numbers"),
        ({"optimizer": ["ngd", "gd", "md"]}, "optimizer: there are 3"),
        ({"optimizer": 3}, "optimizer: int is not Optimizer"),
        ({"parameterization": "(v, W)"}, "parameterization: a page does not train"),
        ({"parameterization": at.KeyQuery(1)}, "parameterization: its factors have 1 columns"),
        ({"parameterization": "WW"}, "parameterization: there is none"),
        ({"start": [1, 2, 3]}, "start: "),
        ({"steps": 100_001}, "steps: 100001 is too many"),
        ({"loss": "squared"}, "loss: 'squared' is not known"),
        ({"norm": "l_0.9"}, "norm: "),
        ({"norm": "euclid"}, "norm: none is called"),
        ({"selection": [0]}, "selection: "),
        ({"selection": [0, 2]}, "selection: "),
        ({"kernel": "rough"}, "kernel: 'rough' is not known"),
        ({"kernel": ["exact", "plain"], "optimizer": ["ngd"] * 3}, "optimizer: there are 3"),
        ({"theme": "pink"}, "theme: 'pink' is not known"),
        ({"title": ""}, "title: "),
        ({"title": "a" * 201}, "title: it has 201 characters"),
    ],
)  # fmt: skip
def test_what_a_page_cannot_show_is_refused_by_its_name(given, message):
    with pytest.raises(InvalidInputError, match=f"^{message}"):
        state_of(**{"tokens": TOKENS, "head": HEAD} | given)


def test_tied_tokens_are_shown(recwarn):
    tied = at.Tokens.prompt_vector([[[1.0, 0], [1, 1], [0, 0]]], labels=[1])
    state = state_of(tied, at.LinearHead([1, 0]))
    assert np.isfinite(answers.solution_of(state).value)


def test_several_data_sets_of_one_are_one(flat):
    tokens, head = flat
    one = at.Tokens(tokens.keys[None], tokens.queries[None], tokens.labels[None], tokens.mask[None])
    assert state_of(one, head) == state_of(tokens, head)


@pytest.mark.parametrize(("d", "own"), [(3, True), (2, False)])
def test_a_trained_head_is_shown_for_tokens_of_two_numbers_that_are_their_values(d, own):
    keys = np.random.default_rng(0).normal(size=(2, 3, d))
    tokens = at.Tokens(keys, np.ones((2, 1)), [1, -1], values=keys if own else keys + 1)
    with pytest.raises(InvalidInputError, match="the head is trained, which a page shows for"):
        _trained_head(tokens, at.LinearHead(np.ones(d)))
