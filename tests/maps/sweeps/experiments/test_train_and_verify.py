"""Training held against the direction predicted, beside a plain loop over train and verify."""

import numpy as np
import pytest

import attractor as at
from attractor.maps.sweeps import Grid, built_in
from attractor.maps.sweeps.experiments.runs import MEASURES, SETTLED
from attractor.maps.sweeps.experiments.train_and_verify import (
    HYPERPARAMETERS,
    LOG_TIME,
    run,
    train_and_verify,
)
from attractor.support.errors import InvalidInputError, TrialStatus
from attractor.training.optimizers.table import registered_optimizers

SIZE = {"n": 3, "T": 4, "d": 5}
INSTANCES = np.array([2, 5, 6])
SEEDS = range(3, 5)


def plain(optimizer, steps, *, initial=None, geometry=None, **settings):
    """Train, and verify at the end."""
    tokens, head = at.datasets.unit_tokens(3, 4, 5, seeds=INSTANCES.tolist())
    trained = at.train(
        tokens, head, optimizer, steps=steps, seeds=2, seed=3, record=[steps], initial=initial,
        **settings,
    )  # fmt: skip
    return trained, at.verify(trained, geometry=geometry)


def test_measures_are_those_of_train_and_verify():
    found = run({"learning_rate": 0.3}, INSTANCES, SEEDS, steps=60, **SIZE)
    trained, verdict = plain(at.normalized_gradient_descent(0.3), 60)
    last = verdict.data.isel(step=-1)
    for name in (
        "margin_ratio", "correlation", "kkt_residual", "selected_probability", "gap",
        "solution_norm", "selection_agreement", "feasible", "locally_optimal",
    ):  # fmt: skip
        assert np.array_equal(found[name], last[name].transpose("instance", "seed")), name
    assert np.array_equal(found["training_loss"], trained.data["loss"].isel(step=-1))
    W = trained.data["W"].isel(step=-1) if "step" in trained.data["W"].dims else trained.data["W"]
    assert np.allclose(found["norm"], np.linalg.norm(W, axis=(-2, -1)), rtol=1e-14)
    assert np.array_equal(found["as_predicted"] == 1, last["selection_agreement"] == 1)
    assert np.array_equal(found["log_time"], last["log_time"].transpose("instance", "seed"))
    assert set(found) == set(MEASURES | LOG_TIME) == set(train_and_verify().measures)
    assert {array.shape for array in found.values()} == {(3, 2)}


@pytest.mark.parametrize("rate", [0.1, 1e6])
def test_a_horizon_is_a_run_of_so_many_steps(rate):
    """Also where trials end before it: the first step of 1e6 saturates attention."""
    given = {"optimizer": "gradient descent", "learning_rate": rate}
    horizons = [1, 10, 60]
    together = run(given, INSTANCES, SEEDS, horizons=horizons, **SIZE)
    ended = together["status"] == TrialStatus.BELOW_ROUNDING
    assert not ended[..., 0].any() and ended[..., 1:].all() == (rate == 1e6)
    for place, steps in enumerate(horizons):
        alone = run(given, INSTANCES, SEEDS, steps=steps, **SIZE)
        for name in alone:
            one = together[name][..., place]
            assert np.array_equal(one, alone[name], equal_nan=one.dtype.kind == "f"), name
    assert set(together) == {*alone, *SETTLED}


def test_a_trial_depends_on_its_own_numbers_alone():
    """What is trained: certified solutions may differ in the last bits with what is beside them."""
    several = run({}, INSTANCES, SEEDS, steps=60, **SIZE)
    one = run({}, INSTANCES[1:2], range(4, 5), steps=60, **SIZE)
    for name in ("training_loss", "norm", "selection_agreement", "status"):
        assert one[name][0, 0] == several[name][1, 1], name


def test_hyperparameters_are_those_of_the_optimizer():
    point = {"optimizer": "momentum", "learning_rate": 0.2, "decay": 0.5}
    found = run(point, INSTANCES, SEEDS, steps=60, **SIZE)
    _, verdict = plain(at.momentum(0.2, 0.5), 60)
    assert np.array_equal(found["margin_ratio"], verdict.data["margin_ratio"].isel(step=-1))


@pytest.mark.long
def test_a_norm_that_is_named_is_solved_and_measured_in():
    found = run({"optimizer": "adam", "geometry": "l_inf"}, INSTANCES, SEEDS, steps=60, **SIZE)
    trained, verdict = plain(at.adam(0.1), 60, geometry="l_inf")
    assert np.array_equal(found["margin_ratio"], verdict.data["margin_ratio"].isel(step=-1))
    W = trained.data["W"].transpose("instance", "seed", ..., "row", "column").to_numpy()
    W = W.reshape(3, 2, -1, 5, 5)[:, :, -1]
    assert np.array_equal(found["norm"], np.abs(W).max((-1, -2)))


@pytest.mark.parametrize("parameterization", ["W", "KQ", "p"])
def test_the_initial_scale_multiplies_the_usual_start(parameterization):
    """A scale next to 1 gives a run next to the usual one; one of 0 starts at zero."""
    given = {"parameterization": parameterization, "steps": 3, **SIZE}
    usual = run({"initial_scale": 1.0}, INSTANCES, SEEDS, **given)
    near = run({"initial_scale": 1.0 + 1e-9}, INSTANCES, SEEDS, **given)
    far = run({"initial_scale": 3.0}, INSTANCES, SEEDS, **given)
    assert np.allclose(near["norm"], usual["norm"], rtol=1e-7)
    plainly, _ = plain(at.normalized_gradient_descent(0.1), 3, parameterization=parameterization)
    assert np.array_equal(usual["training_loss"], plainly.data["loss"].isel(step=-1))
    assert (far["norm"] > 1.5 * usual["norm"]).all()


def test_the_time_of_gradient_descent_is_the_sum_of_its_steps():
    given = {"optimizer": "gradient descent", "learning_rate": 0.5}
    found = run(given, INSTANCES, SEEDS, horizons=[4, 20], **SIZE)
    assert np.allclose(found["log_time"], np.log([2.0, 10.0]), rtol=1e-14, atol=0)


def test_factors_of_a_random_matrix_start_from_it():
    """The same W as where W itself is trained, though nothing else of the runs is the same."""
    given = {"start": "matrix", "initial_scale": 7.0, "steps": 3, **SIZE}
    runs = {
        name: run({"parameterization": name}, INSTANCES, SEEDS, **given) for name in ("W", "KQ")
    }
    usual = run({}, INSTANCES, SEEDS, steps=3, initial_scale=7.0, **SIZE)
    for name in usual:
        assert np.array_equal(runs["W"][name], usual[name]), name
    for name in ("initial_norm", "initial_lead"):
        assert np.allclose(runs["KQ"][name], runs["W"][name], rtol=1e-12, atol=0), name
    assert not np.allclose(runs["KQ"]["training_loss"], runs["W"]["training_loss"], rtol=1e-6)


def test_trials_that_diverge_have_a_status_alone():
    overflow = {"optimizer": "mirror descent:p=1.1,normalize=false", "learning_rate": 1e300}
    found = run(overflow, INSTANCES, SEEDS, steps=20, **SIZE)
    lost = found["status"] == TrialStatus.DIVERGED
    assert lost.any()
    for name, (dtype, _) in (MEASURES | LOG_TIME).items():
        missing = np.isnan(found[name]) if dtype == "f8" else found[name] == -1
        assert name == "status" or missing[lost].all(), name


def test_settings_of_an_optimizer_may_be_axes():
    settings = {name for one in registered_optimizers() for name in one.settings}
    others = {"geometry", "normalize", "per_factor", "shape_factor"}
    scheduled = {"learning_rate_exponent", "learning_rate_offset", "weight_decay_steps"}
    assert set(HYPERPARAMETERS) == (settings - others) | {"learning_rate"} | scheduled


@pytest.mark.long
def test_batches_and_their_order_may_be_axes():
    given = {"optimizer": "sign descent", "batch_size": 1, "batch_order": "cyclic"}
    found = run(given, INSTANCES, SEEDS, steps=7, **SIZE)
    trained, _ = plain(at.sign_descent(0.1), 7, batch_size=1, batch_order="cyclic")
    assert np.array_equal(found["training_loss"], trained.data["loss"].isel(step=-1))
    assert {"batch_size", "batch_order", "method", "coefficients"} <= set(
        train_and_verify().compiled_by
    )


def test_schedules_are_axes_of_one_program(compiled):
    given = {"optimizer": "ngd", "learning_rate": 0.3, "weight_decay": 0.1, "steps": 5, **SIZE}
    never = {"learning_rate_exponent": 0.0, "weight_decay_steps": 0}
    found = run(never, INSTANCES, SEEDS, **given)
    count = len(compiled())
    other = run({"learning_rate_exponent": 0.5, "weight_decay_steps": 3}, INSTANCES, SEEDS, **given)
    assert len(compiled()) == count and (other["norm"] != found["norm"]).all()
    plain = run({}, INSTANCES, SEEDS, **given | {"weight_decay": 0.0})
    np.testing.assert_allclose(found["norm"], plain["norm"], rtol=1e-12)


def test_learning_rates_and_starts_compile_nothing():
    """They share chunks, which axes of ``compiled_by`` do not."""
    experiment = train_and_verify(steps=5)
    assert {"learning_rate", "decay", "initial_scale", "steps", "geometry"} <= set(experiment.axes)
    shared = set(experiment.axes) - set(experiment.compiled_by)
    assert {"learning_rate", "decay", "initial_scale", "steps", "geometry", "data"} <= shared
    assert {"optimizer", "n", "T", "d", "p"} <= set(experiment.compiled_by)


@pytest.mark.long
@pytest.mark.parametrize("horizons", [None, [4, 20]])
def test_one_run_is_measured_in_several_norms(horizons):
    """Of keys and queries in another gauge."""
    given = {"parameterization": "KQ", "gauge": 2, "optimizer": "sign descent"}
    ended = {"steps": 20} if horizons is None else {"horizons": horizons}
    norms = ["frobenius", "nuclear", "spectral"]
    together = run(given, INSTANCES, SEEDS, geometries=norms, **ended, **SIZE)
    layer = at.KeyQuery(gauge=2)
    for place, name in enumerate(norms):
        alone = run(given | {"geometry": name}, INSTANCES, SEEDS, **ended, **SIZE)
        assert together.keys() == alone.keys()
        for measure in alone:
            assert np.array_equal(together[measure][..., place], alone[measure], equal_nan=True)
        if horizons is None:
            _, verdict = plain(at.sign_descent(0.1), 20, geometry=name, parameterization=layer)
            ratio = verdict.data.margin_ratio.isel(step=-1).transpose("instance", "seed")
            assert np.array_equal(alone["margin_ratio"], ratio)
    made = built_in("train_and_verify", geometries=norms, **ended)
    assert list(made.along)[-1] == "geometry" and set(made.measures) == set(together)


def test_factors_of_a_random_matrix_are_turned_as_well():
    given = {"parameterization": "KQ", "start": "matrix", "optimizer": "sign descent"}
    given["geometry"] = "frobenius"
    plain, turned = (
        run(given | {"gauge": gauge}, INSTANCES, SEEDS, steps=1, **SIZE) for gauge in (0, 1)
    )
    assert np.allclose(plain["initial_norm"], turned["initial_norm"], rtol=1e-14)
    assert (np.abs(plain["training_loss"] - turned["training_loss"]) > 1e-6).all()


@pytest.mark.parametrize(
    ("axes", "settings", "argument", "words"),
    [
        ({"optimizer": ["sign descent"], "decay": [0.5]}, {}, "optimizer", "no setting 'decay'"),
        ({"optimizer": ["sgd"]}, {}, "optimizer", "Did you mean gd"),
        ({"optimizer": ["os:system"]}, {}, "optimizer", "none is called"),
        ({"learning_rate": [0.0, 0.1]}, {}, "learning_rate", "positive"),
        ({"optimizer": ["adam:eps=1e-3"]}, {}, "geometry", "Name the norm"),
        ({"optimizer": ["lion"]}, {"parameterization": "KQ"}, "geometry", "Name the norm"),
        ({"geometry": ["own", "l_0"]}, {}, "geometry", "at least 1"),
        (
            {"optimizer": ["lion"]},
            {"geometries": ["own"], "parameterization": "KQ"},
            "geometry",
            "Name the norm",
        ),
        ({"geometry": ["own"]}, {"geometries": ["own"]}, "experiment", "two things"),
        ({"optimizer": ["composed"]}, {}, "parameterization", "keys and queries"),
        ({"gauge": [0, 1]}, {}, "gauge", "no factors"),
        ({"gauge": [-1]}, {"parameterization": "KQ"}, "gauge", "out of range"),
        ({"loss": ["cross_entropy"]}, {}, "head", ""),
        ({"loss": ["logistc"]}, {}, "loss", "logistic"),
        ({"initial_scale": [0.0]}, {"parameterization": "KQ"}, "initial", "saddle"),
        ({"start": ["zero"]}, {}, "start", "'parameters', 'matrix'"),
        ({"T": [1, 4]}, {}, "T", "count"),
        ({"steps": [5]}, {"horizons": [5]}, "axes['steps']", "horizons"),
        ({"batch_size": [1, 4]}, {"batch_order": "cyclic"}, "batch_size", "1, 2, 3, 6"),
        ({"n": [6, 3]}, {"batch_size": 4}, "batch_size", "at most 3"),
        ({"batch_order": ["sorted"]}, {"batch_size": 1}, "batch_order", "shuffled"),
        (
            {"optimizer": ["muon"], "coefficients": ["cans"]},
            {"method": "exact"},
            "coefficients",
            "no iterations",
        ),
        ({"rate": [0.1]}, {}, "axes['rate']", "knows no such axis"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_any_work(axes, settings, argument, words):
    with pytest.raises(InvalidInputError) as refused:
        built_in("train_and_verify", **settings).check_grid(Grid(axes, instances=1))
    assert words in str(refused.value)
    assert argument in ("head", refused.value.argument)


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"horizon": [5]}, "horizon"),
        ({"horizons": [5, 3]}, "horizons"),
        ({"horizons": [5], "steps": 5}, "horizons"),
        ({"geometries": []}, "geometries"),
        ({"geometries": ["frobenus"]}, "geometries"),
        ({"geometries": ["own"], "geometry": "own"}, "geometries"),
        ({"steps": 0}, "steps"),
        ({"data": "random"}, "data"),
    ],
)
def test_settings_are_checked_when_the_experiment_is_made(settings, argument):
    with pytest.raises(InvalidInputError) as refused:
        built_in("train_and_verify", **settings)
    assert refused.value.argument == argument


def test_queries_may_be_first_tokens():
    found = run({"data": "first_token_queries"}, INSTANCES, SEEDS, steps=20, **SIZE)
    tokens, head = at.datasets.unit_tokens(3, 4, 5, seeds=INSTANCES.tolist())
    own = at.Tokens.self_attention(tokens.keys, tokens.labels)
    own = at.Tokens(own.keys, own.queries, own.labels, instance_numbers=INSTANCES)
    rule = at.normalized_gradient_descent(0.1)
    trained = at.train(own, head, rule, steps=20, seeds=2, seed=3, record=[20])
    assert np.array_equal(found["training_loss"], trained.data["loss"].isel(step=-1))


@pytest.mark.long
def test_several_attention_heads_are_measured_as_one_matrix():
    given = {"optimizer": "spectral:joined=true", "learning_rate": 0.1, "parameterization": "2 x W"}
    found = run(given, INSTANCES, SEEDS, steps=60, **SIZE)
    trained, verdict = plain(at.joined(at.spectral_descent(0.1)), 60, parameterization="2 x W")
    last = verdict.data.isel(step=-1)
    for name in ("margin_ratio", "solution_norm", "selection_agreement"):
        assert np.array_equal(found[name], last[name].transpose("instance", "seed")), name
    assert np.allclose(found["norm"], last["norm"], rtol=1e-14)
    assert np.isnan(found["gradient_agreement"]).all()
    apart = run(
        given, INSTANCES, SEEDS, steps=60, geometry="spectral", arrangement="block diagonal", **SIZE
    )
    chosen = at.verify(trained, geometry="spectral", arrangement="block diagonal").data
    assert np.array_equal(apart["margin_ratio"], chosen.margin_ratio.isel(step=-1))
    with pytest.raises(InvalidInputError, match="gradient flow is of one alone"):
        built_in("flow_and_verify", log_times=[1.0], parameterization="2 x W").check_grid(
            Grid({"n": [3]}, instances=1)
        )
