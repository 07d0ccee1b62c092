"""The capacity plan: it grows with what it plans for, says what it stands on, and its simulator knows queues."""

import json

import numpy as np
import pytest

from bitscale.capacity.measured import Point, Slope, measured, slope
from bitscale.capacity.plan import SIZES, Load, plan, plans
from bitscale.capacity.queue import cores_for, mean_work, simulate
from bitscale.errors import InputError
from bitscale.index.large.needs import needs
from tests.cli.run import inside


def test_a_power_is_found_again():
    points = tuple(Point(n, 3e-9 * n**0.7) for n in (10**5, 10**6, 10**8))
    slope = Slope(points)
    assert slope.power == pytest.approx(0.7)
    for n in (10**4, 10**7, 10**10):
        assert slope.seconds(n) == pytest.approx(3e-9 * n**0.7)
    assert slope.covers(10**7)
    assert not slope.covers(10**9)
    assert Slope(points[:1]).power == 1


def test_a_scan_takes_a_time_for_itself_and_one_for_each_code():
    scan = Slope((Point(10**5, 0.4 + 1e-3), Point(10**6, 0.4 + 1e-2)), scans=True)
    for n in (10**5, 10**7, 10**10):
        assert scan.seconds(n) == pytest.approx(0.4 + 1e-8 * n)
    assert Slope((Point(10**6, 0.5),), scans=True).seconds(10**8) == pytest.approx(50)
    assert Slope((Point(10**5, 0.6), Point(10**6, 0.5)), scans=True).seconds(10**8) == pytest.approx(50)  # noise


def test_what_a_lone_query_waits_for_is_no_work():
    """0.4 s of waiting, and as much work a code as a batch shows."""
    waits = Slope(tuple(Point(n, 0.4 + 1e-9 * n, batched=1e-9 * n) for n in (10**5, 10**6)), scans=True)
    assert waits.waiting == pytest.approx(0.4)
    assert waits.seconds(10**9) == pytest.approx(1.4)
    assert Slope((Point(10**5, 0.4), Point(10**6, 0.5)), scans=True).waiting == 0


def test_waiting_takes_no_cores_and_a_scan_is_as_long_for_every_query():
    """Whatever a lone query to Milvus waits for, cores are those that its work keeps busy."""
    facts = slope("milvus", scans=True)
    for row in plans():
        if row.engine == "milvus":
            work = facts.seconds(row.items) - facts.waiting
            assert row.core_seconds_a_query == pytest.approx(work, rel=0.05)
            assert row.query_seconds == pytest.approx(work + facts.waiting)
            assert row.query_seconds < row.p99_seconds < facts.waiting + 2 * work + 0.01
            assert row.cores == pytest.approx(100 * work / 0.6, rel=0.05, abs=1)


def test_an_idle_core_serves_at_once_and_a_busy_one_lets_wait():
    idle, half, full = (simulate(0.01, 1, rate) for rate in (0.01, 40, 70))
    assert idle.median == pytest.approx(0.01, rel=0.05)
    assert idle.busy < half.busy < full.busy < 1
    assert idle.p99 < half.p99 < full.p99
    assert simulate(0.01, 4, 70).p99 < full.p99
    assert half.busy == pytest.approx(40 * mean_work(0.01), rel=0.1)
    assert cores_for(0.01, 1000, 0.6) == np.ceil(1000 * mean_work(0.01) / 0.6)


def test_every_engine_takes_more_for_more_codes():
    rows = plans()
    assert {row.items for row in rows} == set(SIZES)
    for engine in {row.engine for row in rows}:
        mine = [row for row in rows if row.engine == engine]
        assert len(mine) == len(SIZES)
        for name in ("memory_bytes", "disk_bytes", "machines", "cores", "core_seconds_a_query"):
            values = [getattr(row, name) for row in mine]
            assert values == sorted(values), (engine, name)
        assert mine[-1].basis.startswith("extrapolated")


def test_bytes_of_the_embedded_index_are_those_of_the_file():
    (row, *_) = plan(10**6, 128)
    assert row.engine == "embedded"
    assert row.memory_bytes == needs(10**6, 128, 2).file
    assert "from 64 bits" in row.basis


def test_what_was_measured_is_called_so():
    sizes = [point["n"] for point in measured()["embedded"]["points"]]
    assert plan(sizes[0])[0].basis == "measured"
    assert plan(100 * max(sizes))[0].basis.startswith(f"extrapolated 100x beyond {max(sizes):,}")
    assert all(point["seconds"] > 0 and point["from"] for point in measured()["embedded"]["points"])


def test_a_dearer_core_costs_more():
    cheap, dear = (plan(10**9, load=Load(core_hour=price))[0].cost_a_million_queries for price in (0.01, 0.1))
    assert cheap < dear


@pytest.mark.parametrize(("items", "bits"), [(0, 64), (10**13, 64), (10**6, 0), (10**6, 2000)])
def test_impossible_plans_are_refused(items, bits):
    with pytest.raises(InputError, match="between"):
        plan(items, bits)


def test_the_command_line():
    told = json.loads(inside("bench", "capacity", "--items", "1e9", "--bits", 64, "--json").stdout)
    assert {row["items"] for row in told["rows"]} == {10**9}
    assert "embedded" in {row["engine"] for row in told["rows"]}
    assert "extrapolated" in inside("bench", "capacity", "--items", "1e10").stdout
    for wrong in (["--items", "many"], ["--items", "0"], ["--rate", "0"], ["--what"]):
        done = inside("bench", "capacity", *wrong)
        assert done.returncode == 2, done
        assert done.stderr.startswith("bitscale: ")
