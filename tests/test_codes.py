import numpy as np
import pytest

import bitscale as bs
from bitscale.errors import InputError


def test_bit_zero_is_the_high_bit_of_byte_zero():
    codes = bs.Codes.from_packed(np.array([[0b1000_0000, 0b0000_0001]], np.uint8))
    assert codes.signs()[0].tolist() == [1] + [-1] * 14 + [1]
    assert codes == bs.Codes.from_signs(codes.signs())


def test_weights_must_not_increase_unless_sorted():
    packed = np.array([[0b0110_0000]], np.uint8)
    with pytest.raises(InputError, match="sort=True"):
        bs.Codes.from_packed(packed, [1.0, 2.0, 2.0], n_bits=3)
    codes = bs.Codes.from_packed(packed, [1.0, 2.0, 2.0], sort=True)
    assert codes.order.tolist() == [1, 2, 0]  # stable
    assert codes.bit_weights.tolist() == [2.0, 2.0, 1.0]
    assert codes.signs()[0].tolist() == [1, 1, -1]


def test_slices_and_rows():
    codes = bs.Codes.from_packed(np.arange(10, dtype=np.uint8)[:, None])
    assert len(codes[3]) == 1
    assert codes[-1].packed[0, 0] == 9
    assert codes[2:5].packed[:, 0].tolist() == [2, 3, 4]
    assert codes[[7, 1]].packed[:, 0].tolist() == [7, 1]
    with pytest.raises(IndexError):
        codes[10]


@pytest.mark.parametrize("bits", [1, 7, 8, 9, 13])
def test_truncation_keeps_the_first_bits(bits):
    rng = np.random.default_rng(0)
    signs = rng.choice([-1, 1], (20, 13))
    codes = bs.Codes.from_signs(signs)
    assert np.array_equal(codes.truncate(bits).signs(), signs[:, :bits])


@pytest.mark.parametrize(
    ("packed", "options", "message"),
    [
        (np.zeros((2, 2), np.int64), {}, "uint8"),
        (np.zeros(2, np.uint8), {}, "shape"),
        (np.zeros((2, 2), np.uint8), {"n_bits": 8}, "1 bytes each"),
        (np.zeros((2, 200), np.uint8), {}, "1024"),
        (np.full((2, 1), 255, np.uint8), {"n_bits": 5}, "must be 0"),
        (np.zeros((2, 1), np.uint8), {"bit_weights": [np.nan] * 8}, "finite"),
        (np.zeros((2, 1), np.uint8), {"bit_weights": [-1.0] * 8}, "not negative"),
        (np.zeros((2, 1), np.uint8), {"bit_weights": [np.inf] * 8}, "finite"),
        (np.zeros((2, 1), np.uint8), {"bit_weights": [0.0] * 8}, "all zero"),
        (np.zeros((2, 1), np.uint8), {"bit_weights": [1e308] * 8}, "infinity"),
        (np.zeros((2, 1), np.uint8), {"bit_weights": [1.0] * 9}, "2 bytes"),
    ],
)
def test_bad_codes_are_refused_with_a_reason(packed, options, message):
    with pytest.raises(InputError, match=message):
        bs.Codes.from_packed(packed, **options)


@pytest.mark.parametrize("values", [[[2.0]], [[np.nan]], [0.5], np.zeros((1, 2000))])
def test_bad_relaxed_values_are_refused(values):
    with pytest.raises(InputError, match="relaxed values"):
        bs.Relaxed(values)


def test_relaxed_values_round_to_codes():
    relaxed = bs.Relaxed([[0.2, -0.1, 0.0]], [3, 2, 1])
    assert relaxed.codes().signs()[0].tolist() == [1, -1, 1]
    assert len(relaxed[0]) == 1
    assert "3" in repr(relaxed)
