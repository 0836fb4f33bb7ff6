"""The heads of models of transformers on texts, as the models themselves compute them.

Importing this package imports PyTorch.
"""

import attractor.torch  # noqa: F401 - says what to install where there is no PyTorch
from attractor.heads.capture._capture_heads import capture_heads

__all__ = ["capture_heads"]
