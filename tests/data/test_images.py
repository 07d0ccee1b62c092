import pickle
import resource
from pathlib import Path

import numpy as np
import pytest

from bitscale.data.images import (
    ArrayImages,
    Joined,
    ListImages,
    RecordImages,
    Resized,
    as_images,
    batches,
    read,
)
from bitscale.errors import DataError, InputError

PIXELS = np.random.default_rng(0).integers(0, 256, (7, 4, 5, 3), np.uint8)


def mapped(tmp_path: Path) -> RecordImages:
    path = tmp_path / "images.bin"
    path.write_bytes(b"head" + b"".join(b"\1\2" + image.tobytes() for image in PIXELS))
    return RecordImages(path, (4, 5, 3), offset=4, skip=2)


def lots(tmp_path: Path) -> list:
    whole = ArrayImages(PIXELS)
    return [
        whole,
        mapped(tmp_path),
        ListImages(list(PIXELS)),
        Joined([ArrayImages(PIXELS[:3]), ArrayImages(PIXELS[3:])]),
        ArrayImages(PIXELS[::-1]).take(np.arange(7)[::-1]),
        ArrayImages(np.ascontiguousarray(PIXELS.transpose(0, 3, 1, 2)), planar=True),
    ]


def test_every_kind_reads_the_same(tmp_path: Path) -> None:
    rows = np.array([5, 0, 3])
    for images in lots(tmp_path):
        assert len(images) == 7
        assert all(np.array_equal(images[i], PIXELS[i]) for i in range(7))
        assert np.array_equal(read(images, rows), PIXELS[rows])
        assert np.array_equal(read(images.take(rows).take(np.array([2, 0])), np.arange(2)), PIXELS[[3, 5]])
        assert np.array_equal(np.concatenate(list(batches(images, 3))), PIXELS)


def test_fingerprints_follow_content_and_order(tmp_path: Path) -> None:
    one, other = ArrayImages(PIXELS), ArrayImages(PIXELS.copy())
    assert one.fingerprint == other.fingerprint
    assert one.take(np.array([0, 1])).fingerprint != one.take(np.array([1, 0])).fingerprint
    changed = PIXELS.copy()
    changed[6, 3, 4, 2] ^= 1
    assert ArrayImages(changed).fingerprint != one.fingerprint
    first = mapped(tmp_path).fingerprint
    path = tmp_path / "images.bin"
    path.write_bytes(path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1]))
    assert RecordImages(path, (4, 5, 3), offset=4, skip=2).fingerprint != first


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    mapped(tmp_path)
    path = tmp_path / "images.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="cut short"):
        RecordImages(path, (4, 5, 3), offset=4, skip=2)


def test_mapped_images_travel_to_another_process(tmp_path: Path) -> None:
    images = mapped(tmp_path)
    assert np.array_equal(images[2], PIXELS[2])
    assert np.array_equal(pickle.loads(pickle.dumps(images))[2], PIXELS[2])


def test_memory_stays_flat(tmp_path: Path) -> None:
    path = tmp_path / "large.bin"
    with path.open("wb") as file:
        file.truncate(400 << 20)
    images = RecordImages(path, (64, 64, 4 * 4))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for start in range(0, len(images), 64):
        read(images, np.arange(start, min(start + 64, len(images))))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 120 << 10  # KB


def test_mixed_sizes_come_as_a_list_and_are_resized_on_demand() -> None:
    images = ListImages([np.zeros((4, 6), np.uint8), np.full((8, 8, 3), 200, np.uint8)])
    assert [image.shape for image in read(images, np.arange(2))] == [(4, 6, 1), (8, 8, 3)]
    small = Resized(images, (3, 2))
    assert [small[i].shape for i in range(2)] == [(3, 2, 1), (3, 2, 3)]
    assert small[1].min() == small[1].max() == 200
    assert small.fingerprint != images.fingerprint


def test_bad_images_are_named() -> None:
    with pytest.raises(InputError, match="uint8"):
        as_images(np.zeros((2, 4, 4)))
    with pytest.raises(InputError, match="1 or 3 channels"):
        as_images(np.zeros((2, 4, 4, 2), np.uint8))
    with pytest.raises(InputError, match="Image 1 is float64"):
        as_images([np.zeros((4, 4), np.uint8), np.zeros((4, 4))])[1]
    with pytest.raises(InputError, match="Got int"):
        as_images(5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="between 0 and 6"):
        ArrayImages(PIXELS).take(np.array([7]))
    with pytest.raises(IndexError):
        Joined([ArrayImages(PIXELS)])[7]
