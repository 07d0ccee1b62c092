"""What all tests share: a skip counts as a failure in CI, and endurance counts run in full under `make torture`."""

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

if "PYTEST_XDIST_WORKER" in os.environ:  # one core for each worker: threads of torch and BLAS would fight over them
    os.environ.setdefault("OMP_NUM_THREADS", "1")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # begun in the background: what tests start would ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):  # hundreds of processes: each would compile every module anew
    sys.dont_write_bytecode = False

TORTURE = bool(os.environ.get("BITSCALE_TORTURE"))

settings.register_profile("bitscale", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bitscale")


MEMORY_DISK, ROOM = "/dev/shm", 4 << 30  # where syncing costs nothing, and the bytes that must be free there


def pytest_configure(config):
    """Let tests write to memory, where there is room: thousands of syncs to a disk prove nothing; torture does them."""
    if not TORTURE and os.access(MEMORY_DISK, os.W_OK) and shutil.disk_usage(MEMORY_DISK).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY_DISK)


def endurance(full: int) -> int:
    """How often to repeat: in full under `make torture`, else a tenth."""
    return full if TORTURE else full // 10


@pytest.fixture(autouse=True)
def _stays_where_it_was():
    """A test that leaves the process in its own folder, which is then removed, breaks whichever comes after it."""
    here = os.getcwd()
    yield
    assert os.getcwd() == here, "go there with monkeypatch.chdir"


def until(happened: Callable[[], object], seconds: float = 300.0) -> None:
    """Wait for something that is sure to come; the limit only keeps a test from hanging, it measures nothing."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def pytest_sessionfinish():
    if "tests.cluster.nodes" in sys.modules:
        sys.modules["tests.cluster.nodes"].end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("BITSCALE_REQUIRE_ALL"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and BITSCALE_REQUIRE_ALL counts that as a failure"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    if report.skipped and os.environ.get("BITSCALE_REQUIRE_ALL"):
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped, and BITSCALE_REQUIRE_ALL counts that as a failure"
    return report
