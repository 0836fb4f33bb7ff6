import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from attractor.support.errors import InvalidInputError, WriteError
from attractor.support.storage import (
    append_line,
    atomic,
    atomic_directory,
    atomic_file,
    new_directory,
    write_file,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "run.nc"
    with atomic_file(target) as temporary:
        temporary.write_text("first")
        assert not target.exists()
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
    real, calls = os.replace, []

    def failing(source, destination):
        calls.append(source)
        if len(calls) == 3:  # the first finds the old folder in its way, the second moves it
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, destination)

    monkeypatch.setattr(atomic.os, "replace", failing)
    with (
        pytest.raises(WriteError, match="report cannot be written: No space left"),
        atomic_directory(target, "marker.json") as temporary,
    ):
        (temporary / "marker.json").write_text("second")
    assert (target / "marker.json").read_text() == "first"
    assert names(tmp_path) == ["report"]


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path):
    far = tmp_path / "far"
    far.mkdir()
    (far / "run.nc").write_text("first")
    (tmp_path / "run.nc").symlink_to("far/run.nc")
    write_file(tmp_path / "run.nc", "second")
    assert (tmp_path / "run.nc").is_symlink()
    assert (far / "run.nc").read_text() == "second"

    (far / "report").mkdir()
    (tmp_path / "report").symlink_to(far / "report")
    with atomic_directory(tmp_path / "report", "marker.json") as folder:
        (folder / "marker.json").write_text("{}")
    assert (tmp_path / "report").is_symlink()
    assert names(far / "report") == ["marker.json"]
    assert names(far) == ["report", "run.nc"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null"):
        with pytest.raises(InvalidInputError, match=r"path: .* is a (named pipe|device)"):
            write_file(path, "x")
        with (
            pytest.raises(InvalidInputError, match=r"out: .* is a (named pipe|device)"),
            atomic_directory(path, "marker.json"),
        ):
            pass
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_the_longest_names_can_be_written(tmp_path):
    name = "n" * 251 + ".txt"
    write_file(tmp_path / name, "x")
    assert names(tmp_path) == [name]


def test_several_threads_write_one_name(tmp_path):
    """The last one wins, whole; nobody fails, and nothing is left."""
    for name in ("file", "folder"):
        path = tmp_path / name

        def write(number, name=name, path=path):
            if name == "file":
                write_file(path, str(number) * 10_000)
                return
            with atomic_directory(path, "marker") as folder:
                (folder / "marker").write_text(str(number))
                (folder / "other").write_text(str(number))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(40)))
    assert len(set((tmp_path / "file").read_text()[i : i + 2] for i in range(0, 10_000, 2))) == 1
    marker, other = ((tmp_path / "folder" / name).read_text() for name in ("marker", "other"))
    assert marker == other
    assert names(tmp_path) == ["file", "folder"]


def test_writing_leaves_the_mask_of_permissions_alone(tmp_path):
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "file", "x")
        with atomic_directory(tmp_path / "folder", "marker") as folder:
            (folder / "marker").touch()
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640
        assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o750
    finally:
        assert os.umask(before) == 0o027


def test_of_two_new_folders_the_first_stays(tmp_path):
    destination = tmp_path / "store"
    with new_directory(destination) as slow:
        (slow / "file").write_text("slow")
        with new_directory(destination) as quick:
            (quick / "file").write_text("quick")
    assert (destination / "file").read_text() == "quick"
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_new_folder_appears_whole_or_not_at_all(tmp_path):
    with pytest.raises(KeyError), new_directory(tmp_path / "store") as folder:
        (folder / "file").write_text("half")
        raise KeyError
    assert not list(tmp_path.iterdir())


def test_lines_are_appended_or_the_file_stays(tmp_path, monkeypatch):
    for line in ("one", "zwölf"):
        append_line(tmp_path / "lines", line)
    assert (tmp_path / "lines").read_text("utf-8") == "one\nzwölf\n"

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match="lines cannot be written: No space left on device"):
        append_line(tmp_path / "lines", "three")
    assert (tmp_path / "lines").read_text("utf-8") == "one\nzwölf\n"
