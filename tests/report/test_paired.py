"""Two results side by side: what is aligned and paired, and what an interval may say."""

import io
import json
import math

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from rich.console import Console
from scipy.stats import binom
from sizes import USUAL, drawn

import attractor as at
from attractor.maps import labeled
from attractor.maps.bias import BiasMatrix
from attractor.maps.comparison import write_comparison
from attractor.report.write import write_verdict_data
from attractor.results.provenance import read_provenance


def trials(values, instances=None, seeds=None, **attributes):
    values = np.asarray(values, float)
    coordinates = {
        "instance": range(values.shape[0]) if instances is None else instances,
        "seed": range(values.shape[1]) if seeds is None else seeds,
    }
    return xr.Dataset({"x": (("instance", "seed"), values)}, coordinates, attributes)


def test_trials_on_the_same_data_are_paired(rng):
    shared = 10 * rng.normal(size=(30, 2))
    first, second = shared, shared + 0.5 + 0.1 * rng.normal(size=(30, 2))
    found = at.paired(trials(first), trials(second))
    row, alone = found.table.loc["x"], at.paired(trials(first, seed=0), trials(second, seed=1))
    assert row.pairs == 30 and found.pairing.startswith("Paired by instance")
    assert row.difference == pytest.approx(np.median((second - first).mean(1)))
    unpaired = alone.table.loc["x"]
    assert unpaired.pairs == 0 and "Not paired, as their data differ" in alone.pairing
    assert row.second_is == "higher" and unpaired.second_is == "not told apart"
    assert unpaired.high - unpaired.low > 10 * (row.high - row.low)
    assert at.paired(trials(first, data="h", seed=0), trials(second, data="h", seed=1)).pairing == (
        found.pairing
    )


@pytest.mark.long
@pytest.mark.parametrize("together", [True, False])
def test_intervals_hold_as_often_as_they_say(rng, together):
    """Of two laws with medians 0 and 1, of which neither is normal."""
    held, runs = 0, 200
    for _ in range(runs):
        start = rng.standard_cauchy((21, 1)) * together
        first = trials(start + rng.exponential(size=(21, 1)) - math.log(2), data=0)
        second = trials(start + rng.uniform(size=(21, 1)) + 0.5, data=1 - together)
        row = at.paired(first, second).table.loc["x"]
        # Paired, the median of the difference of the two is that of 1 + U - 1/2 - E + log 2.
        held += row.low <= (PAIRED if together else 1.0) <= row.high
    assert held >= binom.ppf(1e-4, runs, 0.95)


def _median_of_difference():
    from scipy.optimize import brentq

    def below(m):  # P(U - E <= m) = E_U[P(E >= U - m)], for m in (-1, 1)
        u = np.linspace(0, 1, 100_001)
        return np.trapezoid(np.exp(-np.maximum(u - m, 0)), u) - 0.5

    return brentq(below, -1, 1) + 0.5 + math.log(2)


PAIRED = _median_of_difference()


def test_only_what_both_have_is_paired_and_the_rest_is_named():
    first = trials(np.ones((3, 2)), instances=[0, 1, 2], seeds=[0, 1])
    second = trials(np.full((3, 2), 4.0), instances=[1, 2, 5], seeds=[7, 8])
    found = at.paired(first, second, names=["a", "b"])
    assert found.table.pairs["x"] == 2  # data sets, with seeds of their own
    assert found.only == (["instance 0", "seed 0, 1"], ["instance 5", "seed 7, 8"])
    assert "In a only: instance 0; seed 0, 1." in str(found)
    one = trials(np.ones((1, 4)))
    other = trials(np.zeros((1, 4)), seeds=[2, 3, 4, 5])
    assert at.paired(one, other).table.pairs["x"] == 2  # seeds
    apart = at.paired(one, trials(np.zeros((1, 2)), seeds=[8, 9]))
    assert apart.table.pairs["x"] == 0 and "no trials have the same labels" in apart.pairing


def test_every_label_has_a_row_and_words_are_compared_by_label():
    heads = {"layer": [0, 1], "head": [0, 1]}
    both = [
        xr.Dataset(
            {
                "accuracy": (("layer", "head"), [[0.5, 0.6], [0.7, accuracy]]),
                "learnable": (("layer", "head"), [["learnable", "no"], ["no", word]]),
                "W": (("row", "column"), np.zeros((2, 2))),
                more: ((), 1.0),
            },
            heads,
        )
        for accuracy, word, more in ((0.9, "learnable", "p"), (0.4, "not told apart", "q"))
    ]
    found = at.paired(*both)
    assert found.table.index[0] == "accuracy, layer 1, head 1" and len(found.table) == 4
    assert found.table.difference.iloc[0] == pytest.approx(-0.5)
    assert found.table.second_is.tolist() == ["lower", *["the same"] * 3]
    assert found.words == {"learnable, layer 1, head 1": ("learnable", "not told apart")}
    assert found.only == (["measures p"], ["measures q"]) and found.unlabeled == ["W"]
    frames = [one[["accuracy"]].to_dataframe() for one in both]
    pd.testing.assert_frame_equal(at.paired(*frames).table, found.table)
    assert json.loads(json.dumps(found.summary()))["numbers"][0]["low"] is None


def test_two_verdicts_and_their_reports(verdict, tmp_path):
    slower = at.normalized_gradient_descent(0.1)
    other = at.verify(at.train(*drawn(USUAL), slower, steps=300, seeds=2, seed=1))
    found = at.paired(verdict, other, names=["long", "short"])
    assert found.words["optimizer.learning_rate"] == ("0.3", "0.1")
    ends = [one.margin_ratio.mean("seed").values for one in (verdict, other)]
    ratio = found.table.loc["margin ratio"]
    assert ratio.pairs == 2 and ratio.difference == np.median(ends[1] - ends[0])
    assert np.isinf(ratio.low) and "(too few)" in str(found)  # of two data sets
    write_comparison(tmp_path / "out", found)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "short against long" in page and page.count("<thead>") == 1
    stored = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert stored.pop("provenance") and stored == json.loads(json.dumps(found.summary()))
    for name, one in (("a", verdict), ("b", other)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text("{}")
        write_verdict_data(tmp_path / name, one)
    again = at.paired(labeled(tmp_path / "a"), labeled(tmp_path / "b"))
    pd.testing.assert_frame_equal(again.table, found.table)
    from_file = labeled(tmp_path / "a" / "trajectory.nc")
    assert at.paired(verdict, from_file).table.second_is.unique().tolist() == ["the same"]


def matrix(ratios, **attributes):
    """Margin ratios of one optimizer, over norms and data sets."""
    ratios = np.asarray(ratios)
    data = xr.Dataset(
        {"margin_ratio": (("optimizer", "norm", "instance"), ratios[None])},
        coords={
            "optimizer": ["mine"],
            "norm": ["frobenius", "l_1"],
            "instance": range(ratios.shape[1]),
        },
        attrs={"n": 6, "seed": 0} | attributes,
    )
    return BiasMatrix(data)


def test_two_matrices_in_every_norm(rng):
    ratios = rng.uniform(size=(2, 20))
    shifted = ratios + np.array([[0.25], [0.0]])
    found = at.paired(matrix(ratios), matrix(shifted))
    assert found.table.second_is.to_dict() == {
        "margin ratio, frobenius": "higher",
        "margin ratio, l_1": "the same",
    }
    assert found.table.difference.iloc[0] == pytest.approx(0.25)
    other = at.paired(matrix(ratios), matrix(shifted, seed=1))
    assert "Not paired" in other.pairing and other.words["seed"] == ("0", "1")


def test_numbers_of_any_report(tmp_path):
    for name, value in (("a", 1.0), ("b", 3.5)):
        (tmp_path / name).mkdir()
        contents = {"horizon": value, "same": 2, "rows": [{"rate": value}], "word": name}
        (tmp_path / name / "summary.json").write_text(json.dumps(contents))
    a, b = labeled(tmp_path / "a"), labeled(tmp_path / "b")
    found = at.paired(a, b)
    assert found.table.difference.to_dict() == {"horizon": 2.5, "rows[0].rate": 2.5, "same": 0}
    assert found.words == {"word": ("a", "b")}
    assert at.paired(a, a).findings() == ["3 of 3 numbers are the same."]


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (lambda _: 3, "second: it is a int"),
        (lambda place: labeled(place / "nowhere"), "path: there is no report in"),
        (lambda place: labeled(place / "a"), "second: it shares no measure"),
    ],
)
def test_what_cannot_be_compared(verdict, tmp_path, second, words):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "summary.json").write_text("{}")
    with pytest.raises(at.InvalidInputError, match=f"^{words}"):
        at.paired(verdict, second(tmp_path))


@pytest.mark.parametrize("content", ["[]", '{"a": 1, "claims": 3}'])
def test_a_damaged_report_is_an_error(content, tmp_path):
    (tmp_path / "claims.json").write_text(content)
    with pytest.raises(at.FileFormatError, match=r"claims\.json"):
        labeled(tmp_path)


def test_what_agrees_pair_by_pair_is_the_same_and_intervals_stay_whole(rng):
    ratios = rng.uniform(size=(2, 3))  # too few data sets for an interval
    found = at.paired(matrix(ratios), matrix(ratios))
    assert found.findings() == ["2 of 2 numbers are the same."]
    ratios = rng.uniform(size=(2, 20))
    found = at.paired(matrix(ratios), matrix(ratios + 0.1234, seed=1))
    for width in (80, 200):
        stream = io.StringIO()
        found.print_to(Console(file=stream, width=width))
        for row in found.rows()[1:]:
            assert row[3].partition(" ")[2] in stream.getvalue()


def test_a_page_says_which_results_it_compares(tmp_path):
    for name, value in (("a", 1.0), ("b", 2.0), ("c", 2.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(json.dumps({"horizon": value}))
    made = {}
    for first, second in ("ab", "ac", "ba"):
        found = at.paired(labeled(tmp_path / first), labeled(tmp_path / second))
        write_comparison(tmp_path / "out", found)
        made[first + second] = read_provenance(tmp_path / "out" / "report.html")
    assert made["ab"].name == "compare" and made["ab"].kind == "report"
    assert made["ab"].data == made["ac"].data != made["ba"].data


def test_a_sweep_is_compared_by_its_labels(tmp_path):
    grid = at.maps.sweeps.Grid({"n": [2, 3]}, instances=2)
    for name, tokens in (("a.zarr", 3), ("b.zarr", 4)):
        experiment = at.maps.sweeps.built_in("margins", T=tokens, d=3)
        at.maps.sweeps.sweep(grid, experiment, tmp_path / name)
    found = at.paired(labeled(tmp_path / "a.zarr"), labeled(tmp_path / "b.zarr"))
    assert {one.rpartition(", ")[2] for one in found.table.index} == {"n 2", "n 3"}
