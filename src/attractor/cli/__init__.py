"""The command line.

Nothing that takes long is imported here: ``main`` first takes charge of Ctrl-C.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

from attractor.cli import interruption, streams
from attractor.support.loaded import leave_out

_LEFT = 141
"""The exit code where the reader of standard output has gone, that of its signal in shells."""


def main() -> None:
    """Runs the command line."""
    interruption.take_charge()
    # Imports and tracing make many objects and few cycles: to look for these as often as Python
    # does took a twentieth of a command's time.
    gc.set_threshold(400_000)
    if "sweep" not in sys.argv:
        # Where Dask is installed, xarray loads all of it to see that no array is one of Dask's,
        # which takes as long as to load JAX.
        leave_out("dask")
    with streams.prepared():
        code = _run()
    gc.freeze()  # to look for cycles once more, at the very end, takes half a second
    sys.exit(interruption.exit_code() or (_LEFT if streams.left else code))


def _run() -> Any:
    """Runs the application and returns its exit code."""
    from attractor.cli.application import app

    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except SystemExit as ended:
        return ended.code
    except streams.OutputError as error:  # outside of a session, which says so itself
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        if not streams.left:
            raise
    return 0
