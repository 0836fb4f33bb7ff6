"""Compiled programs are kept between runs, so that a second one starts at once."""

from __future__ import annotations

import os

import jax
import platformdirs


def use_compilation_cache() -> None:
    """Points JAX's persistent compilation cache at the user's cache folder.

    A folder that the user chose with ``JAX_COMPILATION_CACHE_DIR`` is left as it is.
    """
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", platformdirs.user_cache_dir("attractor"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
