import functools
import gc
import importlib.util
import itertools
import logging
import os
import sys
from importlib.metadata import version
from pathlib import Path

# Linear algebra in several threads beside several workers makes them wait for one another: a sixth
# of the suite's time on two cores. Workers inherit this before they load NumPy.
if os.environ.setdefault("OMP_NUM_THREADS", "1") == "1":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Where bytecode is not kept, workers and the processes that tests start compile every file anew.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    sys.dont_write_bytecode = False

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Compiling is most of what the tests take, and optimizing most of compiling: without these the
# suite takes twice the time. `make test-slow` sets the first to 0 and compiles as users do. XLA
# ends the process at a flag that it does not know, so the others are for versions known to have
# them. To split small programs for several threads takes longer than to compile them in one.
if os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1") == "1":
    if version("jaxlib").startswith("0.10."):
        flags = os.environ.get("XLA_FLAGS", "")
        flags += " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
        os.environ["XLA_FLAGS"] = flags

# Compiled programs are shared by the workers and the processes that tests start, and kept for the
# next time. `make test-cold` starts without any.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "xla")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

import jax  # which reads them
from compiled_programs import CompiledPrograms
from jax._src.interpreters import mlir
from started_processes import StartedProcesses

# JAX makes the operations of its intermediate language known anew for every program, a quarter of
# what a small one takes. Threads may share what knows them, but not two programs of a thread of
# which one is made amid the other; it keeps constants, so not for good.
if os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] == "1" and version("jax").startswith("0.10."):
    new_context, asked = mlir.make_ir_context, itertools.count()

    @functools.lru_cache(maxsize=1)
    def context(portion):
        return new_context()

    def shared_context():
        amid = mlir.ir.Context.current is not None
        return new_context() if amid else context(next(asked) // 200)

    mlir.make_ir_context = shared_context

# Tracing makes many objects and few cycles: looking for those took a twelfth of the suite's time.
gc.freeze()
gc.set_threshold(100_000, 20, 100)

settings.register_profile(
    "attractor",
    deadline=None,
    max_examples=15,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("attractor")

NEED_TORCH = Path(__file__).parent / "torch"
OF_PAPERS = {
    folder
    for folder in (Path(__file__).parent / "papers").iterdir()
    if folder.is_dir() and folder.name != "measurements"
}
"""Tests of one paper each: its claims and figures at the sizes that it has."""


def pytest_addoption(parser):
    parser.addoption(
        "--all-installed",
        action="store_true",
        help="a skip for want of a package is a failure; the Makefile installs what tests import",
    )
    parser.addoption(
        "--within-budget",
        action="store_true",
        help="fail where a room compiles more programs than it may: for a run of `make test`",
    )


def pytest_configure(config):
    config.pluginmanager.register(CompiledPrograms(held=config.getoption("--within-budget")))
    config.pluginmanager.register(StartedProcesses())


def pytest_ignore_collect(collection_path, config):
    """Does not even import what needs PyTorch where that is left out."""
    if collection_path == NEED_TORCH and "not torch" in config.getoption("markexpr"):
        return True
    return None


def failed_if_a_package_is_missing(report, config):
    """Makes a failure of a skip by `importorskip`, where everything has to be installed."""
    if (
        report.skipped
        and config.getoption("--all-installed")
        and isinstance(report.longrepr, tuple)
    ):
        reason = report.longrepr[2]
        if "could not import" in reason:
            report.outcome, report.longrepr = "failed", reason
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return failed_if_a_package_is_missing((yield), item.config)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return failed_if_a_package_is_missing((yield), collector.config)


@pytest.fixture(scope="session")
def optimized():
    """Compiles as users do what asks for it, which pays where tests train for long."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks what needs PyTorch and what takes long; what compiles as users do comes first.

    Before there is much that it lets go.
    """
    for item in items:
        if item.path.is_relative_to(NEED_TORCH):
            item.add_marker("torch")
        if "optimized" in item.fixturenames or OF_PAPERS & {*item.path.parents}:
            item.add_marker("long")
    items.sort(key=lambda item: "optimized" not in item.fixturenames)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Skips what needs a package that is not here; lets go what was compiled otherwise than asked.

    JAX does not tell programs apart by how they were compiled.
    """
    for mark in item.iter_markers("installed"):
        if importlib.util.find_spec(mark.args[0]) is None:
            pytest.skip(f"could not import {mark.args[0]!r}")
    otherwise = "optimized" not in item.fixturenames
    unoptimized = otherwise and os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] == "1"
    if jax.config.values["jax_disable_most_optimizations"] != unoptimized:
        jax.clear_caches()
        jax.config.update("jax_disable_most_optimizations", unoptimized)


@pytest.fixture
def rng():
    return np.random.default_rng(20231)


@pytest.fixture
def compiled(caplog):
    """Names of the programs that JAX compiled so far in a test."""
    before = jax.config.jax_log_compiles
    jax.config.update("jax_log_compiles", True)

    def names():
        texts = [r.getMessage() for r in caplog.records if r.name.startswith("jax")]
        return [text.split()[1] for text in texts if text.startswith("Compiling ")]

    with caplog.at_level(logging.WARNING, logger="jax"):
        yield names
    jax.config.update("jax_log_compiles", before)


@pytest.fixture
def blank_pictures(monkeypatch):
    """Pictures are made and written, but blank: drawing takes longer than all else of a report.

    For tests of something else, beside one that has the same pictures drawn. Those whose names are
    put into the set that is returned are drawn.
    """
    from attractor import plots

    save_figure, drawn = plots.save_figure, set()

    def save_blank(figure, directory, name, **options):
        if name not in drawn:
            figure.clear()
            figure.set_size_inches(0.5, 0.5)
        save_figure(figure, directory, name, **options)

    monkeypatch.setattr(plots, "save_figure", save_blank)
    return drawn
