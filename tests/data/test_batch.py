"""Batches as one array: the middle or all of an image at one size, and what cannot be put together."""

import numpy as np
import pytest
from PIL import Image

from bitscale.data.batch import one_array, to_size
from bitscale.errors import InputError

RNG = np.random.default_rng(0)
WIDE = RNG.integers(0, 256, (20, 40, 3), np.uint8)


def test_a_square_is_the_middle_or_all_of_an_image():
    middle, whole = (to_size([WIDE], (10, 10), colour=True, middle=middle)[0] for middle in (True, False))
    expected = np.asarray(Image.fromarray(WIDE[:, 10:30]).resize((10, 10), Image.BILINEAR))
    np.testing.assert_array_equal(middle, expected)
    np.testing.assert_array_equal(whole, np.asarray(Image.fromarray(WIDE).resize((10, 10), Image.BILINEAR)))


def test_a_rectangle_is_the_middle_part_of_that_shape():
    middle, whole = (to_size([WIDE], (10, 4), colour=True, middle=middle)[0] for middle in (True, False))
    expected = np.asarray(Image.fromarray(WIDE[:, 16:24]).resize((4, 10), Image.BILINEAR))
    np.testing.assert_array_equal(middle, expected)
    np.testing.assert_array_equal(whole, np.asarray(Image.fromarray(WIDE).resize((4, 10), Image.BILINEAR)))
    tall = to_size([WIDE.transpose(1, 0, 2)], (10, 20), colour=True, middle=True)[0]
    assert tall.shape == (10, 20, 3)
    np.testing.assert_array_equal(
        tall, np.asarray(Image.fromarray(WIDE.transpose(1, 0, 2)[15:25]).resize((20, 10), Image.BILINEAR))
    )


def test_grey_goes_into_all_colours_where_asked_for():
    grey = WIDE[..., :1]
    coloured, plain = (to_size([grey], (8, 8), colour=colour, middle=True)[0] for colour in (True, False))
    assert (coloured.shape, plain.shape) == ((8, 8, 3), (8, 8, 1))
    np.testing.assert_array_equal(coloured, np.repeat(plain, 3, axis=2))


def test_one_array_or_which_image_does_not_fit():
    assert one_array([WIDE, WIDE], (3, 20, 40)).shape == (2, 20, 40, 3)
    with pytest.raises(InputError, match=r"20x40 with 3.* Got one of 20x40 with 1"):
        one_array([WIDE, WIDE[..., :1]], (3, 20, 40))
