"""Two results side by side: what is paired, and what an interval may say."""

import io
import json
import math

import numpy as np
import pytest
import xarray as xr
from rich.console import Console
from scipy.stats import binom

import attractor as at
from attractor.analysis.bias import BiasMatrix
from attractor.provenance import read_provenance
from attractor.report._compare import _number
from attractor.report.run_comparison import in_words
from attractor.report.write import write_verdict_data


def trials(values, instances=None, seeds=None):
    values = np.asarray(values, float)
    return xr.DataArray(
        values,
        dims=("instance", "seed"),
        coords={
            "instance": range(values.shape[0]) if instances is None else instances,
            "seed": range(values.shape[1]) if seeds is None else seeds,
        },
    )


def test_trials_on_the_same_data_are_paired(rng):
    shared = 10 * rng.normal(size=(30, 2))
    first, second = trials(shared), trials(shared + 0.5 + 0.1 * rng.normal(size=(30, 2)))
    paired, alone = (_number("x", first, second, together) for together in (True, False))
    assert paired.pairs == 30 and alone.pairs == 0
    expected = np.median((second - first).mean("seed"))
    assert paired.difference.median == pytest.approx(expected)
    assert paired.word == "higher" and alone.word == "open"
    width = alone.difference.high - alone.difference.low
    assert width > 10 * (paired.difference.high - paired.difference.low)


@pytest.mark.parametrize("together", [True, False])
def test_intervals_hold_as_often_as_they_say(rng, together):
    """Of two laws with medians 0 and 1, of which neither is normal."""
    held, runs = 0, 200
    for _ in range(runs):
        start = rng.standard_cauchy((21, 1)) * together
        first = trials(start + rng.exponential(size=(21, 1)) - math.log(2))
        second = trials(start + rng.uniform(size=(21, 1)) + 0.5)
        found = _number("x", first, second, together).difference
        # Paired, the median of the difference of the two is that of 1 + U - 1/2 - E + log 2.
        held += found.low <= (PAIRED if together else 1.0) <= found.high
    assert held >= binom.ppf(1e-4, runs, 0.95)


def _median_of_difference():
    from scipy.optimize import brentq

    def below(m):  # P(U - E <= m) = E_U[P(E >= U - m)], for m in (-1, 1)
        u = np.linspace(0, 1, 100_001)
        return np.trapezoid(np.exp(-np.maximum(u - m, 0)), u) - 0.5

    return brentq(below, -1, 1) + 0.5 + math.log(2)


PAIRED = _median_of_difference()


def test_only_what_both_have_is_paired():
    first = trials(np.ones((3, 2)), instances=[0, 1, 2], seeds=[0, 1])
    second = trials(np.full((3, 2), 4.0), instances=[1, 2, 5], seeds=[7, 8])
    assert _number("x", first, second, True).pairs == 2  # data sets, with seeds of their own
    one = trials(np.ones((1, 4)))
    other = trials(np.zeros((1, 4)), seeds=[2, 3, 4, 5])
    assert _number("x", one, other, True).pairs == 2  # seeds
    assert _number("x", one, trials(np.zeros((1, 2)), seeds=[8, 9]), True).pairs == 0


def test_two_verdicts_and_their_reports(verdict, feasible, tmp_path):
    other = at.verify(at.train(*feasible, at.normalized_gradient_descent(0.5), steps=300, seeds=3))
    found = at.compare(verdict, other, names=["long", "short"])
    assert found.settings["optimizer learning rate"] == ("1.0", "0.5")
    by_name = {one.name: one for one in found.numbers}
    ends = [one.margin_ratio.values.ravel() for one in (verdict, other)]
    ratio = by_name["normalized margin ratio"]
    assert ratio.pairs == 3 and ratio.difference.median == np.median(ends[1] - ends[0])
    assert np.isinf(ratio.difference.low) and "(too few)" in str(found)  # of three seeds
    found.report(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "short against long" in page and page.count("<figure>") == 2
    stored = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert stored.pop("provenance") and stored == found.summary()
    for name, one in (("a", verdict), ("b", other)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text("{}")
        write_verdict_data(tmp_path / name, one)
    again = at.compare(tmp_path / "a", tmp_path / "b")
    assert again.names == ("a", "b") and "not known whether their data agree" in again.pairing
    medians = {one.name: one.second.median for one in again.numbers}
    assert medians["normalized margin ratio"] == pytest.approx(ratio.second.median)


def matrix(ratios, **attributes):
    """Margin ratios of one optimizer, over norms and data sets."""
    ratios = np.asarray(ratios)
    data = xr.Dataset(
        {
            "margin_ratio": (("optimizer", "norm", "instance"), ratios[None]),
            "compared": ("norm", [True, True]),
            **{name: ("optimizer", ["s"]) for name in ("settings", "parameterization", "reads")},
            "steps": ("optimizer", [9]),
        },
        coords={
            "optimizer": ["mine"],
            "norm": ["frobenius", "l_1"],
            "instance": range(ratios.shape[1]),
        },
        attrs={"n": 6, "seed": 0} | attributes,
    )
    return BiasMatrix(data)


def test_two_matrices_in_every_norm(rng, tmp_path):
    ratios = rng.uniform(size=(2, 20))
    shifted = ratios + np.array([[0.25], [0.0]])
    found = at.compare(matrix(ratios), matrix(shifted))
    words = {one.name: one.word for one in found.numbers}
    assert words == {
        "mine: margin ratio in frobenius": "higher",
        "mine: margin ratio in l_1": "the same",
    }
    assert found.numbers[0].difference.median == pytest.approx(0.25)
    found.report(tmp_path / "out")
    assert (tmp_path / "out" / "ratios.svg").is_file()
    other = at.compare(matrix(ratios), matrix(shifted, seed=1))
    assert "Not paired" in other.pairing and other.settings["seed"] == ("0", "1")


def test_numbers_of_any_report(tmp_path):
    for name, value in (("a", 1.0), ("b", 3.5)):
        (tmp_path / name).mkdir()
        contents = {"horizon": value, "same": 2, "rows": [{"rate": value}], "word": name}
        (tmp_path / name / "summary.json").write_text(json.dumps(contents))
    found = at.compare(tmp_path / "a", tmp_path / "b")
    assert {one.name: one.difference.median for one in found.numbers} == {
        "horizon": 2.5,
        "rows 0 rate": 2.5,
    }
    assert found.texts == {"word": ("a", "b")}
    assert at.compare(tmp_path / "a", tmp_path / "a").findings() == ["Nothing differs."]


@pytest.mark.parametrize(
    ("second", "words"),
    [(3, "it is a int"), ("nowhere", "there is no report in"), ("a", "it is of kind summary")],
)
def test_what_cannot_be_compared(verdict, tmp_path, second, words):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "summary.json").write_text("{}")
    given = tmp_path / second if isinstance(second, str) else second
    with pytest.raises(at.InvalidInputError, match=f"^second: {words}"):
        at.compare(verdict, given)


def test_more_data_sets_of_the_same_matrix(rng):
    ratios = rng.uniform(0.3, 0.4, size=(2, 20))
    more = np.concatenate([ratios, rng.uniform(0.3, 0.4, size=(2, 10))], 1)
    ratios, more = (one + np.array([[0.6], [0]]) for one in (ratios[:, :5], more))
    sides = [matrix(one) for one in (ratios, more)]
    for one in sides:
        trials = ("optimizer", "instance")
        one.data["trained"] = (trials, np.ones((1, one.data.sizes["instance"]), bool))
        one.data["movement"] = (trials, np.ones((1, one.data.sizes["instance"])))
        one.data["margin_ratio_halfway"] = one.data["margin_ratio"]
        one.data["own_norm"] = ("optimizer", [""])
    found = at.compare(*sides)
    assert "Of 5 and 30 data sets 5 are on both sides" in found.pairing
    assert found.texts["answer"][0] == "not settled" != found.texts["answer"][1]
    assert any(line.startswith("answer: not settled in first") for line in found.findings())


def test_what_agrees_pair_by_pair_is_the_same_and_intervals_stay_whole(rng):
    ratios = rng.uniform(size=(2, 3))  # too few data sets for an interval
    found = at.compare(matrix(ratios), matrix(ratios))
    assert [one.word for one in found.numbers] == ["the same", "the same"]
    assert found.findings() == ["Nothing differs."]
    found = at.compare(matrix(ratios), matrix(ratios + np.array([[0], [0.5]])))
    assert found.findings()[-1] == "1 of 2 numbers are exactly the same."
    ratios = rng.uniform(size=(2, 20))
    found = at.compare(matrix(ratios), matrix(ratios + 0.1234, seed=1))
    for width in (80, 200):
        stream = io.StringIO()
        found.print_to(Console(file=stream, width=width))
        for one in found.numbers:
            assert in_words(one.difference).partition(" ")[2] in stream.getvalue()


def test_a_page_says_which_results_it_compares(tmp_path):
    for name, value in (("a", 1.0), ("b", 2.0), ("c", 2.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(json.dumps({"horizon": value}))
    made = {}
    for first, second in ("ab", "ac", "ba"):
        at.compare(tmp_path / first, tmp_path / second).report(tmp_path / "out")
        made[first + second] = read_provenance(tmp_path / "out" / "report.html")
    assert made["ab"].name == "compare" and made["ab"].kind == "report"
    assert made["ab"].data == made["ac"].data != made["ba"].data
