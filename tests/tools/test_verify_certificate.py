"""The checker: its bounds hold, its verdicts are right, and no file makes it fall over."""

import copy
import json
import math
import subprocess
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from certificate_examples import (
    CHECKER,
    GEOMETRIES,
    certificate,
    contradictory,
    inequalities,
    load_checker,
    mixed,
    through_json,
)
from hypothesis import given, strategies as st

from attractor.support.errors import Status

checker = load_checker()


@pytest.fixture(scope="module")
def valid():
    return certificate(inequalities())


def run(capsys, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["verify_certificate.py", *map(str, arguments)])
    code = checker.main()
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    return code, out


@pytest.mark.processes
def test_it_is_one_short_file_that_needs_the_standard_library_alone(tmp_path, valid):
    assert len(CHECKER.read_text().splitlines()) < 175
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(valid))
    command = [sys.executable, "-I", "-S", str(CHECKER)]  # no installed package can be found
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("ACCEPTED: optimal to ")
    valid = through_json(valid)
    valid["multipliers"][0] += 1.0
    path.write_text(json.dumps(valid))
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("REFUSED: the gap is ")


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_optimal_in_every_geometry(geometry):
    for problem in (inequalities(5), mixed(5)):
        assert checker.verify(certificate(problem, geometry)).startswith("optimal to ")


def test_a_contradiction():
    verdict = checker.verify(certificate(contradictory(), status=Status.INFEASIBLE))
    assert verdict == "infeasible, 7 constraints contradict each other"


def shape():
    return st.tuples(st.integers(1, 6), st.integers(1, 6))


@given(
    shape(),
    st.integers(0, 2**32),
    st.sampled_from([1, 1 + 2.0**-30, 1.01, 1.1, 1.5, 2, 3, 8, 101, 1e9, math.inf]),
    st.sampled_from([1e-150, 1.0, 1e150]),
    st.booleans(),
)
def test_norms_are_bounded_from_above_and_closely(shape, seed, p, scale, graded):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape) * scale
    if graded:
        X = X * 10.0 ** rng.integers(-8, 9, size=(shape[0], 1))
    U, s, V = np.linalg.svd(X, full_matrices=False)
    factors = [U.T.tolist(), s.tolist(), V.tolist()]
    unit = 1 << 1074
    integers = checker.integers(X.tolist(), *shape, unit**3)
    exponent = math.inf if p == math.inf else Fraction(p)
    with mpmath.workdps(80):
        exact = mpmath.svd_r(mpmath.matrix(X.tolist()), compute_uv=False)
        for entrywise, values in ((0, list(exact)), (1, [mpmath.mpf(x) for x in X.ravel()])):
            bound = checker.norm(integers, unit, entrywise, exponent, factors)
            most = max(map(abs, values))
            powers = [(abs(x) / most) ** mpmath.mpf(p) for x in values if x]
            root = 1 if p == math.inf else mpmath.fsum(powers) ** (1 / mpmath.mpf(p))
            ratio = mpmath.mpf(bound.numerator) / bound.denominator / (most * root)
            assert (
                1 - mpmath.mpf("1e-70")
                <= ratio
                <= 1 + (mpmath.mpf("1e-55") if entrywise else 2e-13)
            )


@pytest.mark.long
def test_norms_are_bounded_whatever_the_factors():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, 3))
    integers = checker.integers(X.tolist(), 4, 3, (1 << 1074) ** 3)
    for _ in range(200):
        rank = int(rng.integers(1, 5))
        U, s, V = rng.normal(size=(rank, 4)), rng.normal(size=rank), rng.normal(size=(rank, 3))
        for p in (1, 1.5, 3, math.inf):
            factors = [U.tolist(), s.tolist(), V.tolist()]
            exponent = math.inf if p == math.inf else Fraction(p)
            bound = checker.norm(integers, 1 << 1074, 0, exponent, factors)
            assert bound >= np.linalg.norm(np.linalg.svd(X, compute_uv=False), p)


def test_shortfalls_of_equalities_count_against_the_gap():
    file = certificate(mixed())
    j = file["equality"].index(True)
    rounding = 2.0**-46 * (4 + 3)
    assert file["claim"]["gap"] < 1e-11
    reach = max(
        abs(file["bounds"][j]),
        np.linalg.norm(file["left"][j])
        * np.linalg.norm(file["right"][j])
        * np.linalg.norm(file["W"]),
    )
    reach *= -np.sign(file["multipliers"][j])  # to where W is larger than need be
    file["bounds"][j] += 0.5 * rounding * reach
    file["claim"]["gap"] = 0.5
    assert checker.verify(file)
    file["claim"]["gap"] = 1e-14  # rounding of the solution is below that, the move is not
    with pytest.raises(ValueError, match="gap"):
        checker.verify(file)
    file["claim"]["gap"] = 0.5
    file["bounds"][j] += rounding * reach
    with pytest.raises(ValueError, match="short"):
        checker.verify(file)


def test_zero_is_optimal_where_nothing_asks_for_more():
    problem = inequalities()
    file = certificate(type(problem)(problem.left, problem.right, -problem.bounds))
    assert file["W"] == [[0.0] * 3] * 4
    assert checker.verify(file).startswith("optimal to 0.00e+00, of norm 0.0")


MALFORMED = [
    b"", b"{", b"null", b"[]", b"3", b'"text"', b"\xff\xfe", b"[" * 10**6, b"{}", b"[1e999]",
    b'{"a":' * 10**5, b"9" * 10**5,
]  # fmt: skip


@pytest.mark.parametrize("data", MALFORMED, ids=lambda data: repr(data[:8]))
def test_what_is_no_certificate_at_all(data, tmp_path, capsys, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(data)
    code, out = run(capsys, monkeypatch, path)
    assert code in (1, 2)
    assert out.startswith("REFUSED: ")


def test_no_file(tmp_path, capsys, monkeypatch):
    for arguments in ((), (tmp_path,), (tmp_path / "none",)):
        code, out = run(capsys, monkeypatch, *arguments)
        assert code == 2
        assert out.startswith("REFUSED: unreadable")


WRONG = [
    None, True, "1", "nan", [], {}, [[]], [None], [["1"]], [[True]], -1.0, 1e308, "inf", "0x1",
    math.nan, math.inf, 10**400, [[1.0, 2.0]], {"kind": "optimal"}, {"W": [1, 2, 3]},
]  # fmt: skip


def test_every_entry_replaced_by_something_wrong(valid, tmp_path, capsys, monkeypatch):
    path = tmp_path / "file.json"
    places = [(name,) for name in valid]
    places += [("claim", "kind"), ("claim", "gap"), ("norm", "family"), ("norm", "p")]
    places += [("left", 0), ("left", 0, 0), ("W", 1), ("W", 1, 1), ("multipliers", 0)]
    margins = np.einsum("md,de,me->m", valid["left"], valid["W"], valid["right"])
    places += [("bounds", 0), ("equality", int(np.argmax(margins - valid["bounds"])))]
    for *outer, last in places:
        for value in [KeyError, *WRONG]:
            file = copy.deepcopy(valid)
            inner = file
            for key in outer:
                inner = inner[key]
            if value is KeyError:
                del inner[last]
            else:
                inner[last] = value
            harmless = last == "factors" and value == {}
            path.write_text(json.dumps(file))
            code, out = run(capsys, monkeypatch, path)
            assert (code == 0) == harmless, (outer, last, value, out)


def test_wrong_exponents_are_refused(valid):
    for p in (0.5, 0.0, -2.0, 1 - 2.0**-53):
        file = copy.deepcopy(valid)
        file["norm"]["p"] = p
        with pytest.raises(ValueError, match="below 1"):
            checker.verify(file)


def by_hand(left, bounds, W, multipliers, gap, equality=(False, False)):
    """A certificate for a column W in the Frobenius norm."""
    return {
        "format": "margin certificate 1", "claim": {"kind": "optimal", "gap": gap},
        "norm": {"family": "entrywise", "p": 2.0}, "left": left, "right": [[1.0] for _ in left],
        "bounds": bounds, "equality": list(equality), "W": [[x] for x in W],
        "multipliers": multipliers, "factors": {},
    }  # fmt: skip


def test_gaps_far_below_rounding_are_told_apart():
    # The optimum is the square root of 1 + 2^-80; W has that of 1 + 2^-60.
    rows, tiny = [[1.0, 0.0], [0.0, 1.0]], 2.0**-40
    for gap, enough in ((2.0**-61 * 1.001, True), (2.0**-61 * 0.999, False)):
        file = by_hand(rows, [1.0, tiny], [1.0, 2.0**-30], [1.0, tiny], gap)
        assert accepted(file) == enough
    # The first row is an equality missed by 2^-70, which its multiplier turns into a gap.
    rows = [[1.0, 2.0**-70], [0.0, 1.0]]
    for gap, enough in ((2.0**-70 * 1.001, True), (2.0**-70 * 0.999, False)):
        file = by_hand(rows, [1.0, 1.0], [1.0, 1.0], [1.0, 1.0], gap, (True, False))
        assert accepted(file) == enough


def accepted(file):
    try:
        return bool(checker.verify(file))
    except ValueError:
        return False


def test_sums_are_exact_where_floats_cancel():
    """Terms of 1e17 hide an ordinary one from float64, in margins and in sums of multipliers."""
    big = 1e17
    file = by_hand([[big, 1.0, -big]], [0.5], [1.0, 0.5, 1.0], [1.0], 1e-12, [False])
    with pytest.raises(ValueError, match="gap"):
        checker.verify(file)
    file["claim"] = {"kind": "lower bound", "norm_at_least": 0.499 / math.hypot(big, big)}
    assert checker.verify(file)
    file["W"][1] = [-0.5]
    file["claim"] = {"kind": "optimal", "gap": 0.9}
    with pytest.raises(ValueError, match="positive"):
        checker.verify(file)
