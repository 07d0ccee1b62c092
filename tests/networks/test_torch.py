import pytest
import torch

from bitscale.deep.layers import count
from bitscale.deep.network import HashNetwork
from bitscale.deep.plan import plan
from bitscale.errors import InputError


def build(network="paper-net", shape=(1, 28, 28), n_bits=16, scale="free", **options):
    torch.manual_seed(0)
    return HashNetwork(plan(network, shape, n_bits, **options), shape, scale)


def test_the_ten_layers_as_printed():
    layers = plan("paper-net", (1, 28, 28), 64)
    printed = [layer for layer in layers if layer.kind not in ("relu", "flatten")]
    assert [layer.kind for layer in printed] == ["conv", "average-pool"] * 3 + [
        "linear",
        "linear",
        "tanh-like",
        "weights",
    ]
    assert [layer.shape for layer in printed[:6]] == [
        (32, 14, 14), (32, 13, 13), (64, 7, 7), (64, 6, 6), (128, 3, 3), (128, 2, 2),
    ]  # fmt: skip
    assert [(layer.size, layer.stride, layer.padding) for layer in printed[:6:2]] == [(5, 2, 2)] * 3
    assert count(layers) == 832 + 51_264 + 204_928 + 262_656 + 32_832 + 64  # by hand


@pytest.mark.parametrize("network", ["paper-net", "paper-net+recipe", "small-net"])
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (3, 64, 64), (3, 250, 100), (1, 9, 11), (1, 1, 2), (7,)])
def test_the_plan_is_what_is_built(network, shape):
    layers = plan(network, shape, 12, dropout=0.1, second_layer=shape == (3, 32, 32))
    net = HashNetwork(layers, shape, "free").eval()
    assert sum(p.numel() for p in net.parameters()) == count(layers)
    x = torch.randn(2, *shape)
    for module, layer in zip(net.phi, layers, strict=False):
        x = module(x)
        assert tuple(x.shape[1:]) == layer.shape
    assert net(torch.randn(2, *shape)).shape == (2, 12)


def test_relaxed_codes_follow_eq_9():
    net = build(n_bits=8, scale="none")
    x = torch.rand(4, 1, 28, 28)
    v = net.project(x)
    for beta in (2.0, 10.0):
        expected = (1 - torch.exp(-beta * v)) / (1 + torch.exp(-beta * v))
        torch.testing.assert_close(net(x, beta), expected)
    assert torch.equal(net(x, 1e9).sign(), v.sign())
    euclidean = build(n_bits=8, scale="none", tanh_like=False, weights=False)
    torch.testing.assert_close(euclidean(x), euclidean.project(x))


def test_weights_start_at_one_and_ordered_ones_never_increase():
    assert torch.equal(build().scale(), torch.ones(16))
    net = build(scale="ordered")
    assert net.scale()[-1].item() == pytest.approx(1)
    assert net.scale()[0].item() == pytest.approx(1.15)
    for seed in range(20):
        torch.manual_seed(seed)
        net.w.data = torch.randn(16) * 5
        assert (net.scale().diff() <= 0).all()
        assert (net.scale() > 0).all()


@pytest.mark.parametrize("scale", ["free", "ordered"])
def test_weights_may_start_spread_out(scale):
    layers = plan("paper-net", (5,), 16)
    found = HashNetwork(layers, (5,), scale, 9.0).scale().detach()
    assert (found[0] / found[-1]).item() == pytest.approx(9, rel=0.1)
    assert (found.diff() < 0).all()
    assert found.square().mean().item() == pytest.approx(1, rel=0.1)
    assert HashNetwork(plan("paper-net", (5,), 1), (5,), scale, 9.0).scale().item() == pytest.approx(1)


def test_permuted_bits_say_the_same():
    net, x = build(), torch.rand(3, 1, 28, 28)
    net.w.data = torch.rand(16)
    order = torch.randperm(16)
    before = net(x).detach()
    net.permute_bits(order)
    torch.testing.assert_close(net(x).detach(), before[:, order])


def test_what_cannot_be_built():
    for given, message in (
        (("alexnet", (1, 28, 28), 8), "no network 'alexnet'"),
        (("paper-net", (28, 28), 8), "shape"),
        (("paper-net", (3, 40_000, 40_000), 8), "fit in memory"),
    ):
        with pytest.raises(InputError, match=message):
            plan(*given)
    with pytest.raises(InputError, match="dropout"):
        plan("paper-net", (1, 28, 28), 8, dropout=1.0)
