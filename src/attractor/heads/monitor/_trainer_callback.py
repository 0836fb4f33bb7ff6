"""A function that transformers' Trainer calls after every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attractor.support.checks import check_function
from attractor.support.errors import InvalidInputError


def trainer_callback(call: Callable[[int, Any], None]) -> Any:
    """A callback for ``Trainer.add_callback`` that calls a function with step and model.

    ``trainer.add_callback(trainer_callback(monitor))`` records heads with a ``HeadMonitor``, which
    says before the first step whether they can be read (``check``). Where several processes train,
    the first alone calls it.

    Args:
        call: Called with the number of the step and the model, after every step of the optimizer.

    Raises:
        InvalidInputError: If it cannot be called, or transformers is not installed.
    """
    check_function("call", call, "Give a HeadMonitor, or a function of step and model")
    try:
        from transformers import TrainerCallback
    except ImportError:
        raise InvalidInputError(
            "call", "transformers is not installed", 'Install "attractor[transformers]"'
        ) from None

    check = getattr(call, "check", None)

    class Calling(TrainerCallback):
        def on_train_begin(
            self, args: Any, state: Any, control: Any, model: Any = None, **_: Any
        ) -> None:
            if check is not None and state.is_world_process_zero:
                check(model)

        def on_step_end(
            self, args: Any, state: Any, control: Any, model: Any = None, **_: Any
        ) -> None:
            if state.is_world_process_zero:
                call(state.global_step, model)

    return Calling()
