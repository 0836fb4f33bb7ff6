"""What kind of machine this is, and where programs compiled for it are kept."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from attractor.support import machine
from attractor.support.errors import InvalidInputError
from attractor.support.machine import kind_of_processor, use_compilation_cache

X86 = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 1
model name\t: AMD EPYC
cpu MHz\t\t: {mhz}
flags\t\t: fpu sse2 {flags}
bogomips\t: {mhz}

processor\t: 1
flags\t\t: fpu nothing else
"""
ARM = "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd {flags}\nCPU part\t: {part}\n\n"


@pytest.fixture
def kind(monkeypatch, tmp_path):
    """Finds the kind of a machine whose processor file is given."""

    def found(text, **environment):
        file = tmp_path / "cpuinfo"
        file.write_text(text) if text is not None else file.unlink(missing_ok=True)
        monkeypatch.setattr(machine, "_PROCESSOR_FILE", file)
        monkeypatch.setattr(machine, "_GRAPHICS_FOLDER", tmp_path / "gpus")
        with monkeypatch.context() as inside:
            for name in ("XLA_FLAGS", *machine._SETTINGS):
                inside.delenv(name, raising=False)
            for name, value in environment.items():
                inside.setenv(name, value)
            return kind_of_processor.__wrapped__()

    return found


def test_the_kind_follows_what_bears_on_compiled_code(kind):
    plain = kind(X86.format(mhz="2000", flags="avx2"))
    assert kind(X86.format(mhz="3123.4", flags="avx2")) == plain  # the clock does not
    different = [
        kind(X86.format(mhz="2000", flags="avx2 avx512f")),
        kind(X86.format(mhz="2000", flags="avx2"), XLA_FLAGS="--xla_cpu_max_isa=AVX2"),
        kind(X86.format(mhz="2000", flags="avx2"), OPENBLAS_CORETYPE="Haswell"),
        kind(X86.format(mhz="2000", flags="avx2").replace("AuthenticAMD", "GenuineIntel")),
        kind(ARM.format(flags="sve", part="0xd40")),
        kind(ARM.format(flags="sve", part="0xd4f")),
        kind(None),
    ]
    assert len({plain, *different}) == 1 + len(different)
    assert kind(X86.format(mhz="2000", flags="avx2"), XLA_FLAGS="--xla_dump_to=/tmp/x") == plain


def test_flags_of_xla_count_in_any_order_and_graphics_processors_by_model(kind, tmp_path):
    both = "--xla_cpu_max_isa=AVX2", "--xla_cpu_enable_fast_math=false"
    assert kind("", XLA_FLAGS=" ".join(both)) == kind("", XLA_FLAGS="  ".join(both[::-1]))
    kinds = [kind("")]
    for number, model in enumerate(("H100", "H100", "H200")):
        file = tmp_path / "gpus" / f"0000:{number}" / "information"
        file.parent.mkdir(parents=True)
        file.write_text(f"Model: \t{model}\nIRQ: {number}\n")
        kinds.append(kind(""))
    none, one, two_alike, two = kinds
    assert one == two_alike and len({none, one, two}) == 3


def test_where_there_is_no_processor_file_the_system_says_what_it_is(kind, monkeypatch):
    here = kind(None)
    release = os.uname()
    monkeypatch.setattr(
        machine.os, "uname", lambda: os.uname_result([*release[:3], "Darwin T6000", "arm64"])
    )
    assert kind(None) != here and kind(None).startswith("arm64-")


def test_it_is_found_once_and_is_a_name_of_a_folder():
    assert kind_of_processor() is kind_of_processor()
    assert Path(kind_of_processor()).name == kind_of_processor()


CODE = """
import json, sys
{first}
from attractor.support.machine import kind_of_processor, use_compilation_cache
use_compilation_cache({folder})
assert ("jax" in sys.modules) == ("jax" in {first!r})
import jax
print(json.dumps([jax.config.jax_compilation_cache_dir,
                  jax.config.jax_persistent_cache_min_compile_time_secs]))
{then}
"""


def settings(first="", folder="", then="", **environment):
    kept = {name: value for name, value in os.environ.items() if "_CACHE_" not in name}
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(first=first, folder=folder, then=then)],
        env=kept | environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.processes
@pytest.mark.parametrize("first", ["", "import jax"], ids=["before JAX", "after JAX"])
def test_compiled_programs_are_kept_unless_the_environment_says_where(first, tmp_path):
    folder, least = settings(first)
    assert folder.endswith(os.path.join("attractor", "xla", kind_of_processor())) and least == 0.1
    chosen = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "3",
    }
    assert settings(first, **chosen) == [str(tmp_path), 3.0]
    mine = tmp_path / "mine"
    assert settings(first, repr(str(mine)), **chosen) == [str(mine / kind_of_processor()), 3.0]


@pytest.mark.processes
def test_a_folder_set_in_jax_stays():
    first = "import jax; jax.config.update('jax_compilation_cache_dir', '/tmp/of-the-user')"
    assert settings(first)[0] == "/tmp/of-the-user"


COMPILE = "jax.jit(lambda x: (x + 1) @ x)(jax.numpy.ones(({size}, {size}))).block_until_ready()"


@pytest.mark.slow
def test_workers_that_start_cold_together_fill_one_folder(tmp_path):
    early = f"import jax; {COMPILE.format(size=5)}"  # JAX has looked for its folder already
    chosen = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}

    def worker(_):
        settings(early, repr(str(tmp_path)), COMPILE.format(size=50), **chosen)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(worker, range(3)))
    kept = tmp_path / kind_of_processor()
    programs = sorted(kept.glob("jit__lambda*-cache"))
    assert len(programs) == 1  # the early one was not kept
    before = programs[0].stat().st_mtime_ns
    worker(0)
    assert sorted(kept.glob("jit__lambda*-cache")) == programs
    assert programs[0].stat().st_mtime_ns == before


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInputError, match="cannot be made"):
        use_compilation_cache(tmp_path / "file")
    with pytest.raises(InvalidInputError, match="folder"):
        use_compilation_cache(3)
