"""What fits into memory is done, and what does not is refused before work begins."""

from attractor.support import memory


def test_the_limit_of_a_container_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_GROUPS", tmp_path)
    free = memory.available_memory()
    assert free is None or free > 1e6
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    assert memory.available_memory() == 2e6
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available_memory() is None or memory.available_memory() > 1e6
