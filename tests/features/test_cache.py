from pathlib import Path

import numpy as np
import pytest

from bitscale.arrays import Float32
from bitscale.data.images import ArrayImages
from bitscale.errors import FileError
from bitscale.features import cache as cache_module
from bitscale.features.base import Features

N = 50
IMAGES = ArrayImages(np.random.default_rng(0).integers(0, 256, (N, 2, 2), np.uint8))


class Counting(Features):
    """Counts the images it saw, and may stop after some."""

    name, dim, batch_size = "counting", 4, 3

    def __init__(self, cache: Path, stop: int | None = None, settings: str = "") -> None:
        self.cache, self.stop, self.said, self.seen = cache, stop, settings, 0

    @property
    def settings(self) -> str:
        return self.said

    def compute(self, prepared: np.ndarray) -> Float32:
        if self.stop is not None and self.seen + len(prepared) > self.stop:
            raise KeyboardInterrupt
        self.seen += len(prepared)
        return prepared.reshape(len(prepared), -1).astype(np.float32)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "CHUNK", 10)  # four batches of 3


EXPECTED = IMAGES.pixels.reshape(N, -1).astype(np.float32)


def test_done_once(tmp_path: Path) -> None:
    first, second = Counting(tmp_path), Counting(tmp_path)
    assert np.array_equal(first.extract(IMAGES), EXPECTED)
    seen: list[tuple[int, int]] = []
    again = second.extract(IMAGES, lambda *facts: seen.append(facts))
    assert np.array_equal(again, EXPECTED)
    assert isinstance(again, np.memmap)
    assert (first.seen, second.seen, seen) == (N, 0, [(N, N)])
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".lock", ".npy"]


def test_other_images_or_settings_are_other_results(tmp_path: Path) -> None:
    Counting(tmp_path).extract(IMAGES)
    other = Counting(tmp_path, settings="size=9")
    other.extract(IMAGES)
    some = Counting(tmp_path)
    assert np.array_equal(some.extract(IMAGES.take(np.arange(5))), EXPECTED[:5])
    assert (other.seen, some.seen) == (N, 5)


@pytest.mark.parametrize("stop", [0, 5, 14, 25, 49])
def test_an_interruption_loses_a_chunk_at_most(tmp_path: Path, stop: int) -> None:
    broken = Counting(tmp_path, stop)
    with pytest.raises(KeyboardInterrupt):
        broken.extract(IMAGES)
    resumed = Counting(tmp_path)
    assert np.array_equal(resumed.extract(IMAGES), EXPECTED)
    assert broken.seen + resumed.seen - N <= 12  # one chunk: four batches of 3


def interrupted(tmp_path: Path) -> tuple[Path, Path]:
    with pytest.raises(KeyboardInterrupt):
        Counting(tmp_path, 40).extract(IMAGES)
    return next(tmp_path.glob("*.part")), next(tmp_path.glob("*.log"))


@pytest.mark.parametrize("harm", ["cut", "flip", "zeros", "torn line", "nonsense", "no log", "no rows"])
def test_damage_before_resuming_is_found(tmp_path: Path, harm: str) -> None:
    part, log = interrupted(tmp_path)
    rows = bytearray(part.read_bytes())
    if harm == "cut":
        part.write_bytes(rows[:-5])
    elif harm == "flip":
        rows[200] ^= 1
        part.write_bytes(rows)
    elif harm == "zeros":
        part.write_bytes(bytes(len(rows)))
    elif harm == "torn line":
        log.write_bytes(log.read_bytes()[:-2])
    elif harm == "nonsense":
        log.write_bytes(b"9999999999 4 0\n")
    elif harm == "no log":
        log.unlink()
    else:
        part.unlink()
    assert np.array_equal(Counting(tmp_path).extract(IMAGES), EXPECTED)


@pytest.mark.parametrize("suffix", ["npy", "json"])
def test_damage_of_a_finished_result_is_found(tmp_path: Path, suffix: str) -> None:
    Counting(tmp_path).extract(IMAGES)
    path = next(tmp_path.glob(f"*.{suffix}"))
    whole = path.read_bytes()
    for bad in (whole[:-9], whole[:-9] + b"\7" + whole[-8:], b"", b"[1]"):
        path.write_bytes(bad)
        assert np.array_equal(Counting(tmp_path).extract(IMAGES), EXPECTED)


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be used"):
        Counting(tmp_path / "file").extract(IMAGES)
