"""Where compiled programs are kept: with the user's cache, or where the environment says."""

import json
import os
import subprocess
import sys

import pytest

CODE = """
import json, os, sys
{first}
from attractor.cli.session import use_compilation_cache
use_compilation_cache()
import jax
print(json.dumps([jax.config.jax_compilation_cache_dir,
                  jax.config.jax_persistent_cache_min_compile_time_secs]))
"""


def settings(first, **environment):
    kept = {name: value for name, value in os.environ.items() if "_CACHE_" not in name}
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(first=first)],
        env=kept | environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.parametrize("first", ["", "import jax"], ids=["before JAX", "after JAX"])
def test_compiled_programs_are_kept_unless_the_environment_says_where(first, tmp_path):
    folder, least = settings(first)
    assert folder.endswith("attractor") and least == 0.1
    chosen = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "3",
    }
    assert settings(first, **chosen) == [str(tmp_path), 3.0]
