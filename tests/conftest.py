"""What all tests share: a skip counts as a failure in CI, and endurance counts run in full under `make torture`."""

import os

import pytest
from hypothesis import HealthCheck, settings

TORTURE = bool(os.environ.get("BITSCALE_TORTURE"))

settings.register_profile("bitscale", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bitscale")


def endurance(full: int) -> int:
    """How often to repeat: in full under `make torture`, else a tenth."""
    return full if TORTURE else full // 10


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("BITSCALE_REQUIRE_ALL"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and BITSCALE_REQUIRE_ALL counts that as a failure"
    return report
