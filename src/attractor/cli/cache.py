"""Compiled programs are kept between runs, so that a second one starts at once."""

from __future__ import annotations

import os
import sys

import platformdirs


def use_compilation_cache() -> None:
    """Points JAX's persistent compilation cache at the user's cache folder.

    What the user set in the environment, such as ``JAX_COMPILATION_CACHE_DIR``, is left as it is.
    JAX takes long to load, and is not loaded for it: it reads the environment when it is.
    """
    settings = {
        "jax_compilation_cache_dir": platformdirs.user_cache_dir("attractor"),
        "jax_persistent_cache_min_compile_time_secs": 0.1,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    settings = {name: value for name, value in settings.items() if name.upper() not in os.environ}
    if "jax" not in sys.modules:
        os.environ.update({name.upper(): str(value) for name, value in settings.items()})
        return
    import jax

    for name, value in settings.items():
        jax.config.update(name, value)
