import pytest

from attractor.support.errors import InvalidInputError
from attractor.support.storage import owned_folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_is_held_by_one_run_and_cleaned_of_killed_writes(tmp_path):
    folder = tmp_path / "deep" / "run"
    with owned_folder(folder, "marker.json", argument="checkpoint"):
        (folder / "marker.json").write_text("{}")
        (folder / ".state.partial-abc.bin").write_text("half")
        (folder / ".state.bin.partial-abcdefgh" / "new").mkdir(parents=True)
        with (
            pytest.raises(InvalidInputError, match="checkpoint: another run"),
            owned_folder(folder, "marker.json", argument="checkpoint"),
        ):
            pass
    with owned_folder(folder, "marker.json", argument="checkpoint"):
        assert names(folder) == ["marker.json"]


def test_a_folder_that_is_not_ours_is_not_held(tmp_path):
    (tmp_path / ".thesis.partial-1.tex").write_text("years of work")
    with (
        pytest.raises(InvalidInputError, match="did not write"),
        owned_folder(tmp_path, "marker.json", argument="checkpoint"),
    ):
        pass
    assert names(tmp_path) == [".thesis.partial-1.tex"]
