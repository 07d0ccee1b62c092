"""The guard: every route, every kind of key; what is refused touches no handler, no parser, no model and no file."""

import os
import re

import pytest
from starlette.testclient import TestClient

from bitscale.server.app import Service
from bitscale.server.homes import Homes
from bitscale.server.keys import KeyFile
from bitscale.server.routes import ROUTERS
from bitscale.server.settings import Settings
from tests.server.serving import error_of, make_codes

OPEN = {("GET", "/health"), ("GET", "/sign-in"), ("POST", "/v1/session"), ("DELETE", "/v1/session")}
OPEN |= {("HEAD", "/health"), ("GET", "/sign-in/{name:path}")}


class Tripwire:
    """A body that must not be read."""

    def __init__(self):
        self.read = False

    async def __call__(self):
        self.read = True
        return {"type": "http.request", "body": b"{}", "more_body": False}


@pytest.fixture
def guarded(tmp_path):
    """A service that needs keys, and its keys by kind."""
    make_codes(tmp_path / "coded.bsc", 20)
    make_codes(tmp_path / "other.bsc", 20)
    keys = KeyFile(tmp_path / "keys.json")
    made = {
        "read": keys.make("reader", "read")[0],
        "write": keys.make("writer", "write")[0],
        "elsewhere": keys.make("for another", "write", ("other",))[0],
        "revoked": keys.make("gone", "write")[0],
    }
    keys.revoke("gone")
    chosen = Settings(keys=keys.path, require_keys=True, rate="100000/second")
    service = Service(Homes([tmp_path / "coded.bsc", tmp_path / "other.bsc"], chosen), chosen)
    service.made, service.file = made, keys
    yield service
    service.close()


def every_route(service):
    """Method, template and path of all there is, files of the page and the API's document too."""
    own = [route for route in service.routes.routes if hasattr(route, "path")]
    for route in [*own, *(route for router in ROUTERS for route in router.routes)]:
        path = route.path.replace("{collection}", "coded").replace("{id}", "3").replace("{name:path}", "x.js")
        path = path.replace("{mark}", "1")
        for method in sorted(route.methods):
            yield method, route.path, path
    yield "GET", "nowhere", "/nowhere"
    yield "BREW", "nowhere", "/v1/collections/coded"


async def ask(service, method, path, headers=(), host="127.0.0.1:8080"):
    """Status, error type and headers of an answer, and whether the body was read or a handler run."""
    tripwire, sent = Tripwire(), []
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", host.encode()), *((k.lower().encode(), v.encode()) for k, v in headers)],
        "client": ("192.0.2.9", 5000),
        "server": ("127.0.0.1", 8080),
    }

    async def send(message):
        sent.append(message)

    await service(scope, tripwire, send)
    status = sent[0]["status"]
    return status, dict(sent[0]["headers"]), tripwire.read, "route" in scope or "endpoint" in scope


def snapshot(folder):
    return {
        path: (path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(folder.rglob("*")) if path.is_file()
    }


def run(coroutine):
    import asyncio

    return asyncio.run(coroutine)


KINDS = ["no key", "wrong", "revoked", "elsewhere", "wrong cookie", "not bearer"]


@pytest.mark.parametrize("kind", KINDS)
def test_no_route_is_reached_without_the_right_key(guarded, tmp_path, kind):
    credentials = {
        "no key": [],
        "wrong": [("Authorization", "Bearer bitscale_wrong")],
        "revoked": [("Authorization", f"Bearer {guarded.made['revoked']}")],
        "elsewhere": [("Authorization", f"Bearer {guarded.made['elsewhere']}")],
        "wrong cookie": [("Cookie", "bitscale_session=abc")],
        "not bearer": [("Authorization", f"Basic {guarded.made['write']}")],
    }[kind]
    before = snapshot(tmp_path / "coded.bsc")
    loaded = dict(next(iter(guarded.homes))._reader._loaded)
    tried = 0
    for method, template, path in every_route(guarded):
        if (method, template) in OPEN or (kind == "elsewhere" and "{collection}" not in template):
            continue
        guarded.rates.clear()
        status, headers, read, routed = run(ask(guarded, method, path, credentials))
        assert status == (303 if path == "/" and method == "GET" else 403 if kind == "elsewhere" else 401), (
            method,
            path,
        )
        assert not read, (method, path)
        assert not routed, (method, path)
        assert headers[b"x-content-type-options"] == b"nosniff"
        tried += 1
    assert tried >= 12
    assert snapshot(tmp_path / "coded.bsc") == before
    assert next(iter(guarded.homes))._reader._loaded == loaded


def test_a_key_that_reads_writes_nothing(guarded, tmp_path):
    before = snapshot(tmp_path / "coded.bsc")
    writes = 0
    for method, template, path in every_route(guarded):
        reads = template.endswith(("/search", "/search/picture", "/learn")) or (method, template) in OPEN
        if method in ("GET", "HEAD", "OPTIONS") or reads:
            continue
        status, _, read, routed = run(ask(guarded, method, path, [("Authorization", f"Bearer {guarded.made['read']}")]))
        assert (status, read, routed) == (403, False, False), (method, path)
        writes += 1
    assert writes >= 3
    assert snapshot(tmp_path / "coded.bsc") == before


def test_the_right_key_gets_in_by_either_header_and_ends_at_once(guarded):
    for header in (("Authorization", "Bearer {}"), ("Authorization", "bearer {}"), ("X-API-Key", "{}")):
        given = [(header[0], header[1].format(guarded.made["read"]))]
        assert run(ask(guarded, "GET", "/v1/collections/coded", given))[0] == 200
    guarded.file.revoke("reader")
    assert run(ask(guarded, "GET", "/v1/collections/coded", given))[0] == 401
    secret, _ = guarded.file.make("again", "read")
    assert run(ask(guarded, "GET", "/metrics", [("X-API-Key", secret)]))[0] == 200


def test_a_scope_hides_other_collections(guarded, serve):
    given = [("X-API-Key", guarded.made["elsewhere"])]
    assert run(ask(guarded, "GET", "/v1/collections/other", given))[0] == 200
    assert run(ask(guarded, "GET", "/v1/collections/coded", given))[0] == 403
    assert run(ask(guarded, "GET", "/v1/collections/nowhere", given))[0] == 403


def test_metrics_tell_of_collections_within_the_scope_alone(guarded):
    client = TestClient(guarded, base_url="http://127.0.0.1")
    for kind, wanted in (("read", {"coded", "other"}), ("elsewhere", {"other"}), ("write", {"coded", "other"})):
        text = client.get("/metrics", headers={"X-API-Key": guarded.made[kind]}).text
        assert set(re.findall(r'bitscale_items{collection="(\w+)"}', text)) == wanted
        assert set(re.findall(r'bitscale_notices{collection="(\w+)"}', text)) == wanted


HOSTS = [
    "evil.example",
    "127.0.0.1.evil.example",
    "127.0.0.1@evil",
    "",
    "[::1",
    "localhost:80:80",
    "127.0.0.1:x",
    "a b",
]


@pytest.mark.parametrize("host", HOSTS)
def test_a_strange_host_is_refused_whatever_the_key(guarded, host):
    given = [("X-API-Key", guarded.made["write"])]
    for path in ("/health", "/v1/collections/coded", "/sign-in"):
        assert run(ask(guarded, "GET", path, given, host))[0] == 403
    for ours in ("127.0.0.1", "127.0.0.1:9", "localhost:8080", "[::1]:8080"):
        assert run(ask(guarded, "GET", "/health", given, ours))[0] == 200


WEB = [
    ([("Origin", "https://evil.example")], 403),
    ([("Origin", "null")], 403),
    ([("Origin", "http://127.0.0.1:9999")], 403),
    ([("Sec-Fetch-Site", "cross-site")], 403),
    ([("Sec-Fetch-Site", "same-site")], 403),
    ([("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")], 403),
    ([("Sec-Fetch-Site", "same-origin"), ("Origin", "http://127.0.0.1:8080")], 204),
    ([("Sec-Fetch-Site", "none")], 204),
    ([], 204),
]


@pytest.mark.parametrize(("headers", "status"), WEB)
def test_another_web_site_writes_nothing(guarded, headers, status):
    given = [("X-API-Key", guarded.made["write"]), *headers]
    answer = run(ask(guarded, "DELETE", "/v1/collections/coded/items/3", given))
    assert answer[0] == status
    assert run(ask(guarded, "GET", "/v1/collections/coded/items/3", given[:1]))[0] == (404 if status == 204 else 200)


def test_another_web_site_reads_nothing_but_a_link_may_lead_here(guarded):
    given = [("X-API-Key", guarded.made["read"])]
    assert run(ask(guarded, "GET", "/v1/collections/coded", [*given, ("Sec-Fetch-Site", "cross-site")]))[0] == 403
    link = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")]
    assert run(ask(guarded, "GET", "/", [*given, *link]))[0] == 200


def test_signing_in_trades_a_key_for_a_cookie_that_ends_with_it(serve, coded, tmp_path):
    keys = KeyFile(tmp_path / "keys.json")
    secret, _ = keys.make("browser", "read")
    client = serve(coded, require_keys=True)
    assert client.get("/", follow_redirects=False).headers["location"] == "/sign-in"
    assert client.get("/sign-in").status_code == 200
    assert error_of(client.post("/v1/session", json={"key": "wrong"}))["status"] == 401
    assert error_of(client.post("/v1/session", json={"key": "x" * 5_000}))["status"] == 413  # whoever sends it
    answer = client.post("/v1/session", json={"key": secret})
    assert answer.status_code == 204
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert client.get("/v1/collections/coded").status_code == 200
    assert client.get("/v1/session").json()["role"] == "read"
    assert client.get("/").status_code == 200
    keys.revoke("browser")
    assert client.get("/v1/collections/coded").status_code == 401
    secret, _ = keys.make("browser", "read")
    client.post("/v1/session", json={"key": secret})
    kept = dict(client.cookies)
    gone = client.delete("/v1/session")
    assert (gone.status_code, gone.headers["clear-site-data"]) == (204, '"cache"')
    client.cookies.update(kept)
    assert client.get("/v1/collections/coded").status_code == 401


def test_a_second_host_is_refused_though_the_first_is_ours(guarded):
    for second in ("evil.example", "127.0.0.1:8080"):
        assert run(ask(guarded, "GET", "/health", [("Host", second)]))[0] == 403


FORWARDED = ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via"]
FORWARDED += ["X-Forwarded-Port", "X-Forwarded-Server", "X-Client-IP", "True-Client-IP", "CF-Connecting-IP"]


@pytest.mark.parametrize("header", FORWARDED)
def test_behind_a_proxy_a_key_is_needed(serve, coded, header):
    client = serve(coded)
    assert client.get("/v1/collections/coded").status_code == 200
    assert client.get("/v1/collections/coded", headers={header: "x"}).status_code == 401
    assert client.get("/health", headers={header: "x"}).status_code == 200


def test_pages_carry_a_strict_policy_and_load_nothing_from_elsewhere(serve, coded):
    client = serve(coded)
    for path in ("/", "/sign-in", "/docs"):
        answer = client.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in answer.headers
        assert "//" not in answer.text.replace("http://www.w3.org/", "")
        assert "<script>" not in answer.text


def test_a_file_of_keys_that_others_can_read_makes_no_key_valid(guarded, tmp_path):
    given = [("X-API-Key", guarded.made["read"])]
    os.chmod(tmp_path / "keys.json", 0o644)
    assert run(ask(guarded, "GET", "/v1/collections/coded", given))[0] == 401
    os.chmod(tmp_path / "keys.json", 0o600)
    assert run(ask(guarded, "GET", "/v1/collections/coded", given))[0] == 200


def test_only_web_sites_that_were_named_may_call(serve, coded):
    client = serve(coded, allow_origins=("https://good.example",))
    good, bad = {"Origin": "https://good.example", "Sec-Fetch-Site": "cross-site"}, {"Origin": "https://bad.example"}
    asks = {"Access-Control-Request-Method": "POST"}
    answer = client.options("/v1/collections/coded/search", headers=good | asks)
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == "https://good.example"
    answer = client.post("/v1/collections/coded/search", json={"id": 1}, headers=good)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://good.example"
    assert "access-control-allow-credentials" not in answer.headers
    for answer in (
        client.options("/v1/collections/coded/search", headers=bad | asks),
        client.post("/v1/collections/coded/search", json={"id": 1}, headers=bad),
    ):
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers
