import pytest
import torch

from bitscale.errors import InputError
from bitscale.networks.layers import count, overhangs
from bitscale.networks.paper import network_layers
from bitscale.networks.torch import HashNetwork, draw_he


def build(network="paper-net", shape=(1, 28, 28), n_bits=16, scale="free", **options):
    torch.manual_seed(0)
    return HashNetwork(network_layers(network, shape, n_bits, **options), shape, scale)


def test_the_ten_layers_as_printed():
    layers = network_layers("paper-net", (1, 28, 28), 64)
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


@pytest.mark.slow
@pytest.mark.parametrize("network", ["paper-net", "paper-net+recipe", "small-net"])
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (3, 64, 64), (3, 250, 100), (1, 9, 11), (1, 1, 2), (7,)])
def test_the_plan_is_what_is_built(network, shape):
    layers = network_layers(
        network, shape, 12, dropout=0.1, second_layer=shape == (3, 32, 32), hash_norm=len(shape) == 1
    )
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
    layers = network_layers("paper-net", (5,), 16)
    found = HashNetwork(layers, (5,), scale, 9.0).scale().detach()
    assert (found[0] / found[-1]).item() == pytest.approx(9, rel=0.1)
    assert (found.diff() < 0).all()
    assert found.square().mean().item() == pytest.approx(1, rel=0.1)
    assert HashNetwork(network_layers("paper-net", (5,), 1), (5,), scale, 9.0).scale().item() == pytest.approx(1)


@pytest.mark.parametrize("hash_norm", [False, True])
def test_permuted_bits_say_the_same(hash_norm):
    net, x = build(hash_norm=hash_norm), torch.rand(3, 1, 28, 28)
    net(x)
    net.eval()
    for tensor in (net.w, *net.phi[-1].parameters()):
        tensor.data = torch.rand_like(tensor)
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
            network_layers(*given)
    with pytest.raises(InputError, match="dropout"):
        network_layers("paper-net", (1, 28, 28), 8, dropout=1.0)


def test_hes_weights_keep_the_spread_of_values():
    """As torch draws them every layer makes values smaller, until images differ less than the biases do."""
    net, images = build(), torch.randn(50, 1, 28, 28)
    before = net.project(images)
    draw_he(net)
    after = net.project(images)
    assert before.std(0).mean() < 0.2 * before.abs().mean()
    assert after.std(0).mean() > 10 * before.std(0).mean()
    assert all(not module.bias.any() for module in net.phi if hasattr(module, "bias"))


def test_bfloat16_is_for_learning_only_and_leaves_weights_and_codes_float32():
    network = build("paper-net+recipe", (3, 32, 32))
    images = torch.randn(8, 3, 32, 32)
    exact = network.project(images)
    network.brief = True
    brief = network.project(images)
    assert (brief.dtype, network.forward(images).dtype) == (torch.float32, torch.float32)
    assert not torch.equal(brief, exact)
    torch.testing.assert_close(brief, exact, rtol=0.1, atol=0.05)
    brief.sum().backward()
    assert all(p.dtype == torch.float32 for p in network.parameters())
    network.eval()
    used = network.project(images)
    network.brief = False
    assert torch.equal(network.project(images), used)


def test_which_pictures_a_network_overhangs():
    for side, expected in ((10, True), (22, True), (24, False), (28, False)):
        assert overhangs(network_layers("paper-net", (1, side, side), 8), (1, side, side)) == expected
