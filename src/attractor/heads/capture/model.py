"""Models and tokenizers of transformers, from a local folder and nowhere else."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from attractor.support.checks import shown
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import seeded

_LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
_REMEDY = "Give a model of transformers, or the folder that one was saved in"
_NO_TOKENIZER = "Save it there too, with tokenizer.save_pretrained"
_SHOWN = 3
"""Names of missing weights that an error lists."""


def is_folder(model: Any) -> bool:
    """Whether a model is given by a folder, which then must be there.

    Raises:
        InvalidInputError: If it is the name of a folder that holds no model, or of none.
    """
    if not isinstance(model, str | os.PathLike):
        return False
    folder = Path(model)
    if not folder.is_dir():
        raise InvalidInputError(
            "model", f"there is no folder {shown(os.fspath(model))}; nothing is downloaded", _REMEDY
        )
    if not (folder / "config.json").is_file():
        raise InvalidInputError("model", f"the folder {folder} has no config.json", _REMEDY)
    return True


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No bars and warnings of transformers: what matters about a folder is an error here."""
    from transformers.utils import logging

    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@_quiet()
@seeded(purpose="a model that is loaded")
def load_model(folder: str | os.PathLike[str]) -> torch.nn.Module:
    """The model of a folder, in single precision or double, with all of its weights.

    No code of the folder is run, and weights are read from safetensors or as plain tensors.

    Raises:
        InvalidInputError: If it cannot be loaded, or lacks weights.
    """
    import transformers

    path = os.fspath(folder)
    try:
        configuration = transformers.AutoConfig.from_pretrained(path, **_LOCAL)
        names = getattr(configuration, "architectures", None) or []
        kinds = [getattr(transformers, name, None) for name in names if isinstance(name, str)]
        models = [
            one
            for one in kinds
            if isinstance(one, type) and issubclass(one, transformers.PreTrainedModel)
        ]
        kind: Any = models[0] if models else transformers.AutoModel
        model, report = kind.from_pretrained(
            path,
            config=configuration,
            attn_implementation="eager",  # a folder may name code to be downloaded
            dtype=_precision(configuration),
            weights_only=True,
            output_loading_info=True,
            **_LOCAL,
        )
    except Exception as error:  # of any kind, as files are damaged in any way
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise InvalidInputError(
            "model", f"the folder {path} cannot be loaded ({reason})", "Save it again"
        ) from error
    missing = sorted(report["missing_keys"])
    if missing:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise InvalidInputError(
            "model",
            f"the folder {path} lacks weights: {', '.join(missing[:_SHOWN])}{more}",
            "Give the whole model: heads with random weights say nothing",
        )
    return model


@_quiet()
@seeded(purpose="a tokenizer that is loaded")
def load_tokenizer(folder: str | os.PathLike[str]) -> Any:
    """The tokenizer of a folder.

    Raises:
        InvalidInputError: If there is none that can be loaded.
    """
    import transformers

    path = os.fspath(folder)
    try:
        found = transformers.AutoTokenizer.from_pretrained(path, **_LOCAL)
        words = set(found.get_vocab()) - set(found.all_special_tokens)
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise InvalidInputError(
            "tokenizer", f"the folder {path} has none that can be loaded ({reason})", _NO_TOKENIZER
        ) from error
    if not words:  # some are made of nothing
        raise InvalidInputError("tokenizer", f"the folder {path} has no vocabulary", _NO_TOKENIZER)
    return found


def check_model(model: Any) -> torch.nn.Module:
    """Checks that an object is a model whose numbers are precise enough.

    Raises:
        InvalidInputError: If it is none, or its weights are in half precision or not there.
    """
    if not isinstance(model, torch.nn.Module) or not hasattr(model, "config"):
        raise InvalidInputError("model", f"{shown(model)} is no model of transformers", _REMEDY)
    for name, weight in model.named_parameters():
        if weight.device.type == "meta":
            raise InvalidInputError("model", f"{name} has no numbers", "Load the whole model")
        if weight.is_floating_point() and weight.dtype not in (torch.float32, torch.float64):
            kind = str(weight.dtype).removeprefix("torch.")
            raise InvalidInputError(
                "model",
                f"its weights are {kind}, too coarse to define a margin",
                "Give model.float()",
            )
    return model


def weights_hash(model: torch.nn.Module) -> str:
    """The SHA-256 of all weights and their names."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        if isinstance(tensor, torch.Tensor):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
            flat = tensor.detach().cpu().contiguous().reshape(-1)
            digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _precision(configuration: Any) -> torch.dtype:
    stored = getattr(configuration, "dtype", None)
    return torch.float64 if stored in (torch.float64, "float64") else torch.float32
