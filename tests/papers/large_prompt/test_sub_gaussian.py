"""Claims on sub-Gaussian tokens over a range of scores, against errors by counting signs."""

import numpy as np
import pytest
import scipy.stats

from attractor.papers import Outcome, examine, get_claim
from attractor.papers.large_prompt.finite_prompts import LENGTHS
from attractor.papers.large_prompt.sub_gaussian import average_error, on_line
from attractor.prompts.measures.gaussian import Gaussian
from attractor.prompts.measures.mixture import Mixture
from attractor.prompts.measures.products import Rademacher, Uniform

WIDTHS = [1.0, 2.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0]
LAWS = {
    "signs": Rademacher(1),
    "uniform": Uniform(np.sqrt(3), 1),
    "two far apart": Mixture([1, 1], [Gaussian([mean], [[1.0]]) for mean in (-30.0, 30.0)]),
}


def counted(width, length):
    """The squared error of the output over random signs, by how many of them are positive."""
    positive = np.arange(length + 1)
    below = np.exp(-2 * width) * (length - positive)
    off = 2 * below / (positive + below) - 2 / (1 + np.exp(2 * width))  # of one less the output
    return scipy.stats.binom.pmf(positive, length, 0.5) @ off**2


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("error", ["output", "value_gradient"])
def test_errors_over_random_signs_by_counting(error, width):
    short = LENGTHS[(LENGTHS >= 2) & (LENGTHS <= 100)].astype(int)
    found = average_error(on_line(Rademacher(1), "signs", width), error)
    wanted = [counted(width, length) for length in short]
    assert found[1 : len(short) + 1] == pytest.approx(wanted, rel=1e-8)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("part", ["output", "value-gradient"])
def test_a_claim_asks_for_no_error_but_its_own(part, width):
    claim = get_claim(f"large-prompt/sub-gaussian-{part}-concentration-repaired")
    assert examine(claim, on_line(Rademacher(1), "signs", width)).outcome is Outcome.HOLDS


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("width", [0.1, 1.0, 4.0, 6.0, 9.0, 12.0, 13.0, 50.0])
@pytest.mark.parametrize("part", ["output", "score-gradient"])
def test_wide_scores_are_examined_or_said_to_be_too_wide(part, width, law):
    claim = get_claim(f"large-prompt/sub-gaussian-{part}-concentration-repaired")
    found = examine(claim, on_line(LAWS[law], law, width))
    if found.outcome is Outcome.ASSUMPTION_NOT_MET:
        assert found.reason.startswith("scores that are not too wide: scores have parameters up to")
    else:
        # Of wide scores the bound is so far above that a hundredth of it is one as well.
        assert found.outcome in (Outcome.HOLDS, Outcome.VACUOUS)
        assert 0 < found.measured.value <= 1
