"""Imported first: says what to install where there is no PyTorch."""

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "attractor.torch needs PyTorch. Run `pip install 'attractor[torch]'`", name=error.name
    ) from None
