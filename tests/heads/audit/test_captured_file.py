"""Files of captured heads, whole and damaged."""

import dataclasses
import errno
import os
import shutil

import h5py
import numpy as np
import pytest

from attractor.heads import Captured, CapturedLayer, CaptureStatus, Projections, load_captured
from attractor.heads.captured.captured_file import writing_captured
from attractor.support.containers import netcdf_contents as netcdf
from attractor.support.errors import AttractorError, FileFormatError, InvalidInputError, WriteError

ARRAYS = ("queries", "keys", "allowed", "attention", "values", "self_check")


def planted(rng, layers=(0, 2), count=40, dtype=np.float32):
    """Heads of several layers; a part of them is not bilinear."""

    def layer():
        allowed = rng.random((count, 6)) < 0.7
        allowed[:, 0] = True
        return CapturedLayer(
            queries=rng.normal(size=(count, 4, 3)).astype(dtype),
            keys=rng.normal(size=(count, 2, 6, 3)).astype(dtype),
            allowed=allowed,
            attention=rng.random((count, 4, 6)).astype(dtype),
            values=rng.normal(size=(count, 2, 6, 5)).astype(dtype),
            self_check=rng.random(4),
            status=(CaptureStatus.BILINEAR, *(CaptureStatus.NOT_BILINEAR,) * 3),
            projections=Projections(
                query=rng.normal(size=(4, 3, 7)).astype(dtype), key=rng.normal(size=(2, 3, 8))
            ),
        )

    return Captured(
        {number: layer() for number in layers},
        document=np.arange(count) // 2,
        position=rng.integers(6, size=count),
        token=rng.choice(np.array(["the", "ä", "", "##ing", "\ud7ff"], object), (count, 6)),
        special=rng.random((count, 6)) < 0.2,
        origin={"model": "BertModel", "seed": "0"},
    )


def assert_same(one, other):
    assert one.layers == other.layers and one.origin == other.origin
    for name in ("document", "position", "token", "special"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for number in one.layers:
        first, second = one.layer(number), other.layer(number)
        assert first.status == second.status
        for name in ARRAYS:
            a, b = getattr(first, name), getattr(second, name)
            assert (a is None and b is None) or (a.dtype == b.dtype and np.array_equal(a, b))
        assert (first.projections is None) == (second.projections is None)
        for name in ("query", "bias", "key") if first.projections else ():
            a, b = getattr(first.projections, name), getattr(second.projections, name)
            assert (a is None and b is None) or (a.dtype == b.dtype and np.array_equal(a, b))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_saved_comes_back(rng, tmp_path, dtype):
    captured = planted(rng, dtype=dtype)
    captured.save(tmp_path / "a.nc")
    assert_same(load_captured(tmp_path / "a.nc"), captured)
    assert os.listdir(tmp_path) == ["a.nc"]


def test_pieces_written_in_any_order_and_anew(rng, tmp_path):
    """As captured batch by batch, where some batches begin anew with fewer queries."""
    captured = planted(rng, count=7)

    def piece(layer, first, last):
        rows = {name: getattr(layer, name)[first:last] for name in ARRAYS[:-1]}
        return dataclasses.replace(layer, **rows)

    with writing_captured(tmp_path / "a.nc") as writer:
        for number, layer in captured:
            writer.write(number, piece(layer, 2, 7), 0)  # which is replaced
            writer.write(number, piece(layer, 0, 3), 0)
        for number, layer in captured:
            writer.write(number, piece(layer, 3, 7), 3)
            writer.write(number, piece(layer, 0, 5), 7)  # which no query is of
        header = Captured(
            writer.layers(7),
            document=captured.document,
            position=captured.position,
            token=captured.token,
            special=captured.special,
            origin=captured.origin,
        )
        writer.describe(header)
    assert_same(header, captured)
    assert_same(load_captured(tmp_path / "a.nc"), captured)


def test_a_layer_is_read_alone_and_needs_no_more_memory(rng, tmp_path, monkeypatch):
    planted(rng, layers=range(5), count=400).save(tmp_path / "a.nc")
    of_one = 400 * (4 * 3 + 2 * 6 * 8 + 4 * 6) * 4
    needed = []
    monkeypatch.setattr(netcdf, "check_declared", lambda file, declared: needed.append(declared))
    captured = load_captured(tmp_path / "a.nc")
    captured.layer(3)
    assert len(needed) == 2 and needed[0] < of_one < needed[1] < 1.2 * of_one


def test_many_queries_of_many_tokens(rng, tmp_path):
    count = 20_000
    token = [[str(2 * place), str(2 * place + 1)] for place in range(count)]
    keys, queries = rng.normal(size=(count, 2, 1)), rng.normal(size=(count, 1))
    captured = Captured.from_arrays(keys, queries, token=token)
    captured.save(tmp_path / "a.nc")
    assert_same(load_captured(tmp_path / "a.nc"), captured)


def test_tokens_that_are_no_text_of_a_file(rng, tmp_path):
    captured = planted(rng, count=2)
    captured.token[0, :2] = ["a\0", "\ud800"]
    captured.save(tmp_path / "a.nc")
    assert load_captured(tmp_path / "a.nc").token[0, :2].tolist() == ["a\u2400", "?"]


def test_a_block_that_fails_leaves_nothing(rng, tmp_path):
    captured = planted(rng)
    with pytest.raises(KeyError), writing_captured(tmp_path / "a.nc") as writer:
        writer.write(0, captured.layer(0))
        raise KeyError
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_one_error(rng, tmp_path, monkeypatch):
    """Writes that fail late, too, when HDF5 has begun to buffer."""
    planted(rng).save(tmp_path / "a.nc")
    before = (tmp_path / "a.nc").read_bytes()

    def failing(stream, place, content):
        if place + len(content) > 20_000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        stream._file.seek(place)
        stream._file.write(content)

    monkeypatch.setattr("attractor.support.storage.streamed._UnfailingStream._put", failing)
    with pytest.raises(WriteError, match=r"a\.nc cannot be written: No space left on device"):
        planted(rng).save(tmp_path / "a.nc")
    assert os.listdir(tmp_path) == ["a.nc"] and (tmp_path / "a.nc").read_bytes() == before


def test_more_than_the_disk_holds_is_refused_before(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    with (
        pytest.raises(WriteError, match=r"No space left on device for [\d,.]+ GB"),
        writing_captured(tmp_path / "a.nc", needed=2 * free),
    ):
        raise AssertionError


def test_other_endings_and_files_that_are_not_there(rng, tmp_path):
    with pytest.raises(InvalidInputError, match=r"path: .*ends in '.npz'"):
        planted(rng).save(tmp_path / "a.npz")
    with pytest.raises(InvalidInputError, match="there is no file"):
        load_captured(tmp_path / "b.nc")


def set_array(place, change):
    def apply(stored):
        array = stored[place][...]
        stored[place][...] = change(array)

    return apply


def of_another_kind(stored):
    stored.attrs["format"] = "attractor run"


def of_a_later_version(stored):
    stored.attrs["version"] = 2


def without_origin(stored):
    del stored.attrs["origin"]


def of_numbers_for_an_origin(stored):
    stored.attrs["origin"] = '{"a": 1}'


def without_a_layer(stored):
    del stored["layer_2"]


def without_keys(stored):
    del stored["layer_2/keys"]


def with_a_status_of_its_own(stored):
    del stored["layer_2/status"]
    stored["layer_2/status"] = ["fine"] * 4
    stored["layer_2/status"].dims[0].attach_scale(stored["layer_2/head"])


DAMAGES = [
    of_another_kind, of_a_later_version, without_origin, of_numbers_for_an_origin, without_a_layer,
    without_keys, with_a_status_of_its_own,
    set_array("text_of", lambda codes: codes + 100),
    set_array("layers", lambda numbers: numbers * 0),
    set_array("layer_2/keys", lambda keys: keys * np.nan),
    set_array("layer_2/allowed", lambda allowed: allowed * 0),
    set_array("document", lambda document: -1 - document),
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files(rng, tmp_path, damage):
    planted(rng).save(tmp_path / "a.nc")
    with h5py.File(tmp_path / "a.nc", "r+") as stored:
        damage(stored)
    with pytest.raises(FileFormatError, match=r"a\.nc"):
        load_captured(tmp_path / "a.nc").layer(2)


@pytest.mark.long
def test_files_cut_short_or_changed_anywhere(rng, tmp_path):
    planted(rng, layers=[0], count=3).save(tmp_path / "a.nc")
    content = (tmp_path / "a.nc").read_bytes()
    for _ in range(15):
        other = bytearray(content)
        if rng.random() < 0.2:
            other = other[: rng.integers(len(other))]
        else:
            other[rng.integers(len(other))] ^= 1 << rng.integers(8)
        (tmp_path / "b.nc").write_bytes(other)
        try:
            found = load_captured(tmp_path / "b.nc")
            for number in found.layers:
                found.layer(number)
        except AttractorError:
            pass
