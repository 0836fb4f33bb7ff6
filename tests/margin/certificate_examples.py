"""Certificates that tests corrupt, and the checker loaded from its file."""

import importlib.util
import json
import math
from pathlib import Path

import numpy as np

from attractor.geometry import Frobenius, Lp, Nuclear, Schatten, Spectral
from attractor.margin import MarginProblem, solve
from attractor.margin.certificates.certificate_file import contents
from attractor.support.errors import Status

CHECKER = Path(__file__).parents[2] / "tools" / "verify_certificate.py"
GEOMETRIES = (
    Frobenius(), Nuclear(), Spectral(), Schatten(1.5), Schatten(3),
    Lp(1), Lp(1.1), Lp(1.5), Lp(3), Lp(8), Lp(math.inf),
)  # fmt: skip


def load_checker():
    spec = importlib.util.spec_from_file_location("verify_certificate", CHECKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def through_json(file):
    """What reading a written certificate gives."""
    return json.loads(json.dumps(file, allow_nan=False), parse_int=float)


def certificate(problem, geometry=Frobenius(), status=Status.OPTIMAL):  # noqa: B008
    solution = solve(problem, geometry)
    assert solution.status is status, (geometry, solution)
    return through_json(contents(solution))


def inequalities(seed=0, m=12, d=4, e=3):
    """A generic problem: rows that a random matrix keeps on one side."""
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(m, d)), rng.normal(size=(m, e))
    sides = np.sign(np.einsum("md,de,me->m", left, rng.normal(size=(d, e)), right))
    return MarginProblem(left * sides[:, None], right, rng.uniform(0.5, 2, size=m))


def mixed(seed=0):
    """Equalities, and bounds of either sign and zero beside them."""
    rng = np.random.default_rng(seed)
    left, right, W = rng.normal(size=(10, 4)), rng.normal(size=(10, 3)), rng.normal(size=(4, 3))
    margins = np.einsum("md,de,me->m", left, W, right)
    equality = np.arange(10) < 3
    slack = np.where(equality, 0, rng.uniform(0, 0.2, size=10))
    return MarginProblem(left, right, margins - slack, equality)


def contradictory(seed=0, m=40, d=3, e=2):
    """More random rows than any matrix can satisfy."""
    rng = np.random.default_rng(seed)
    return MarginProblem(rng.normal(size=(m, d)), rng.normal(size=(m, e)))
