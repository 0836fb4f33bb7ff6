"""Sweeps: an experiment at every point of a grid, a million trials, here or on a cluster.

A sweep is called again until it is done; its store is opened as labeled arrays::

    import attractor as at

    grid = at.maps.sweeps.Grid({"n": [2, 4, 8], "T": [4, 8], "d": [10]}, instances=1000)
    at.maps.sweeps.sweep(grid, at.maps.sweeps.built_in("margins"), "margins.zarr", cluster=2)
    at.maps.sweeps.open_sweep("margins.zarr")

It needs what ``pip install 'attractor[sweep]'`` installs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.maps.sweeps._sweep import SweepSummary as SweepSummary, sweep as sweep
    from attractor.maps.sweeps.averages import average_trials as average_trials
    from attractor.maps.sweeps.experiment import (
        Experiment as Experiment,
        Measure as Measure,
        built_in as built_in,
        from_python as from_python,
    )
    from attractor.maps.sweeps.grid import Chunk as Chunk, Grid as Grid
    from attractor.maps.sweeps.plan import (
        Plan as Plan,
        example_plan as example_plan,
        load_plan as load_plan,
    )
    from attractor.maps.sweeps.storage.arrays import open_sweep as open_sweep
    from attractor.maps.sweeps.storage.contents import (
        Failure as Failure,
        SweepCheck as SweepCheck,
        SweepStatus as SweepStatus,
        check_sweep as check_sweep,
        sweep_status as sweep_status,
    )
    from attractor.maps.sweeps.transitions import crossings as crossings, transition as transition

import_on_first_use(__name__)
