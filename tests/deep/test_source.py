import numpy as np
import pytest

from bitscale.data.images import ArrayImages
from bitscale.deep.source import ImageSource, VectorSource, statistics
from bitscale.errors import InputError

RNG = np.random.default_rng(0)


def test_batches_of_images_and_vectors():
    pixels = RNG.integers(0, 256, (6, 4, 5, 3)).astype(np.uint8)
    source = ImageSource(ArrayImages(pixels))
    assert source.shape == (3, 4, 5)
    np.testing.assert_array_equal(source.batch(np.array([4, 1])), pixels[[4, 1]].transpose(0, 3, 1, 2))
    vectors = RNG.normal(size=(6, 7)).astype(np.float32)
    np.testing.assert_array_equal(VectorSource(vectors).batch(np.array([2])), vectors[[2]])
    assert VectorSource(vectors).fingerprint() != VectorSource(vectors[::-1]).fingerprint()


def test_mixed_sizes_and_modes_name_the_cure():
    first = np.zeros((8, 8), np.uint8)
    for other in (np.zeros((8, 9), np.uint8), np.zeros((8, 8, 3), np.uint8)):
        with pytest.raises(InputError, match="Resized"):
            ImageSource([first, other]).batch(np.array([0, 1]))
        with pytest.raises(InputError, match="as the first ones were"):
            ImageSource([first, other]).batch(np.array([1]))
    with pytest.raises(InputError, match="uint8"):
        ImageSource(np.full((3, 8, 8), np.nan))


def test_statistics_are_those_of_the_training_rows():
    pixels = RNG.integers(0, 256, (900, 3, 4, 3)).astype(np.uint8)
    pixels[..., 2] = 7  # a channel that says nothing
    mean, spread = statistics(ImageSource(ArrayImages(pixels)), np.arange(700), seed=0)
    assert mean.shape == spread.shape == (3, 1, 1)
    np.testing.assert_allclose(mean.flatten(), pixels[:700].mean((0, 1, 2)), rtol=1e-5)
    np.testing.assert_allclose(spread.flatten()[:2], pixels[:700].std((0, 1, 2))[:2], rtol=1e-4)
    assert spread.flatten()[2] == spread.max()
    with pytest.raises(InputError, match="all equal"):
        statistics(VectorSource(np.ones((5, 3), np.float32)), np.arange(5), seed=0)
