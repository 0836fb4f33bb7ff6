"""What each optimizer reaches at the best of several step sizes."""

import numpy as np
import pytest

from attractor.datasets import unit_tokens
from attractor.maps.bias import (
    BiasMatrix,
    bias_matrix,
    load_method,
    median_interval,
    standard_methods,
)
from attractor.maps.bias.best_setting import settings_tried
from attractor.support.errors import InvalidInputError
from attractor.training import polyak_step

STEPS = 2000


@pytest.fixture(scope="module")
def tuned():
    methods = [load_method("sign"), load_method("polyak")]
    return bias_matrix(
        *unit_tokens(3, 4, 5, seeds=12),
        methods=methods,
        mean_steps=lambda method: (0.0001, 0.03),
        norms=["frobenius", "l_inf"],
        steps=STEPS,
    )


@pytest.mark.long
def test_a_row_for_every_setting(tuned):
    assert tuned.methods == ["sign", "polyak"]
    assert [tuned.setting(row) for row in tuned.rows("sign")] == [
        "0.0001", "0.03", "0.1", "0.00227 t^-0.5", "0.682 t^-0.5",
    ]  # fmt: skip
    assert tuned.rows("polyak") == ["polyak"] and tuned.setting("polyak") == ""
    assert tuned.own_norm("sign") == "l_inf"


def test_settings_of_a_mean_step_take_the_same_way():
    method = load_method("sign")
    for setting in settings_tried(method, lambda row: [0.02], (0.0, 0.5, 1.0), 1000):
        if setting.step_size != method.step_size:
            taken = setting.step_size * (np.arange(1.0, 1001) ** -setting.decay).sum()
            assert taken == pytest.approx(20, rel=5e-3)  # three digits of it


def test_a_cell_is_the_best_setting_with_a_joint_interval(tuned):
    for norm in ("frobenius", "l_inf"):
        cell = tuned.cell("sign", norm)
        values = {
            row: tuned.data["margin_ratio"].sel(optimizer=row, norm=norm).values
            for row in tuned.rows("sign")
        }
        medians = {row: np.median(one) for row, one in values.items()}
        assert cell.row == max(medians, key=medians.get)
        assert cell.median == medians[cell.row]
        # Of five settings with 95 % together each has 99 %: of 12 values the second and eleventh
        ends = [median_interval(one, 0.99) for one in values.values()]
        assert (cell.low, cell.high) == (max(e.low for e in ends), max(e.high for e in ends))
        assert ends[0].low == np.sort(values[tuned.rows("sign")[0]])[1]


def test_answers_say_at_which_settings(tuned):
    found = tuned.answer("sign")
    assert found.outcome == "maximizes" and found.norm == "l_inf"
    assert found.settings == {"l_inf": ["0.03", "0.1"]}
    assert "at 2 of 5 settings: 0.03, 0.1" in str(found)
    assert tuned.cell("sign", "l_inf").settled


def test_the_best_step_at_the_end_of_those_tried_is_not_settled(tuned):
    # Frobenius ratios of sign descent come to stand well below one, at the largest step tried.
    cell = tuned.cell("sign", "frobenius")
    assert cell.median < 0.97 and not cell.settled
    assert cell.open


def test_several_norms_at_different_settings_are_said(tuned):
    rows = tuned.rows("sign")
    swapped = tuned.data.copy(deep=True)
    swap = {"optimizer": rows[1]}
    for name in ("margin_ratio", "margin_ratio_halfway"):
        swapped[name].loc[swap] = tuned.data[name].sel(optimizer=rows[1]).values[::-1]
    found = BiasMatrix(swapped).answer("sign")
    assert found.outcome == "depends on the step" and not found.norm
    assert found.settings == {"frobenius": ["0.03"], "l_inf": ["0.1"]}


def test_decay_is_said_once(tuned):
    data = tuned.data.copy(deep=True)
    for name in ("margin_ratio", "margin_ratio_halfway"):  # at rest, short of one
        data[name].loc[{"norm": "frobenius"}] = 0.5
        data[name].loc[{"norm": "l_inf"}] = 0.9
        data[name].loc[{"norm": "l_inf", "optimizer": "sign, step 0.03"}] = 0.98
    data["moves_without_gradient"][:] = True
    found = BiasMatrix(data).answer("sign")
    assert found.outcome == "none of these"
    assert found.reason.count("as weight decay does") == 1
    assert found.remedy == "Take the decay out to see its norm"


def test_a_setting_is_the_run_at_that_step_alone(tuned):
    method = load_method("sign", learning_rate=0.1)
    alone = bias_matrix(
        *unit_tokens(3, 4, 5, seeds=12), methods=[method], norms=["frobenius", "l_inf"], steps=STEPS
    )
    np.testing.assert_array_equal(
        alone.data["margin_ratio"].values[0],
        tuned.data["margin_ratio"].sel(optimizer="sign, step 0.1").values,
    )


def test_prints_and_draws_and_is_kept(tuned, tmp_path):
    words = " ".join(str(tuned).split())
    assert "at the best step" in words and "at 2 of 5 settings" in words
    tuned.save(tmp_path / "matrix.nc")
    again = BiasMatrix.load(tmp_path / "matrix.nc")
    assert again.summary() == tuned.summary()
    assert tuned.plot().axes[0].get_yticklabels()[0].get_text() == "sign"


def test_a_matrix_with_one_setting_is_asked_the_same(tuned):
    (alone,) = tuned.rows("polyak")
    data = tuned.data.sel(optimizer=[alone, "sign, step 0.1"])
    data["setting_of"][:] = ""  # as of a matrix in which each runs at one step size
    one = BiasMatrix(data)
    assert one.methods == [alone, "sign, step 0.1"] and not one.tuned and tuned.tuned
    cell = one.cell("sign, step 0.1", "l_inf")
    assert (cell.median, cell.low, cell.high) == one.ratio("sign, step 0.1", "l_inf")
    assert cell.setting == "0.1" and cell.settled
    assert one.answer("sign, step 0.1") == tuned.answer_at("sign, step 0.1")
    row = one.summary()["optimizers"][1]
    assert row == tuned.summary()["settings"][2]
    assert [one["optimizer"] for one in tuned.summary()["optimizers"]] == ["sign", "polyak"]


def test_rows_of_several_settings_go_on_while_their_answers_may_change(tuned):
    found = bias_matrix(
        *unit_tokens(3, 4, 5, seeds=12),
        methods=[load_method("sign", learning_rate=0.03)],
        mean_steps=lambda method: (0.1,),
        decays=(0.0,),
        norms=["frobenius", "l_inf"],
        steps=STEPS // 4,
        most_steps=STEPS,
    )
    steps = dict(zip(found.rows("sign"), found.data["steps"].values.tolist(), strict=True))
    assert steps == {"sign, step 0.03": STEPS, "sign, step 0.1": STEPS // 2}
    np.testing.assert_array_equal(
        found.data["margin_ratio"].sel(optimizer="sign, step 0.03"),
        tuned.data["margin_ratio"].sel(optimizer="sign, step 0.03"),
    )


def test_too_few_data_sets_leave_cells_open():
    few = bias_matrix(
        *unit_tokens(3, 4, 5, seeds=3),
        methods=[load_method("sign")],
        mean_steps=lambda method: (0.1,),
        norms=["l_inf"],
        steps=STEPS,
    )
    assert "too few" in few.cell("sign", "l_inf").open
    found = few.answer("sign")
    # Two settings in one norm: 97.5 % each, of 2^-6 and more on both sides.
    assert found.outcome == "not settled" and found.enough_data_sets == 7


def test_every_row_of_the_matrix_but_one_can_have_another_step():
    fixed = [row.name for row in standard_methods("paper") if row.with_step_size is None]
    assert fixed == ["Polyak step"]
    assert polyak_step().settings  # its scale is no step size


def test_a_factory_that_takes_no_schedule_is_run_at_constant_steps(tmp_path, monkeypatch):
    (tmp_path / "my_numbers.py").write_text(
        "import optax\n\ndef negated(learning_rate=0.1):\n"
        "    return optax.chain(optax.scale_by_sign(), optax.scale(-1.0 * learning_rate))\n"
    )
    monkeypatch.chdir(tmp_path)
    method = load_method("my_numbers:negated")
    assert {row.decay for row in settings_tried(method, lambda row: [0.3], (0.0, 0.5), 100)} == {
        0.0
    }
    both = settings_tried(load_method("optax:sign_sgd"), lambda row: [0.3], (0.0, 0.5), 100)
    assert {row.decay for row in both} == {0.0, 0.5}


def test_unknown_names_are_refused(tuned):
    with pytest.raises(InvalidInputError, match="method"):
        tuned.cell("nobody", "l_inf")
    with pytest.raises(InvalidInputError, match="norm"):
        tuned.cell("sign", "l_7")
    with pytest.raises(InvalidInputError, match="row"):
        tuned.ratio("sign", "l_inf")
    data = unit_tokens(3, 4, 5, seeds=3)
    for wrong in ({"mean_steps": 0.1}, {"mean_steps": lambda row: (0.1,), "decays": (-1.0,)}):
        with pytest.raises(InvalidInputError, match=[*wrong][-1]):
            bias_matrix(*data, methods=[load_method("sign")], **wrong)
