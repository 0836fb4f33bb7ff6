"""The steps of a run that are recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int

from attractor.support.errors import InvalidInputError
from attractor.support.memory import require_memory_for_list
from attractor.support.precision import as_plain

_RECORDS = 60


def record_steps(steps: int, record: Any = None) -> Int[np.ndarray, "records"]:
    """The steps at which a run is recorded, in increasing order, the last one among them.

    Args:
        steps: Number of steps of the run.
        record: The user's choice; the last step is added to it. Default: step 0, every small
            step, then about 60 in all, evenly spread over the logarithm of the step.

    Raises:
        InvalidInputError: If ``record`` holds anything but integers from 0 to ``steps``.
    """
    if record is None:
        spread = np.geomspace(1, max(steps, 1), _RECORDS)
        chosen = np.concatenate([[0], np.rint(spread).astype(np.int64)])
    else:
        require_memory_for_list("record", record, each=40)
        chosen = np.atleast_1d(as_plain("record", record))
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or chosen.size == 0:
            raise InvalidInputError("record", f"{record!r} is not a list of steps", "Give integers")
        if chosen.min() < 0 or chosen.max() > steps:
            raise InvalidInputError(
                "record",
                f"it asks for steps from {chosen.min()} to {chosen.max()}",
                f"Give steps from 0 to {steps}",
            )
    return np.unique(np.append(chosen.astype(np.int64), steps))
