import functools

import numpy as np

from attractor.geometry import Lp
from attractor.results.provenance.fingerprint import describe, differences, digest, program_digest


def metric(snapshot):
    return snapshot


def test_arrays_differ_by_bits_shape_and_type():
    array = np.arange(6.0)
    others = [array.reshape(2, 3), array.astype(np.float32), -array, np.nextafter(array, 9)]
    assert len({digest(array), *map(digest, others)}) == 5
    assert digest(array.reshape(2, 3).T) == digest(np.array([[0.0, 3], [1, 4], [2, 5]]))
    assert digest(np.float64(3)) != digest(np.array([3.0]))
    assert digest(np.zeros((0, 2))) != digest(np.zeros((2, 0)))


def test_descriptions_hold_no_addresses():
    partial = functools.partial(metric, 3)
    described = describe({"f": metric, "g": partial, "norm": Lp(3), "n": np.int64(2), "t": (1, 2)})
    assert described["f"].endswith("test_fingerprint.metric")
    assert "metric" in described["g"] and "0x" not in described["g"]
    assert described["n"] == 2 and described["t"] == [1, 2]
    assert describe(Lp(3)) != describe(Lp(2.5))
    assert program_digest("f at 0x12ab") == program_digest("f at 0x34cd") != program_digest("g")


def test_differences_name_the_setting_and_both_values():
    old = {"a": {"b": 1.0, "d": "x", "c": float("nan")}, "gone": 1}
    new = {"a": {"b": 2.0, "d": "x", "c": float("nan")}}
    assert differences(old, new) == ["a.b was 1.0 and is 2.0", "gone was 1 and is nothing"]
    assert differences(old, old) == []
