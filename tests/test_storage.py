import pytest

from attractor.errors import InvalidInputError
from attractor.storage import atomic_directory, atomic_file, check_writable, owned_folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "run.nc"
    with atomic_file(target) as temporary:
        temporary.write_text("first")
        assert names(tmp_path) == [temporary.name]
    assert target.read_text() == "first"
    with pytest.raises(RuntimeError), atomic_file(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "first"
    assert names(tmp_path) == ["run.nc"]


def test_a_file_cannot_replace_a_folder(tmp_path):
    with pytest.raises(InvalidInputError, match="is a folder"), atomic_file(tmp_path):
        pass


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "report"
    with pytest.raises(KeyboardInterrupt), atomic_directory(target, "marker.json") as temporary:
        (temporary / "half").write_text("x")
        raise KeyboardInterrupt
    assert names(tmp_path) == []
    for text in ("first", "second"):
        with atomic_directory(target, "marker.json") as temporary:
            (temporary / "marker.json").write_text(text)
    assert (target / "marker.json").read_text() == "second"
    assert names(tmp_path) == ["report"]


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with (
        pytest.raises(InvalidInputError, match="did not write"),
        atomic_directory(tmp_path, "marker.json"),
    ):
        pass
    assert names(tmp_path) == ["thesis.tex"]


def test_a_failed_swap_puts_the_old_folder_back(tmp_path, monkeypatch):
    target = tmp_path / "report"
    with atomic_directory(target, "marker.json") as temporary:
        (temporary / "marker.json").write_text("first")
    import os

    from attractor import storage

    real, calls = os.replace, []

    def failing(source, destination):
        calls.append(source)
        if len(calls) == 2:
            raise OSError("disk full")
        real(source, destination)

    monkeypatch.setattr(storage.os, "replace", failing)
    with pytest.raises(OSError), atomic_directory(target, "marker.json") as temporary:
        (temporary / "marker.json").write_text("second")
    assert (target / "marker.json").read_text() == "first"
    assert names(tmp_path) == ["report"]


def test_a_file_that_cannot_be_written_is_refused_early(tmp_path):
    (tmp_path / "notes").write_text("mine")
    check_writable("out", tmp_path / "new" / "folder" / "W.nc")
    check_writable("out", tmp_path / "notes")
    for path in (tmp_path, tmp_path / "notes" / "W.nc", tmp_path / "notes" / "new" / "W.nc"):
        with pytest.raises(InvalidInputError, match="out"):
            check_writable("out", path)
    assert names(tmp_path) == ["notes"]


def test_a_folder_is_held_by_one_run_and_cleaned_of_killed_writes(tmp_path):
    folder = tmp_path / "deep" / "run"
    with owned_folder(folder, "marker.json", argument="checkpoint"):
        (folder / "marker.json").write_text("{}")
        (folder / ".state.partial-abc.bin").write_text("half")
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
