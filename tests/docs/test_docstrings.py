"""The examples in docstrings run as they stand, and print what they show."""

import doctest
import operator

import pytest
from site_pages.api import OF_TORCH, public_names
from snippets import same_output

import attractor

MOST_USED = """
    Tokens LinearHead Selection optimal_tokens attended_tokens token_scores
    MarginProblem MarginProblem.from_selection solve Solution
    Frobenius Nuclear Spectral Lp Schatten
    train Trajectory verify Verdict
    gradient_descent normalized_gradient_descent mirror_descent momentum sign_descent
    spectral_descent muon adam declare gradient_flow regularization_path
    KeyQuery PromptVector softmax_attention
    check_local_optimality locally_optimal_selections decompose solve_factorized label_problem
    load fit_rate HeadMonitor WatchedHead audit_heads Captured.from_arrays
    maps.which_norm datasets.unit_tokens papers.get_claim
    corpora.Corpus corpora.corpus_structure prompts.prompt_length
""".split()


class Nearly(doctest.OutputChecker):
    def check_output(self, want, got, optionflags):
        return same_output(want, got)


def examples(value, name):
    return [
        one
        for one in doctest.DocTestFinder(recurse=False).find(value, name, globs={})
        if one.examples
    ]


WITH_EXAMPLES = sorted(
    {
        *MOST_USED,
        *(
            name.removeprefix("attractor.")
            for name in public_names()
            if not name.startswith(OF_TORCH)
            and examples(operator.attrgetter(name.removeprefix("attractor."))(attractor), name)
        ),
    }
)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_example_of_a_docstring_prints_what_it_shows(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = examples(operator.attrgetter(name)(attractor), name)
    said = []
    runner = doctest.DocTestRunner(checker=Nearly(), verbose=False)
    assert runner.run(example, out=said.append).failed == 0, "".join(said)
    shown = [one.want for one in example.examples if one.want]
    assert shown, "it prints nothing"
