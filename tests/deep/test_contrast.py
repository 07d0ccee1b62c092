"""The contrast term: worked out by hand, its gradient, and which negatives have the say."""

import math

import pytest
import torch

from bitscale.deep.contrast import contrast_loss
from bitscale.hashers import make_hasher


def similar(labels):
    of = torch.tensor(labels)
    return ((of[:, None] == of) & ~torch.eye(len(of), dtype=torch.bool)).float()


def test_worked_out_by_hand():
    codes = torch.tensor([[2.0, 0, 0, 0], [0, 0.5, 0, 0], [1.0, 1, 0, 0]])  # cosines 0, 0.7071, 0.7071
    half = math.sqrt(0.5)
    pairs = [math.log1p(math.exp((half - 0) / 0.5))] * 2  # each of the first two: one positive, one negative
    assert contrast_loss(codes, similar([0, 0, 1]), 0.5).item() == pytest.approx(4 * sum(pairs) / 2, rel=1e-6)


def test_every_prefix_counts():
    torch.manual_seed(0)
    codes = torch.randn(6, 8)
    same = similar([0, 0, 1, 1, 2, 2])
    first = contrast_loss(codes[:, :4], same, 0.2) / 4
    units = torch.nn.functional.normalize(codes, dim=1)
    far = [[units[i] @ units[j] / 0.2 for j in range(6)] for i in range(6)]
    terms = []
    for i in range(6):
        p = i ^ 1
        terms.append(math.log1p(sum(math.exp(far[i][n] - far[i][p]) for n in range(6) if n not in (i, p))))
    assert contrast_loss(codes, same, 0.2).item() == pytest.approx(8 * (first + sum(terms) / 6).item() / 2, rel=1e-5)


def test_the_nearest_negative_has_most_of_the_say():
    codes = torch.tensor([[1.0, 0], [1, 0.2], [1, 0.5], [-1, 0.5]], dtype=torch.float64).requires_grad_()
    contrast_loss(codes, similar([0, 0, 1, 2]), 0.1).backward()
    assert codes.grad[2].norm() > 100 * codes.grad[3].norm()


def test_the_gradient():
    torch.manual_seed(1)
    codes = torch.randn(6, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: contrast_loss(x, similar([0, 0, 1, 1, 2, 2]), 0.3), codes)


@pytest.mark.parametrize("labels", [[0, 1, 2], [0, 0, 0]])
def test_without_positives_or_negatives_there_is_nothing_to_learn(labels):
    codes = torch.ones(3, 4, requires_grad=True)
    loss = contrast_loss(codes, similar(labels), 0.1)
    loss.backward()
    assert loss.item() == 0
    assert not codes.grad.any()


def test_only_nested_has_it():
    assert make_hasher("nested", n_bits=8, recipe="persons").settings.contrast_weight == 1.0
    assert make_hasher("nested", n_bits=8).settings.contrast_weight == 0.0
    assert make_hasher("drsch", n_bits=8, recipe="persons").settings.contrast_weight == 0.0
