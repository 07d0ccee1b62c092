import numpy as np
import torch

from bitscale.deep.augment import augment, draw_moves
from bitscale.deep.settings import DeepSettings

RNG = np.random.default_rng(0)


def test_augmentation_moves_and_flips():
    batch = torch.arange(1.0, 2 * 25 + 1).view(2, 1, 5, 5)
    assert torch.equal(augment(batch), batch)
    assert torch.equal(augment(batch, np.zeros((2, 2), np.int64)), batch)
    moved = augment(batch, np.array([[1, -2], [0, 1]]))  # each image by its own
    assert moved.shape == batch.shape
    assert torch.equal(moved[0, 0, 1:, :3], batch[0, 0, :4, 2:])
    assert not moved[0, 0, 0].any()
    assert not moved[0, 0, :, 3:].any()
    assert torch.equal(moved[1, 0, :, 1:], batch[1, 0, :, :4])
    flipped = augment(batch.repeat(20, 1, 1, 1), None, RNG.random(40) < 0.5)
    turned = [torch.equal(image, batch[i % 2].flip(2)) for i, image in enumerate(flipped)]
    assert 5 < sum(turned) < 35
    vectors = torch.ones(3, 4)
    assert augment(vectors, np.ones((3, 2), np.int64), np.ones(len(vectors), bool)) is vectors


def test_moves_are_one_a_batch_or_one_an_image():
    rng = np.random.default_rng(0)
    assert not draw_moves(DeepSettings(), 5, rng).any()
    one = np.concatenate([draw_moves(DeepSettings(shift=2), 5, rng) for _ in range(400)])
    assert (one.reshape(400, 5, 2) == one.reshape(400, 5, 2)[:, :1]).all()
    each = draw_moves(DeepSettings(shift=2, shift_by="image"), 400, rng)
    for moves in (one, each):
        assert set(map(tuple, moves.tolist())) == {(a, b) for a in range(-2, 3) for b in range(-2, 3)}
