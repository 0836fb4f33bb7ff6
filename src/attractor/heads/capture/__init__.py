"""The heads of models of transformers on texts, as the models themselves compute them."""

import attractor.torch  # noqa: F401 - says what to install where there is no PyTorch
