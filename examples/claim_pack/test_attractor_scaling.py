"""The whole test of the pack: every question that Attractor has to its claims."""

import pytest

from attractor.papers import questions


@pytest.mark.parametrize("ask", questions("scaling"), ids=str)
def test_scaling(ask, tmp_path):
    ask(tmp_path)
