"""What kind of machine this is, and where programs compiled for it are kept.

Compiled code fits one kind of processor, and the last bits of results depend on it as well: XLA
compiles for the instructions at hand, and OpenBLAS chooses its kernels by the processor's model.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import zlib
from pathlib import Path

import platformdirs

from attractor.support.checks import check_path
from attractor.support.errors import InvalidInputError

_LIBRARIES = ("jaxlib", "numpy", "scipy")
_SETTINGS = (
    "JAX_PLATFORMS",
    "JAX_PLATFORM_NAME",
    "OPENBLAS_CORETYPE",
    "NPY_DISABLE_CPU_FEATURES",
    "NPY_ENABLE_CPU_FEATURES",
)
"""Variables of the environment that choose other code."""
_HARMLESS = ("--xla_dump", "--xla_force_host_platform_device_count")
"""Flags of XLA that leave what is compiled as it is."""
_PROCESSOR_FILE = Path("/proc/cpuinfo")
_GRAPHICS_FOLDER = Path("/proc/driver/nvidia/gpus")
_TELLING = {
    *("vendor_id", "cpu family", "model", "model name", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features"),
    *("cpu", "isa", "uarch"),
}
"""Lines of the processor file that say which instructions there are, and how fast each is."""
_CHARACTERS = 2**14
"""Of the file: more than the first processor's part, and not that of a hundred others."""


@functools.cache
def kind_of_processor() -> str:
    """The kind of machine, as a short text such as ``"x86_64-5d41402a"``.

    It stands for all that is known to bear on compiled code and on the last bits of results: the
    model of the processor and its instructions, graphics processors that NVIDIA's driver lists,
    the versions of jaxlib, NumPy and SciPy, the flags of XLA, and variables that choose the
    platform of JAX and the kernels of BLAS and NumPy. Two machines with the same text compute the
    same bits, and can share compiled programs; with another text they may still.

    It is found once a process, in a millisecond, without loading JAX. Of processors that differ
    among themselves it reads the first. Where there is no ``/proc/cpuinfo`` it has what the system
    says of itself: a new version of macOS makes a new kind.
    """
    told = [*_processor(), *_graphics(), *map(_version, _LIBRARIES)]
    flags = os.environ.get("XLA_FLAGS", "").split()
    told += sorted(flag for flag in flags if not flag.startswith(_HARMLESS))
    told += [f"{name}={os.environ.get(name, '')}" for name in _SETTINGS]
    return f"{_architecture()}-{zlib.crc32(chr(0).join(told).encode()):08x}"


def use_compilation_cache(folder: str | os.PathLike[str] | None = None) -> None:
    """Keeps what JAX compiles in a folder, for this process and later ones.

    Compiling a training step takes seconds, and reading it back a tenth of that. There is a
    subfolder for each kind of machine (``kind_of_processor``), so that several kinds may share the
    folder: a program run on a processor that lacks its instructions would end the process.

    Processes may share it and start cold together. They then compile the same programs side by
    side, to the same bits, and each finds what another has finished; where a file is half written,
    JAX warns, and compiles. Set no limit on the size (``JAX_COMPILATION_CACHE_MAX_SIZE``): readers
    may then fail on files that another process removes. Whoever can write to the folder can run
    code in the processes that read it.

    JAX takes long to load, and is not loaded for it: it reads the environment when it is, and so
    do processes started later. What the environment sets stays as it is, such as a folder in
    ``JAX_COMPILATION_CACHE_DIR``, which is taken without a subfolder; and so does one that was set
    in JAX.

    Args:
        folder: Where to keep them, even if the environment names another. By default the user's
            cache folder; where there is none that can be written to, nothing is kept.

    Raises:
        InvalidInputError: If the folder cannot be made.
    """
    settings: dict[str, str | float] = {
        "jax_persistent_cache_min_compile_time_secs": 0.1,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    settings = {name: value for name, value in settings.items() if name.upper() not in os.environ}
    if folder is not None:
        settings[_FOLDER] = str(_made(check_path("folder", folder)))
    elif not _folder_was_chosen() and (default := _default_folder()) is not None:
        settings[_FOLDER] = str(default)
    if "jax" not in sys.modules:
        os.environ.update({name.upper(): str(value) for name, value in settings.items()})
        return
    from jax.experimental.compilation_cache import compilation_cache

    for name, value in settings.items():
        sys.modules["jax"].config.update(name, value)
    if _FOLDER in settings:  # JAX looks for its folder once, when it compiles for the first time
        compilation_cache.reset_cache()


_FOLDER = "jax_compilation_cache_dir"


def _folder_was_chosen() -> bool:
    """Whether the environment, or JAX itself, has a folder already."""
    if _FOLDER.upper() in os.environ:
        return True
    jax = sys.modules.get("jax")
    return jax is not None and getattr(jax.config, _FOLDER, None) is not None


def _default_folder() -> Path | None:
    """The subfolder of the user's cache folder; None where there is none to write to."""
    try:
        default = Path(platformdirs.user_cache_dir("attractor"), "xla", kind_of_processor())
        if not default.is_absolute():  # without a home folder it lies in the working directory
            return None
        default.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return default if os.access(default, os.W_OK | os.X_OK) else None


def _made(folder: Path) -> Path:
    """The subfolder of this kind of machine."""
    own = folder.absolute() / kind_of_processor()
    try:
        own.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            "folder",
            f"{own} cannot be made ({error.strerror})",
            "Give a folder that you may write to",
        ) from None
    return own


def _processor() -> list[str]:
    """What the first processor says of itself."""
    try:
        with _PROCESSOR_FILE.open(errors="replace") as file:
            first = file.read(_CHARACTERS).partition("\n\n")[0]
    except OSError:
        release = os.uname().version if hasattr(os, "uname") else ""
        return [release, os.environ.get("PROCESSOR_IDENTIFIER", "")]
    lines = (line.partition(":") for line in first.splitlines())
    return [value.strip() for name, _, value in lines if name.strip() in _TELLING]


def _graphics() -> list[str]:
    """The models of graphics processors, each once."""
    models = set()
    try:
        for file in _GRAPHICS_FOLDER.glob("*/information"):
            models.add(file.read_text(errors="replace").partition("\n")[0])
    except OSError:
        pass
    return sorted(models)


def _version(library: str) -> str:
    """What a library's own file says of its version, without loading the library."""
    found = importlib.util.find_spec(library)
    try:
        assert found is not None and found.origin is not None
        return Path(found.origin).with_name("version.py").read_text()
    except (AssertionError, OSError):
        return ""


def _architecture() -> str:
    if hasattr(os, "uname"):
        return os.uname().machine
    return os.environ.get("PROCESSOR_ARCHITECTURE", "unknown").lower()
