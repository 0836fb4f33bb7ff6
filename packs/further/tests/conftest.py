"""Tests of a paper's claims are long ones; some compile as users do."""

from pathlib import Path

import jax
import pytest

HERE = Path(__file__).parent
_OFF = "jax_disable_most_optimizations"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks as long what lies in the folder of a paper."""
    for item in items:
        if item.path.parent.parent == HERE:
            item.add_marker("long")


@pytest.fixture
def optimized():
    """Compiles as users do, which pays where tests train for long."""
    before = jax.config.values[_OFF]
    jax.config.update(_OFF, False)
    if before:
        jax.clear_caches()
    yield
    if before:
        jax.config.update(_OFF, before)
        jax.clear_caches()
