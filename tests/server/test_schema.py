"""Requests made from the OpenAPI document, good and bad: every answer is one that the document tells."""

from contextlib import suppress

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS
from schemathesis.core.failures import FailureGroup

from bitscale.server.app import Service
from bitscale.server.homes import Homes
from bitscale.server.settings import Settings
from tests.conftest import TORTURE
from tests.server.serving import make_codes, make_photos, make_pictures

CASES = 10_000 if TORTURE else 5_000


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schema")
    photos = make_photos(folder / "photos.bsc", make_pictures(folder / "holiday", 6))
    chosen = Settings(rate="1000000/second", keys=folder / "keys.json", allow_hosts=("testserver",))
    made = Service(Homes([make_codes(folder / "coded.bsc"), photos], chosen), chosen)
    yield made
    made.close()


# What is no failure, by route, and why
UPLOAD = "what a body of random bytes is cannot be told from its schema: it is refused as no picture"
TEXT = "conditions and tables in JSON are text with a form that a schema cannot tell"
QUERY = "one of id, text, code and relaxed, of the model at hand, and items that are there: more than a schema can tell"
EXCEPTIONS = {
    "POST /v1/collections/{collection}/search": {"positive_data_acceptance": QUERY},
    "POST /v1/collections/{collection}/search/picture": {"positive_data_acceptance": UPLOAD},
    "POST /v1/collections/{collection}/items": {"positive_data_acceptance": UPLOAD},
    "POST /v1/collections/{collection}/learn": {"positive_data_acceptance": QUERY},
    "POST /v1/collections/{collection}/marks": {"positive_data_acceptance": QUERY},
    "POST /v1/collections/{collection}/codes": {"positive_data_acceptance": "codes must be of the model at hand"},
    "GET /v1/collections/{collection}/items": {"positive_data_acceptance": TEXT},
    "POST /v1/session": {"positive_data_acceptance": "a random text is no key: 401"},
    "GET /v1/collections/{collection}/duplicates/plan": {"positive_data_acceptance": "409 while still looking"},
}


def at_home(case, draw):
    """Mostly collections and items that are there, so that requests get past the first look."""
    if "collection" in case.path_parameters and draw(st.integers(0, 7)):
        case.path_parameters["collection"] = draw(st.sampled_from(["photos", "coded"]))
    if "id" in case.path_parameters and draw(st.booleans()):
        case.path_parameters["id"] = draw(st.integers(0, 8))
    return case


def ask(operation, mode, n):
    """Send n requests; how many were sent, and what was wrong with their answers."""
    excluded = list(EXCEPTIONS.get(operation.label, {}))
    sent, wrong = 0, []

    @settings(max_examples=n, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck))
    @seed(0)
    @given(st.data())
    def each(data):
        nonlocal sent
        case = at_home(data.draw(operation.as_strategy(mode)), data.draw)
        sent += 1
        try:
            answer = case.call()
            busy = answer.status_code == 503 and "retry-after" in answer.headers  # told, and no fault of the service
            without = [*excluded, "not_a_server_error"] if busy else excluded
            if answer.status_code == 413:  # refused for its size, which schemathesis does not count as refused
                without = [*without, "negative_data_rejection"]
            case.validate_response(answer, excluded_checks=CHECKS.get_by_names(without))
        except FailureGroup as failures:
            wrong.extend(f"{operation.label} {mode.value}: {failure}" for failure in failures.exceptions)

    with suppress(Unsatisfiable):  # a route without parameters has no bad requests
        each()
    return sent, wrong


@pytest.mark.slow
@pytest.mark.timeout(5_400)  # thousands of requests; it measures nothing
def test_every_answer_is_one_that_the_document_tells(service):
    schema = schemathesis.openapi.from_asgi("/openapi.json", service)
    operations = [one.ok() for one in schema.get_all_operations()]
    assert {one.label for one in operations} >= EXCEPTIONS.keys()
    sent, wrong = 0, []
    share = {one.label: 8 if one.label in EXCEPTIONS else 1 for one in operations}
    each = CASES / sum(share.values()) * 0.6
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            some, bad = ask(operation, mode, int(each * share[operation.label]))
            sent += some
            wrong += bad
    assert not wrong, "\n\n".join(wrong[:5])
    assert sent >= CASES
