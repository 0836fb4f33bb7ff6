"""Tasks that claims are examined on: kept in files, and made smaller."""

import dataclasses

import numpy as np
import pytest
from made_up_claims import made_up

from attractor.files import load
from attractor.papers import Measurement, RegressionCase, get_claim
from attractor.papers.hypotheses_table import check_hypotheses
from attractor.papers.large_prompt.regression import correlated, independent, small_input
from attractor.papers.ledger.check import check_claim, shrink
from attractor.prompts.regression import RegressionTask


def claim(measure):
    return made_up(RegressionCase, measure)


@pytest.mark.parametrize(
    "case", [correlated(), independent(2, time=3.0), small_input().replace(initial_value=1.0)]
)
def test_a_file_gives_back_the_same_case(tmp_path, case):
    case.save(tmp_path / "task.npz")
    (again,) = load(tmp_path / "task.npz").data_sets()
    assert again.hash == case.hash and again.about == "task.npz"
    assert again.size == case.size and again.size_in_words == case.size_in_words
    np.testing.assert_array_equal(again.start.key_query, case.start.key_query)
    assert again.start.value_label == case.start.value_label


def test_the_hash_tells_cases_apart():
    first = independent(2)
    noisy = dataclasses.replace(first.task, label_noise=0.5)
    wide = dataclasses.replace(first.task, query_covariance=2 * np.eye(2))
    cases = [
        first,
        first.replace(task=noisy),
        first.replace(task=wide),
        first.replace(lengths=(8,)),
        first.replace(time=1.0),
        first.replace(initial_scale=0.3),
        first.replace(initial_value=0.3),
    ]
    assert len({case.hash for case in cases}) == len(cases)
    assert first.replace(about="something else").hash == first.hash


def test_inputs_prompts_noise_and_digits_that_are_not_needed_go():
    covariance = np.diag([1.2345, 3.01, 2.0])
    task = RegressionTask(covariance, 2 * covariance, label_noise=0.3, weight_variance=0.7)
    case = RegressionCase(task, (16, 64, 256))

    def measure(case, seed):  # a variance near three, and a long prompt
        three = np.any(np.abs(np.diag(case.task.covariance) - 3) < 0.1)
        return Measurement(float(three and max(case.lengths) >= 64))

    smallest = shrink(claim(measure), case, 0)
    np.testing.assert_array_equal(smallest.task.covariance, [[3.0]])
    np.testing.assert_array_equal(smallest.task.query_covariance, [[3.0]])
    assert smallest.lengths in ((64,), (256,))
    assert smallest.task.label_noise == 0 and smallest.task.weight_variance == 1


def test_a_start_between_two_bounds_is_a_counterexample():
    found = check_claim(get_claim("large-prompt/initial-scale"), [small_input()])
    assert found.counterexample is not None
    case = found.counterexample.case
    assert case.task.dimension == 1 and case.initial_scale == 4
    assert 1.5 < found.counterexample.measured.value < 2.0 + 1e-9


def test_hypotheses_of_a_task_are_reported():
    rows = {row[0]: row[1] for row in check_hypotheses(correlated()).rows}
    assert not rows["independent inputs"] and rows["labels without noise"]
    assert rows["scale below the bound"] and rows["balanced start"]
    assert not rows["horizon above 0.707"] and rows["horizon at most 0.6"]
