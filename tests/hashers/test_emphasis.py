import numpy as np
import pytest

from bitscale.errors import InputError
from bitscale.hashers.emphasis import emphasised, shared_weights
from tests.collection.made import hasher

NAMES = ("kind", "colour")
OWN = np.array([4.0, 2.0, 1.0])
LOGITS = np.array([[2.0, 0.0, -30.0], [0.0, 0.0, 30.0]], np.float32)


def test_the_attributes_divide_every_bit_between_them():
    weights = shared_weights(OWN, LOGITS)
    assert np.allclose(weights.mean(0), OWN)
    assert weights[0, 1] == weights[1, 1] == OWN[1]
    assert weights[0, 0] > weights[1, 0]
    assert weights[0, 2] == pytest.approx(0, abs=1e-20)
    assert np.array_equal(shared_weights(OWN, None), OWN[None])


def test_emphasis_is_a_weighted_mean_whatever_its_scale():
    weights = shared_weights(OWN, LOGITS)
    assert np.allclose(emphasised(NAMES, weights, {"kind": 1, "colour": 1}), OWN)
    assert np.allclose(emphasised(NAMES, weights, {"kind": 0.5}), weights[0])
    some = emphasised(NAMES, weights, {"kind": 1.0, "colour": 0.25})
    assert np.allclose(some, (weights[0] + 0.25 * weights[1]) / 1.25)
    assert np.allclose(emphasised(NAMES, weights, {"kind": 1e300, "colour": 0.25e300}), some)


@pytest.mark.parametrize(
    ("emphasis", "said"),
    [
        ({"size": 1.0}, "Its attributes: kind, colour"),
        ({"kind": -1.0}, "0 or more. Got -1.0"),
        ({"kind": float("nan")}, "finite"),
        ({"kind": float("inf")}, "finite"),
        ({"kind": "much"}, "Got 'much'"),
        ({"kind": True}, "Got True"),
        ({"kind": 0.0}, "at least one attribute must matter"),
        ({}, "how much each attribute matters"),
    ],
)
def test_what_is_no_emphasis(emphasis, said):
    with pytest.raises(InputError, match=said):
        emphasised(NAMES, shared_weights(OWN, LOGITS), emphasis)


def test_a_model_of_one_label_set_knows_no_attributes():
    with pytest.raises(InputError, match="learned no attributes"):
        hasher().emphasise({"kind": 1.0})
