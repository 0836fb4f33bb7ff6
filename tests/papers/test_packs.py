import pytest

from attractor.papers import PAPERS, all_claims, all_figures, get_claim, get_figure
from attractor.papers.ledger.index import make_index, stored_index
from attractor.papers.ledger.packs import figures_in
from attractor.papers.ledger.places import places
from attractor.support.errors import InvalidInputError


@pytest.mark.parametrize("place", places())
def test_an_index_says_what_one_made_anew_does(place):
    assert stored_index(place) == make_index(place), f"run write_index({place!r})"


def test_lists_are_those_of_the_papers_together():
    for everything in (all_claims, all_figures):
        joined = [name for place in places() for name in everything(place)]
        assert list(dict.fromkeys(joined)) == list(everything())
        own = [*everything("attractor")]
        assert [*everything()][: len(own)] == own


def test_a_paper_lists_what_bears_its_name():
    assert all(name.startswith("next-token/") for name in all_claims("next-token"))
    assert {name.split("/")[0] for name in all_claims("attractor")} == {*PAPERS}


def test_figures_in_a_folder_are_those_of_the_papers_that_it_has_subfolders_of(tmp_path):
    assert figures_in(tmp_path) == {}
    for paper in ("next-token", "max-margin"):
        (tmp_path / paper).mkdir()
    assert figures_in(tmp_path) == all_figures("max-margin") | all_figures("next-token")


@pytest.mark.parametrize("get", [get_claim, get_figure])
def test_unknown_name_suggests_near_ones(get):
    with pytest.raises(InvalidInputError, match="max-margin/"):
        get("max-margin/local-convergense" if get is get_claim else "max-margin/global-local")


def test_unknown_paper_is_refused():
    with pytest.raises(InvalidInputError, match="transformers-as-svms"):
        all_claims("transformers")
