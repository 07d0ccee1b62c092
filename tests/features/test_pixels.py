import numpy as np
import pytest

from bitscale.data import load_dataset
from bitscale.errors import InputError
from bitscale.features import feature_names, make_features


def test_pixels_are_flattened_and_scaled() -> None:
    images = load_dataset("sample").query.images
    seen: list[tuple[int, int]] = []
    found = make_features("pixels").extract(images, lambda *facts: seen.append(facts))
    assert (found.shape, found.dtype) == ((1_000, 784), np.float32)
    assert np.array_equal(found[7], images[7].ravel() / np.float32(255))
    assert seen[-1] == (1_000, 1_000)


def test_arrays_and_lists_will_do() -> None:
    array = np.random.default_rng(0).integers(0, 256, (3, 4, 4, 3), np.uint8)
    pixels = make_features("pixels")
    assert np.array_equal(pixels.extract(array), pixels.extract(list(array)))
    assert pixels.extract(array[:0]).shape[0] == 0


def test_mixed_sizes_need_a_size() -> None:
    mixed = [np.zeros((4, 4, 3), np.uint8), np.zeros((5, 4, 3), np.uint8)]
    with pytest.raises(InputError, match="pixels@32"):
        make_features("pixels").extract(mixed)
    assert make_features("pixels@2").extract(mixed).shape == (2, 12)


def test_given_vectors() -> None:
    none = make_features("none")
    vectors = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    assert np.array_equal(none.extract(vectors), vectors)
    with pytest.raises(InputError, match="uint8 of shape"):
        none.extract(np.zeros((3, 4, 4), np.uint8))
    vectors[1, 1] = np.nan
    with pytest.raises(InputError, match="NaN"):
        none.extract(vectors)


def test_names() -> None:
    assert "gist" in feature_names()
    with pytest.raises(InputError, match="did you mean 'gist'"):
        make_features("gits")
    with pytest.raises(InputError, match="follows @"):
        make_features("gist@big")
    with pytest.raises(InputError, match="weights="):
        make_features("gist", weights="x")
    with pytest.raises(InputError, match="1 to 2048"):
        make_features("pixels@0")
