import runpy
from pathlib import Path

import numpy as np
import pytest
from sizes import USUAL, drawn

import attractor as at
from attractor.support.errors import InvalidInputError
from attractor.training.optimizers import (
    adam,
    get_optimizer,
    gradient_descent,
    mirror_descent,
    normalized_gradient_descent,
    polyak_step,
    registered_optimizers,
    schatten_mirror_descent,
    sign_descent,
    spectral_descent,
    steepest_descent,
    table,
)
from attractor.training.optimizers.table import register_optimizer, spelling_of


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("gradient descent", gradient_descent(0.1)),
        ("gd", gradient_descent(0.1)),
        ("normalized gradient descent", normalized_gradient_descent(0.1)),
        ("ngd:per_factor=true", normalized_gradient_descent(0.1, per_factor=True)),
        ("ngd:weight_decay=1e-3", normalized_gradient_descent(0.1, weight_decay=1e-3)),
        ("md", mirror_descent(0.1)),
        ("md:p=3", mirror_descent(0.1, 3)),
        ("mirror descent:p=1.75, normalize=false", mirror_descent(0.1, 1.75, normalize=False)),
        ("smd:p=1.5", schatten_mirror_descent(0.1, 1.5)),
        ("sign", sign_descent(0.1)),
        ("spectral:method=newton-schulz", spectral_descent(0.1, method="newton-schulz")),
        ("steepest:geometry=l_3", steepest_descent(0.1, "l_3")),
    ],
)  # fmt: skip
def test_names_lead_to_optimizers(name, wanted):
    assert get_optimizer(name, 0.1) is wanted


def test_every_registered_name_leads_to_its_own_factory():
    for entry in registered_optimizers():
        needed = {"geometry": "spectral"} if "geometry" in entry.settings else {}
        rate = (0.1,) if entry.takes_learning_rate else ()
        for name in entry.names:
            assert get_optimizer(name, *rate, **needed) is entry.maker(*rate, **needed)
    names = [form for entry in registered_optimizers() for form in entry.names]
    assert len(set(names)) == len(names)


def test_settings_given_apart_stand_over_those_in_the_name():
    assert get_optimizer("md:p=1.75", 0.1, p=3) is mirror_descent(0.1, 3)
    optimizer = sign_descent(0.1)
    assert get_optimizer(optimizer) is optimizer


def test_a_learning_rate_in_the_name():
    assert get_optimizer("ngd:learning_rate=0.3") is normalized_gradient_descent(0.3)
    assert get_optimizer("md:p=3,learning_rate=2") is mirror_descent(2, 3)
    assert get_optimizer("ngd:learning_rate=0.3", 0.1) is normalized_gradient_descent(0.1)
    with pytest.raises(InvalidInputError, match="Polyak step has none"):
        get_optimizer("polyak:learning_rate=1")


def test_polyak_has_no_learning_rate():
    assert get_optimizer("polyak") is polyak_step()
    assert get_optimizer("polyak:scale=0.5") is polyak_step(0.5)
    with pytest.raises(InvalidInputError, match="learning_rate: Polyak step has none"):
        get_optimizer("polyak", 0.1)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("adamant", "none is called 'adamant'.*Did you mean adam.*mirror descent.*md"),
        (3, "none is called"),
        ("md-1.75", "none is called .md-1.75..*settings follow a colon: name:key=value"),
        ("MD", "none is called 'MD'.*Did you mean md"),
        ("sign_descent", "Did you mean sign descent"),
        ("joined muon", "none is called"),
        ("muon:joined=2", "joined: 2 is neither"),
        ("ngd:learning-rate=1", "no setting 'learning-rate'.*Did you mean learning_rate"),
        ("gd:momentum=0.9", "no setting 'momentum'"),
        ("md:p", "sets nothing"),
        ("md:p=", "sets nothing"),
        ("md:p=high", "'high' is not a number"),
        ("md:p=0.5", "above 1"),
        ("md:normalize=2", "neither True nor False"),
        ("steepest", "needs geometry"),
        ("steepest:geometry=round", "geometry: none is called 'round'"),
        ("spectral:iterations=2.5", "iterations"),
    ],
)
def test_names_that_say_nothing_known_are_refused(name, says):
    with pytest.raises(InvalidInputError, match=says):
        get_optimizer(name, 0.1)


def test_a_learning_rate_is_asked_for():
    with pytest.raises(InvalidInputError, match="learning_rate"):
        get_optimizer("gd")


def test_equal_settings_stay_one_optimizer_however_many_others_there_are():
    """So that what is compiled for it is compiled for good."""
    first = mirror_descent(0.1, 1.75)
    for step in range(300):
        mirror_descent(1.0 + step, 1.75)
    assert mirror_descent(0.1, 1.75) is first


def test_columns_say_norm_and_scale_of_gradients_by_default():
    rows = {row.name: (row.norm, row.gradient_scale) for row in registered_optimizers()}
    assert rows["gradient descent"] == (at.Frobenius(), "absolute")
    assert rows["sign descent"] == (at.Lp(np.inf), "per_entry")
    assert rows["Adam"] == (adam(0.1).geometry, adam(0.1).gradient_scale)
    assert rows["steepest descent"] == (None, None)  # which the geometry says


def test_what_a_run_records_is_written_as_a_name_with_settings():
    ends = at.muon(0.1, nesterov=False, weight_decay=at.until(9, 0.1))
    for optimizer in (mirror_descent(0.1, 3, normalize=False), at.joined(ends)):
        again = get_optimizer(spelling_of(optimizer.name, optimizer.settings))
        assert repr(again) == repr(optimizer) and again.geometry == optimizer.geometry


def test_an_optimizer_of_ones_own_is_a_row(monkeypatch):
    monkeypatch.setattr(table, "_TABLE", {**table._TABLE})
    own = runpy.run_path(str(Path(__file__).with_name("own_optimizer.py")))
    clipped_descent = own["clipped_descent"]
    row = registered_optimizers()[-1]
    assert (row.maker, row.norm, row.gradient_scale) == (clipped_descent, None, "absolute")
    assert get_optimizer("clipped:bound=0.5", 0.1) is clipped_descent(0.1, 0.5)
    several = get_optimizer("clipped:learning_rate_exponent=0.5", [0.1, 0.2], bound=[0.1, 0.2])
    assert list(several.axes) == ["learning_rate", "bound"]
    tokens, head = drawn(USUAL)
    run = at.train(tokens, head, get_optimizer("clipped:twice=true", 0.1), steps=3)
    assert run.optimizer_name == "clipped descent"
    assert get_optimizer(
        spelling_of(run.optimizer_name, run.settings["optimizer"]), twice=True
    ) is clipped_descent(0.1, twice=True)
    for bad, says in (
        ("bound=high", "'high' is not"),
        ("twice=2", "twice: 2 is"),
        ("bond=1", "bound"),
    ):
        with pytest.raises(InvalidInputError, match=says):
            get_optimizer(f"clipped:{bad}", 0.1)


def test_no_name_is_taken_twice():
    with pytest.raises(
        InvalidInputError, match="name: 'ngd' is that of normalized gradient descent"
    ):
        register_optimizer("another", "ngd")
    with pytest.raises(InvalidInputError, match="checks: there are no hyperparameters"):
        register_optimizer("another", depth=int)
