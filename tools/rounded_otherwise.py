"""A plugin of pytest that rounds NumPy's and SciPy's linear algebra as another processor might.

The last digit of each number is moved up, down or not, which follows from the number, the function
and the shape of a matrix alone. So the same call has the same bits, in a batch or alone, as the
library promises; and two ways to one number differ, as they do where LAPACK has other code for the
processor. Whole numbers stay, as LAPACK is mostly exact there.
"""

from __future__ import annotations

import functools
import types
import zlib
from typing import Any

import numpy as np
import scipy.linalg

FUNCTIONS = {
    np.linalg: "cholesky det eigh eigvalsh inv lstsq norm pinv qr solve svd svdvals",
    scipy.linalg: "cho_solve lstsq lu_solve null_space qr solve_triangular svd",
}
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # an odd number that mixes the bits it is multiplied with


def rounded(found: Any, salt: int) -> Any:
    """Moves the last digits of an answer, or of the arrays in one, by numbers that salt chooses."""
    if isinstance(found, tuple):
        parts = [rounded(part, salt + number) for number, part in enumerate(found)]
        return type(found)(*parts) if hasattr(found, "_fields") else tuple(parts)
    if not isinstance(found, np.ndarray | np.floating) or found.dtype != np.float64:
        return found
    array = np.atleast_1d(np.ascontiguousarray(found))
    mixed = (array.view(np.uint64) ^ np.uint64(salt)) * FACTOR
    places = (mixed >> np.uint64(33)) % np.uint64(3)
    moved = array * (1 + (places.astype(float) - 1) * np.finfo(float).eps)
    kept = (array == np.rint(array)) | ~np.isfinite(array)
    return np.where(kept, array, moved).reshape(np.shape(found))[()]


def replace(module: types.ModuleType, name: str) -> None:
    """Puts a function that rounds otherwise in the place of one."""
    function = getattr(module, name)

    @functools.wraps(function)
    def otherwise(*arguments: Any, **options: Any) -> Any:
        found = function(*arguments, **options)
        if name == "norm" and isinstance(options.get("axis"), int):
            return found  # a plain sum, without LAPACK
        shapes = [one.shape[-2:] for one in arguments if isinstance(one, np.ndarray)]
        chosen = {k: options[k] for k in sorted(options) if k != "axis"}
        chosen = [one for one in (*arguments, *chosen.items()) if not isinstance(one, np.ndarray)]
        return rounded(found, zlib.crc32(repr((name, shapes, chosen)).encode()))

    setattr(module, name, otherwise)


for module, names in FUNCTIONS.items():
    for name in names.split():
        replace(module, name)
