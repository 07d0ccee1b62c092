from pathlib import Path

import numpy as np
import pytest

from bitscale.data import load_dataset
from bitscale.errors import InputError
from bitscale.features import make_features
from bitscale.features.gist import FINEST, RATIO
from bitscale.hashers import load_hasher, make_hasher
from bitscale.hashers.model_file import read, restore
from tests.features.authors_gist import authors_gist

SIZE = 64


def wave(frequency: float, turn: float, size: int = SIZE) -> np.ndarray:
    """A grating of `frequency` cycles a pixel that travels at `turn` radians from x towards -y (up)."""
    y, x = np.mgrid[:size, :size]
    phase = 2 * np.pi * frequency * (x * np.cos(turn) - y * np.sin(turn))
    return np.round(127.5 + 100 * np.sin(phase)).astype(np.uint8)[..., None]


def energies(images: list[np.ndarray], size: int = SIZE) -> np.ndarray:
    """(n, scale, orientation, row, column)."""
    return make_features(f"gist@{size}").extract(images).reshape(-1, 4, 8, 4, 4).swapaxes(3, 4)


@pytest.mark.slow
@pytest.mark.parametrize("scale", range(4))
@pytest.mark.parametrize("orientation", range(8))
def test_a_grating_is_strongest_at_its_own_scale_and_orientation(scale: int, orientation: int) -> None:
    image = wave(FINEST / RATIO**scale, orientation * np.pi / 8, 128)
    found = energies([image], 128)[0].mean(axis=(2, 3))  # (scale, orientation)
    assert np.unravel_index(found.argmax(), found.shape) == (scale, orientation)


@pytest.mark.parametrize("size", [16, 32, 64])
def test_it_is_what_the_authors_compute(size: int) -> None:
    rng = np.random.default_rng(0)
    smooth = np.cumsum(np.cumsum(rng.normal(size=(3, size, size, 3)), axis=1), axis=2)
    images = [np.clip(127 + 4 * picture, 0, 255).astype(np.uint8) for picture in smooth]
    images += [rng.integers(90, 140, (size, size, 3), np.uint8), wave(0.1, 0.4, size)]  # a low contrast, a grating
    found = make_features(f"gist@{size}").extract(images)
    expected = np.stack([authors_gist(image) for image in images])
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_older_models_keep_their_own_version(tmp_path: Path) -> None:
    images = load_dataset("sample").train.take(np.arange(60))
    first, second = (make_features("gist", version=version) for version in (1, 2))
    assert first.settings != second.settings
    assert not np.allclose(first.extract(images.images), second.extract(images.images))
    hasher = make_hasher("lsh", n_bits=16, features="gist")
    hasher.features_version = 1
    codes = hasher.fit(images).encode(images.images)
    hasher.save(tmp_path / "m")
    assert load_hasher(tmp_path / "m").encode(images.images) == codes
    about, arrays = read(tmp_path / "m")
    del about["features_version"]  # as files were before there were versions
    assert restore(type(hasher), about, arrays, tmp_path / "m").encode(images.images) == codes
    newer = make_hasher("lsh", n_bits=16, features="gist").fit(images)
    newer.save(tmp_path / "n")
    assert load_hasher(tmp_path / "n").encode(images.images) == newer.encode(images.images)
    assert load_hasher(tmp_path / "n").extractor.version == 2
    with pytest.raises(InputError, match="versions 1 and 2"):
        make_features("gist", version=3)


def test_a_constant_image_has_no_energy() -> None:
    assert np.abs(energies([np.full((SIZE, SIZE, 3), 91, np.uint8), np.zeros((SIZE, SIZE, 1), np.uint8)])).max() == 0


def test_a_quarter_turn_permutes_orientations_and_cells() -> None:
    image = np.pad(load_dataset("sample").query.images[3], ((2, 2), (2, 2), (0, 0)))  # 32: not resized
    upright, turned = energies([image, np.rot90(image)], 32)
    # np.rot90 carries the x axis to -y: orientation j becomes j + 4 (mod 8), and cells turn alike
    expected = np.rot90(np.roll(upright, 4, axis=1), axes=(2, 3))
    assert np.abs(upright).max() > 0.01
    np.testing.assert_allclose(turned, expected, atol=1e-3)  # the filters at half a cycle a pixel have one sign only


def test_energy_stays_in_its_cells() -> None:
    image = np.full((SIZE, SIZE, 1), 127, np.uint8)
    image[: SIZE // 4, : SIZE // 4] = wave(FINEST, 0.0)[: SIZE // 4, : SIZE // 4]
    fine = energies([image])[0, 0, 0]
    assert np.unravel_index(fine.argmax(), fine.shape) == (0, 0)
    assert fine[2:, 2:].max() < 0.1 * fine[0, 0]


def test_contrast_and_brightness_hardly_matter() -> None:
    images = load_dataset("sample").query.images
    image = images[0].astype(np.float64)
    plain, dim = energies([image.astype(np.uint8), np.round(image * 0.6).astype(np.uint8)], 32)
    cosine = (plain * dim).sum() / np.linalg.norm(plain) / np.linalg.norm(dim)
    assert cosine > 0.98


@pytest.mark.slow
def test_batches_do_not_change_the_result() -> None:
    images = load_dataset("sample").query.images.take(np.arange(40))
    gist = make_features("gist")
    whole = gist.extract(images)
    gist.batch_size = 7
    np.testing.assert_allclose(gist.extract(images), whole, atol=1e-6)
    assert (whole.shape, whole.dtype, gist.dim) == ((40, 512), np.float32, 512)


def test_bad_sizes() -> None:
    with pytest.raises(InputError, match="16 to 512"):
        make_features("gist@30")
