"""The page on claims: counterexamples that a file can hold, and those that none can."""

import json
import re

import pytest

from attractor.papers import get_claim
from attractor.papers.commands.checking import claims_provenance
from attractor.papers.ledger.check import check_claim
from attractor.papers.pages.claims import write_claims_report
from attractor.papers.results import ClaimResults
from attractor.papers.transformers_as_svms.claims.heads import inactive_pair
from attractor.papers.transformers_as_svms.random_data import trapped


def report_on(name, case, folder):
    result = check_claim(get_claim(name), [case], find_smallest=False)
    write_claims_report(
        folder,
        ClaimResults((result,)),
        source="data",
        provenance=claims_provenance([result], None, 0, {}),
    )
    written = json.loads((folder / "claims.json").read_text())
    return written["claims"][name]["counterexample"], (folder / "report.html").read_text()


@pytest.mark.long
def test_a_counterexample_is_kept_in_a_file(tmp_path):
    name = "transformers-as-svms/global-convergence"
    found, page = report_on(name, trapped(8.0), tmp_path / "report")
    assert (tmp_path / "report" / found["file"]).is_file() and found["file"] in page


def test_one_that_no_file_holds_is_reported_with_the_reason(tmp_path):
    name = "transformers-as-svms/relu-head-training"
    found, page = report_on(name, inactive_pair(), tmp_path / "report")
    assert found["no_file"] == "a token file holds no relu head" and "file" not in found
    assert "two tokens with one unit" in page and found["no_file"] in page
    assert sorted(path.name for path in (tmp_path / "report").glob("*.*")) == [
        "claims.json",
        "report.html",
    ]
    assert not (tmp_path / "report" / "counterexamples").exists()


@pytest.mark.long
def test_what_fails_comes_first_and_is_named(tmp_path):
    holds, fails = "max-margin/global-path", "transformers-as-svms/global-convergence"
    results = [
        check_claim(get_claim(name), [trapped(8.0)], find_smallest=False) for name in (holds, fails)
    ]
    write_claims_report(
        tmp_path / "out",
        ClaimResults(tuple(results)),
        source="data",
        provenance=claims_provenance(results, None, 0, {}),
    )
    page = (tmp_path / "out" / "report.html").read_text()
    anchor = fails.replace("/", "-")
    assert f'<li>1 fails: <a href="#{anchor}">{fails}</a></li>' in page
    headings = re.findall(r"<details[^>]*><summary><h2[^>]*>(.*?)</h2>", page)
    assert headings[0] == "1 fails" and len(headings) == 2
    assert page.index(f'<h3 id="{anchor}"') < page.index(f'<h3 id="{holds.replace("/", "-")}"')
