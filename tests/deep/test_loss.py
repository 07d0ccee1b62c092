"""The loss against a triple loop, autograd, finite differences and the paper's Algorithm 2."""

from itertools import product

import numpy as np
import pytest
import torch

from bitscale.deep.loss import Objective, evaluate, gradient_share, hinge_matrix, pair_gradient, prefixes
from bitscale.deep.loss import distances as squared
from bitscale.deep.relations import relate
from bitscale.deep.train import objective_of
from bitscale.hashers import make_hasher
from bitscale.networks.paper import network_layers
from bitscale.networks.torch import HashNetwork

RNG = np.random.default_rng(0)
SINGLE = torch.arange(24) // 4
UNEVEN = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 4])  # class 3 has one image
SETS = torch.from_numpy(np.random.default_rng(3).random((16, 5)) < 0.3)
LABELS = {"single": SINGLE, "uneven": UNEVEN, "sets": SETS}
DOUBLE = torch.float64


def codes_for(labels, q=8, seed=0):
    torch.manual_seed(seed)
    return torch.tanh(torch.randn(len(labels), q, dtype=DOUBLE))


def related(labels):
    """Naive: (positive, negative, similarity) of all pairs."""
    b = len(labels)
    positive, negative = np.zeros((b, b), bool), np.zeros((b, b), bool)
    similarity = np.zeros((b, b))
    for i, j in product(range(b), repeat=2):
        if i == j:
            continue
        if labels.ndim == 1:
            shared, union = int(labels[i] == labels[j]), 1
        else:
            shared, union = int((labels[i] & labels[j]).sum()), max(int((labels[i] | labels[j]).sum()), 1)
        positive[i, j], negative[i, j], similarity[i, j] = shared > 0, shared == 0, shared / union
    return positive, negative, similarity


def triplets(labels):
    positive, negative, _ = related(labels)
    for i in range(len(labels)):
        yield from ((i, p, n) for p in np.flatnonzero(positive[i]) for n in np.flatnonzero(negative[i]))


def naive(codes, labels, objective):
    """eq-12 as it is printed, with means, a triplet at a time and differentiable."""
    c = -objective.margin_per_bit * codes.shape[1]
    found = [
        ((codes[i] - codes[p]).square().sum() - (codes[i] - codes[n]).square().sum()).clamp(min=c)
        for i, p, n in triplets(labels)
    ]
    s = torch.from_numpy(related(labels)[2])
    u = torch.diag(s.sum(1))
    laplacian = u - s if objective.laplacian == "paper" else -(u + s)
    by = {"triplets": len(found), "images": len(labels), "none": 1}[objective.laplacian_norm]
    return torch.stack(found).mean() + objective.laplacian_weight * torch.trace(codes.T @ laplacian @ codes) / by


@pytest.mark.slow
@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("norm", ["triplets", "images", "none"])
@pytest.mark.parametrize("form", ["paper", "released"])
def test_equals_a_triple_loop_and_its_autograd(kind, norm, form):
    labels = LABELS[kind]
    objective = Objective(laplacian_weight=0.3, laplacian_norm=norm, laplacian=form)
    ours, theirs = (codes_for(labels).requires_grad_() for _ in range(2))
    value = evaluate(ours, relate(labels, dtype=DOUBLE), objective, RNG)
    expected = naive(theirs, labels, objective)
    torch.testing.assert_close(value.loss, expected)
    value.loss.backward()
    expected.backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
    assert 0.05 < value.active < 1


@pytest.mark.parametrize("kind", LABELS)
def test_drawn_triplets_follow_eq_12_up_to_one_factor(kind):
    """N times the gradient is that of the literal sum over the N drawn triplets plus lambda tr(R L R^T)."""
    labels, n, weight = LABELS[kind], 40, 0.3
    relations = relate(labels, dtype=DOUBLE)
    ours, theirs = (codes_for(labels).requires_grad_() for _ in range(2))
    objective = Objective(laplacian_weight=weight, laplacian_norm="triplets", sampled=n)
    value = evaluate(ours, relations, objective, np.random.default_rng(7))
    (n * value.loss).backward()
    columns = relations.triplets[0].positives.tolist()  # in whatever order ties leave them
    all_triplets = sorted(triplets(labels), key=lambda each: (each[0], columns[each[0]].index(each[1]), each[2]))
    drawn = np.random.default_rng(7).choice(len(all_triplets), n, replace=False, shuffle=False)
    c = -codes_for(labels).shape[1] / 2
    expected = sum(
        ((theirs[i] - theirs[p]).square().sum() - (theirs[i] - theirs[m]).square().sum()).clamp(min=c)
        for i, p, m in (all_triplets[t] for t in drawn)
    )
    s = torch.from_numpy(related(labels)[2])
    expected = expected + weight * torch.trace(theirs.T @ (torch.diag(s.sum(1)) - s) @ theirs)
    expected.backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
    assert 0.05 < value.active < 1


@pytest.mark.slow
@pytest.mark.parametrize("nested", [False, True])
def test_finite_differences_of_codes_and_weights(nested):
    objective = Objective(laplacian_weight=0.1, nested=nested, balance_weight=0.5)
    relations = relate(SINGLE, dtype=DOUBLE)
    codes = codes_for(SINGLE, 12).requires_grad_()
    scale = torch.linspace(1.5, 0.5, 12, dtype=DOUBLE).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda r, w: evaluate(r * w, relations, objective, RNG).loss, (codes, scale), eps=1e-7, atol=1e-5
    )


@pytest.mark.slow
def test_equals_algorithm_2_completed():
    """Algorithm 2 with the condition of eq-14 and the factor 2 that eq-17 drops; images one by one."""
    codes, weight = codes_for(SINGLE), 0.05
    c, all_triplets = -codes.shape[1] / 2, list(triplets(SINGLE))
    s = torch.from_numpy(related(SINGLE)[2])
    laplacian = torch.diag(s.sum(1)) - s
    expected = torch.zeros_like(codes)
    for j in range(len(codes)):
        for i, p, n in all_triplets:
            if (codes[i] - codes[p]).square().sum() - (codes[i] - codes[n]).square().sum() <= c:
                continue
            if j == i:
                expected[j] += 2 * (codes[n] - codes[p])
            elif j == p:
                expected[j] -= 2 * (codes[i] - codes[p])
            elif j == n:
                expected[j] += 2 * (codes[i] - codes[n])
        expected[j] = expected[j] / len(all_triplets) + weight * 2 * (laplacian[j] @ codes)
    ours = codes.clone().requires_grad_()
    objective = Objective(laplacian_weight=weight, laplacian_norm="none")
    evaluate(ours, relate(SINGLE, dtype=DOUBLE), objective, RNG).loss.backward()
    torch.testing.assert_close(ours.grad, expected)


def test_algorithm_2_as_printed_is_not_the_gradient():
    """Its two slips: without the condition of eq-14 every triplet pulls, and eq-17 lacks a factor 2."""
    codes = codes_for(SINGLE)
    relations = relate(SINGLE, dtype=DOUBLE)
    for weight in (0.0, 0.05):
        x = codes.clone().requires_grad_()
        evaluate(x, relations, Objective(laplacian_weight=weight, laplacian_norm="none"), RNG).loss.backward()
        all_ = list(triplets(SINGLE))
        printed = torch.zeros_like(codes)
        for i, p, n in all_:
            if weight and squared(codes)[i, p] - squared(codes)[i, n] <= -codes.shape[1] / 2:
                continue  # the first slip put right, the second left
            printed[i] += 2 * (codes[n] - codes[p]) / len(all_)
            printed[p] -= 2 * (codes[i] - codes[p]) / len(all_)
            printed[n] += 2 * (codes[i] - codes[n]) / len(all_)
        s = relations.similarity
        printed += weight * (torch.diag(s.sum(1)) - s) @ codes
        assert (x.grad - printed).norm() > 0.05 * x.grad.norm()


def test_similarity_of_label_sets_is_jaccards():
    """eq-21: labels shared over labels in all; images that share none are negatives, untagged ones of everybody."""
    sets = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 0]], dtype=torch.bool)
    found = relate(sets, dtype=DOUBLE)
    expected = torch.tensor([[0, 2 / 3, 0, 0], [2 / 3, 0, 1 / 4, 0], [0, 1 / 4, 0, 0], [0, 0, 0, 0]], dtype=DOUBLE)
    torch.testing.assert_close(found.similarity, expected)
    assert found.count == 1 * 2 + 2 * 1 + 1 * 2  # anchors 0, 1 and 2: positives times negatives
    np.testing.assert_array_equal(found.triplets[0].negative.sum(1), [2, 1, 2, 3])


def test_identities_with_one_image_are_nobodys_positive():
    found = relate(UNEVEN, dtype=DOUBLE)
    assert found.count == len(list(triplets(UNEVEN)))
    assert not found.similarity[9].any()  # class 3 has one image
    assert int(found.triplets[0].per_anchor[9]) == 0
    assert int(found.triplets[0].negative[9].sum()) == 11


def test_the_papers_batch_has_684000_triplets():
    assert relate(torch.arange(200) // 20).count == 684_000


def test_single_precision_agrees():
    labels = torch.arange(200) // 20
    codes = torch.tanh(torch.randn(200, 64, generator=torch.Generator().manual_seed(1)))
    grads = []
    for dtype in (torch.float32, DOUBLE):
        x = codes.to(dtype, copy=True).requires_grad_()
        evaluate(x, relate(labels, dtype=dtype), Objective(), RNG).loss.backward()
        grads.append(x.grad.double())
    assert (grads[0] - grads[1]).norm() < 1e-4 * grads[1].norm()


def test_sampling_all_triplets_is_counting_and_some_are_unbiased():
    relations = relate(UNEVEN, dtype=DOUBLE)
    between = squared(codes_for(UNEVEN))
    exact, active = hinge_matrix(between, relations, 4.0)
    almost, share = hinge_matrix(between, relations, 4.0, relations.count - 1, np.random.default_rng(0))
    n = relations.count
    assert (almost * (n - 1) - exact * n).abs().max() < 1.0001  # one triplet is missing
    draws = [hinge_matrix(between, relations, 4.0, 60, np.random.default_rng(seed)) for seed in range(400)]
    torch.testing.assert_close(torch.stack([d[0] for d in draws]).mean(0), exact, atol=0.004, rtol=0)
    assert np.mean([d[1] for d in draws]) == pytest.approx(active, abs=0.01)
    assert share == pytest.approx(active, abs=0.01)


def test_graded_triplets_count_by_their_gain():
    codes = codes_for(SETS)
    shared = (SETS.double() @ SETS.double().T).fill_diagonal_(0)
    total, weight = 0.0, 0.0
    for i, p, n in product(range(len(SETS)), repeat=3):
        if p in (i, n) or n == i or shared[i, p] <= shared[i, n]:
            continue
        gain = 2 ** shared[i, p] - 2 ** shared[i, n]
        d = (codes[i] - codes[p]).square().sum() - (codes[i] - codes[n]).square().sum()
        total, weight = total + gain * d.clamp(min=-4.0), weight + gain
    value = evaluate(codes, relate(SETS, graded=True, dtype=DOUBLE), Objective(laplacian_weight=0.0), RNG)
    torch.testing.assert_close(value.loss, total / weight)


def test_nested_is_the_mean_over_prefixes():
    assert prefixes(64) == (4, 8, 16, 24, 32, 48, 64)
    assert prefixes(12) == (4, 8, 12)
    assert prefixes(3) == (3,)
    codes, relations = codes_for(SINGLE, 12), relate(SINGLE, dtype=DOUBLE)
    parts = [12 / k * evaluate(codes[:, :k], relations, Objective(), RNG).loss for k in (4, 8, 12)]
    torch.testing.assert_close(evaluate(codes, relations, Objective(nested=True), RNG).loss, sum(parts) / 3)


def test_a_batch_without_triplets_pulls_nowhere():
    codes = codes_for(SINGLE).requires_grad_()
    value = evaluate(
        codes, relate(torch.zeros(24, dtype=torch.int64), dtype=DOUBLE), Objective(laplacian_weight=0), RNG
    )
    value.loss.backward()
    assert not codes.grad.any()
    assert value.active == 0


def test_the_laplacians_share_of_the_gradient():
    codes, relations = codes_for(SINGLE), relate(SINGLE, dtype=DOUBLE)
    assert gradient_share(codes, relations, Objective(laplacian_weight=0.0)) == 0
    small, large = (gradient_share(codes, relations, Objective(laplacian_weight=w)) for w in (0.001, 0.01))
    assert large == pytest.approx(10 * small)
    assert pair_gradient(codes, relations.similarity).shape == codes.shape


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["single", "sets"])
def test_dsrh_is_its_own_objective_triplet_by_triplet(kind):
    """Hamming distances (q - r.r') / 2 of 2 sigmoid(t) - 1, gains 2^r, the margin in bits, and balanced bits."""
    labels, hasher = LABELS[kind], make_hasher("dsrh", n_bits=8, balance_weight=0.7, margin_per_bit=0.25)
    ours, theirs = ((2 * codes_for(labels, seed=3)).requires_grad_() for _ in range(2))
    network = HashNetwork(network_layers("paper-net", (5,), 8), (5,), "none")
    codes = network.relax(ours, hasher.parts.beta)
    torch.testing.assert_close(codes, 2 * torch.sigmoid(ours) - 1)
    objective = objective_of(hasher.parts, hasher.settings)
    value = evaluate(codes, relate(labels, graded=True, dtype=DOUBLE), objective, RNG)
    value.loss.backward()
    shared = (labels[:, None] == labels).long() if labels.ndim == 1 else (labels[:, None] & labels).sum(2)
    relaxed = 2 / (1 + torch.exp(-theirs)) - 1
    total, weights = theirs.new_zeros(()), 0.0
    for i, p, n in product(range(len(labels)), repeat=3):
        if len({i, p, n}) == 3 and shared[i, p] > shared[i, n]:
            gain = float(2 ** shared[i, p] - 2 ** shared[i, n])
            apart = ((8 - relaxed[i] @ relaxed[p]) / 2) - ((8 - relaxed[i] @ relaxed[n]) / 2)
            total, weights = total + gain * apart.clamp(min=-0.25 * 8), weights + gain
    expected = total / weights + 0.7 / 2 * relaxed.mean(0).square().sum()
    torch.testing.assert_close(value.loss, expected)
    expected.backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
