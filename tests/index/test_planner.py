"""The planner: costs are measured, schedules are ordered and complete, and plans follow from both."""

import numpy as np
import pytest

import bitscale as bs
from bitscale.index.call import rounded
from bitscale.index.planner import SegmentPlanner
from bitscale.index.segment import key_widths
from bitscale.native import choose
from bitscale.native.structs import face_of
from tests import oracle


@pytest.fixture(scope="module")
def index():
    world = oracle.world(3, 40_000, 32, "random", "random", automatic=True)
    return bs.ExactIndex(world.codes, kernel=choose("portable"))


def test_key_widths_follow_the_number_of_codes():
    assert key_widths(1_000_000, 64, tables=True) == [16] * 4
    assert key_widths(10_000_000, 64, tables=True) == [20] * 3
    assert key_widths(10_000_000, 64, tables=False) == [20]
    assert key_widths(100_000_000, 64, tables=True) == [21] * 3  # not two of 22
    assert key_widths(1_000_000, 32, tables=True) == [16] * 2
    assert key_widths(100, 64, tables=True) == [3]
    assert key_widths(10**9, 5, tables=True) == [5]


@pytest.mark.parametrize("bits", [32, 20, 13, 7])
def test_a_schedule_gives_each_bucket_once_in_order_of_its_bound(index, bits):
    planner = SegmentPlanner(index._now().segments[0], index._kernel)
    costs = bs.hamming.snap(index.bit_weights)[0].copy()
    costs[bits:] = 0
    steps, codes, final = planner.kernel.schedule(planner.segment, len(planner.segment.tables), costs, bits, 50.0, 5000)
    assert len(np.unique(steps["probe"])) == len(steps)
    assert (np.diff(steps["bound"]) >= 0).all()
    assert final >= steps["bound"][-1]
    assert (np.diff(codes) > 0).all()
    patterns = {}  # table -> costs of its patterns in the order given
    for probe in steps["probe"].tolist():
        key = planner.segment.tables[probe >> 24]
        used = min(key.width, bits - key.first_bit)
        cost = sum(int(costs[key.first_bit + i]) for i in range(used) if probe >> (used - 1 - i) & 1)
        patterns.setdefault(probe >> 24, []).append(cost)
    assert all((np.diff(given) >= 0).all() for given in patterns.values())  # each table's cheapest first
    probed = dict.fromkeys(patterns, 0)
    for probe, bound in steps.tolist():
        if all(probed[t] < len(patterns[t]) for t in patterns):  # beyond that the next cost is not in the schedule
            assert bound <= sum(patterns[t][probed[t]] for t in patterns)
        probed[probe >> 24] += 1


def test_costs_are_measured_once(index):
    planner = SegmentPlanner(index._now().segments[0], index._kernel)
    costs = planner.costs(4)
    assert costs is planner.costs(4)
    assert min(costs.probe_ns, costs.code_ns, costs.block_ns, costs.block_batch_ns) > 0


def test_a_plan_is_made_once_for_shares_that_hardly_differ(index):
    planner = SegmentPlanner(index._now().segments[0], index._kernel)
    costs = bs.hamming.snap(index.bit_weights)[0]
    shares = [rounded(10 / n) for n in range(40_000, 40_100)]
    plans = [planner.plan("auto", costs, 32, share, "weights") for share in shares]
    assert len({id(plan) for plan in plans}) == len(set(shares)) <= 2
    for share in np.random.default_rng(0).random(1000).tolist():
        assert share / 1.05 < rounded(share) < share * 1.05
    assert rounded(0.0) == 0.0


def test_a_segment_is_shown_to_the_kernel_in_one_form_while_it_stays():
    world = oracle.world(5, 300, 32, "random", "random", automatic=True)
    index = bs.ExactIndex(world.codes[:290])
    before = index._now().segments[0]
    index.add(world.codes[290:])
    assert index._now().segments[0] is before
    assert face_of(before) is face_of(before)
    hits = index.search(world.codes[295:296], 1)
    assert hits.distances[0, 0] == 0


def test_a_hopeless_schedule_is_expected_to_take_for_ever(index):
    planner = SegmentPlanner(index._now().segments[0], index._kernel)
    costs = bs.hamming.snap(index.bit_weights)[0]
    near = planner.plan("auto", costs, 32, 1e-9, "weights")
    far = planner.plan("auto", costs, 32, 0.9, "weights")
    assert near.expected_ns < far.expected_ns == float("inf")
    assert planner.plan("flat", costs, 32, 0.1, "weights").n_tables == 0
    assert planner.plan("prefix", costs, 32, 0.1, "weights").n_tables == 1


def test_the_forecast_finds_the_share(index):
    costs = bs.hamming.snap(index.bit_weights)[0]
    distances = bs.hamming.distances(
        *(2 * [bs.Codes.from_signs(np.random.default_rng(0).choice([-1, 1], (400, 32)), index.bit_weights)])
    )
    for share in (0.01, 0.1, 0.5):
        reach = index._kernel.forecast(costs, 32, share) * bs.hamming.snap(index.bit_weights)[1]
        assert share / 2 < (distances <= reach).mean() < share * 2 + 0.02


def test_probing_gives_up_for_a_filter_that_lets_almost_nothing_through():
    world = oracle.world(4, 40_000, 64, "random", "uniform", automatic=True)
    index = bs.ExactIndex(world.codes)
    some = np.random.default_rng(0).choice(40_000, 4001, replace=False)  # too many to be copied out
    hits = index.search(world.queries, 2000, where=index.prepare(some))
    assert set(hits.ids[0].tolist()) <= set(some.tolist())
    assert hits.stats.flat_queries == len(world.queries)
