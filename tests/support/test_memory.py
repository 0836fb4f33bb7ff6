"""What fits into memory is done, and what does not is refused before work begins."""

import pytest

from attractor.support import memory
from attractor.support.errors import InvalidInputError


def test_the_limit_of_a_container_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_GROUPS", tmp_path)
    free = memory.available_memory()
    assert free is None or free > 1e6
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    assert memory.available_memory() == 2e6
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available_memory() is None or memory.available_memory() > 1e6


@pytest.mark.parametrize("entries", [range(2**70), range(2**70, 0, -1), range(0, 2**80, 2**8)])
def test_a_range_without_a_length_is_refused_whichever_way_it_goes(entries):
    with pytest.raises(InvalidInputError, match=r"steps: [\d,]{20,} entries would take"):
        memory.require_memory_for_list("steps", entries, each=8.0)
