"""The service under load: requests a second against a route that does not search, tails beside a writer, uploads.

    python benchmarks/service.py [--items 1000000] [--seconds 5] [--rounds 5]

Server and load generator share the machine's cores. The route without a search has the same middleware, parses the same
body by the same schema, and makes JSON of an answer of the same shape; it only takes a ready one. Rounds alternate, so
that what else the machine does falls on both; medians are told. The writer adds codes through the service itself.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import http.client
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

import bitscale as bs
import generate

RESULT = Path(__file__).resolve().parents[1] / "results" / "service.json"
CONNECTIONS = 16
BITS = 64
KINDS = ("c100-10", "random")  # codes as trained models give them, and the worst that a search can meet
QUERIES, SEED = 500, 5


def hasher(n_bits: int) -> bs.hashers.Hasher:
    """A model for ready codes."""
    rows = np.random.default_rng(0).normal(size=(256, 32)).astype(np.float32)
    made = bs.make_hasher("lsh", n_bits=n_bits, features="none", seed=0)
    return made.fit(bs.data.Labelled(rows, np.zeros(256, np.int64), ("one",)))


def make_million(path: Path, n: int, kind: str) -> None:
    """A collection of n codes of a kind of `generate.packed`, with labels and metadata."""
    if path.exists():
        return
    rows, _ = generate.packed(kind, n, QUERIES, BITS, SEED)
    with bs.Collection.create(path, bs.load_hasher("fashion-mnist")) as made:
        for start in range(0, n, 50_000):
            packed = rows[start : start + 50_000]
            some = len(packed)
            labels = [("cat",) if i % 2 else ("dog",) for i in range(some)]
            metadata = [{"camera": i % 10} for i in range(some)]
            made.add_codes(bs.Codes(packed, made.bit_weights, made.model), labels=labels, metadata=metadata)
        made.seal()


# ---------------------------------------------------------------------- the server, in a process of its own


def serve(path: str) -> None:
    """The service with one more route, which answers without a search."""
    from bitscale.server.answers import JsonAnswer
    from bitscale.server.app import Service
    from bitscale.server.homes import HomeOf, Homes
    from bitscale.server.run import Server
    from bitscale.server.schemas import Search
    from bitscale.server.settings import Settings

    settings = Settings(port=0, rate="1000000/second")
    service = Service(Homes([path], settings), settings)
    ready: dict[str, object] = {}

    async def nothing(home: HomeOf, body: Search) -> JsonAnswer:
        if not ready:
            from bitscale.server.routes.search import find, query_of

            ready.update(await home.read(lambda photos: find(photos, home, query_of(body, home, photos), body)))
        return JsonAnswer(ready)

    nothing.__annotations__ = {"home": HomeOf, "body": Search, "return": JsonAnswer}
    service.routes.post("/v1/collections/{collection}/search/nothing")(nothing)
    Server(service, settings, lambda address: print(address, flush=True)).run()
    service.close()


class Running:
    """The server's process."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, __file__, "--serve", str(path)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        self.host, self.port = urlsplit(self.address).hostname, urlsplit(self.address).port

    def ask(self, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> bytes:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request(method, path, body, {"Content-Type": kind})
            answer = connection.getresponse()
            data = answer.read()
            assert answer.status < 300, data
            return data
        finally:
            connection.close()

    def cpu(self) -> float:
        """Seconds of processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(60)


# ---------------------------------------------------------------------- the load generator


class Client(asyncio.Protocol):
    """One connection that asks, waits for the answer, and asks again: at once, or at its next time."""

    def __init__(self, load: Load) -> None:
        self.load, self.buffer, self.left = load, b"", -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.load.next(self)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if self.left < 0:
            head, mark, _ = self.buffer.partition(b"\r\n\r\n")
            if not mark:
                return
            assert head.startswith(b"HTTP/1.1 200"), self.buffer[:500]
            at = head.index(b"content-length: ") + 16
            self.left = len(head) + 4 + int(head[at : head.find(b"\r", at) if b"\r" in head[at:] else None])
        if len(self.buffer) >= self.left:
            self.buffer, self.left = self.buffer[self.left :], -1
            self.load.answered(self)


class Load:
    """Requests over several connections for some seconds; as fast as they are answered, or at a rate."""

    def __init__(self, requests: list[bytes], seconds: float, rate: float | None) -> None:
        self.requests, self.seconds, self.rate = requests, seconds, rate
        self.sent, self.times, self.begun = 0, [], {}

    def next(self, client: Client) -> None:
        now = time.perf_counter()
        if now >= self.end:
            return
        due = now if self.rate is None else max(self.start + self.sent / self.rate, now)
        planned = now if self.rate is None else self.start + self.sent / self.rate
        self.sent += 1
        request = self.requests[self.sent % len(self.requests)]
        self.begun[client] = planned  # waiting for a free connection counts as time
        if due > now:
            self.loop.call_later(due - now, client.transport.write, request)
        else:
            client.transport.write(request)

    def answered(self, client: Client) -> None:
        self.times.append(time.perf_counter() - self.begun.pop(client))
        self.next(client)

    async def run(self, host: str, port: int, connections: int) -> list[float]:
        self.loop = asyncio.get_running_loop()
        self.start = time.perf_counter()
        self.end = self.start + self.seconds
        clients = [await self.loop.create_connection(lambda: Client(self), host, port) for _ in range(connections)]
        while time.perf_counter() < self.end or (self.begun and time.perf_counter() < self.end + 10):
            await asyncio.sleep(0.05)
        for transport, _ in clients:
            transport.close()
        return self.times


def load(running: Running, path: str, bodies: list[bytes], seconds: float, rate: float | None = None) -> list[float]:
    """Times of the answers, in seconds."""
    head = f"POST {path} HTTP/1.1\r\nHost: {running.host}:{running.port}\r\nContent-Type: application/json\r\n"
    requests = [f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in bodies]
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(Load(requests, seconds, rate).run(running.host, running.port, CONNECTIONS))


# ---------------------------------------------------------------------- what is measured


def bodies_for(running: Running, name: str, n: int, kind: str) -> list[bytes]:
    """Searches by ready codes that are drawn like the n of the collection and not among them."""
    model = json.loads(running.ask("GET", f"/v1/collections/{name}"))["model"]
    _, codes = generate.packed(kind, n, QUERIES, BITS, SEED)
    return [
        json.dumps({"code": base64.b64encode(code.tobytes()).decode(), "model": model, "k": 10}).encode()
        for code in codes
    ]


def throughput(running: Running, name: str, bodies: list[bytes], seconds: float, rounds: int) -> dict[str, object]:
    """Requests a second with and without the search, in turn."""
    at = f"/v1/collections/{name}/search"
    rates: dict[str, list[float]] = {"search": [], "nothing": []}
    cpus: dict[str, list[float]] = {"search": [], "nothing": []}
    for path in (at, at + "/nothing"):
        load(running, path, bodies, 1.0)
    before_all, begun = stolen(), time.perf_counter()
    for _ in range(rounds):
        for which, path in (("search", at), ("nothing", at + "/nothing")):
            before = running.cpu()
            times = load(running, path, bodies, seconds)
            rates[which].append(len(times) / seconds)
            cpus[which].append((running.cpu() - before) / len(times))
    ratio = statistics.median(a / b for a, b in zip(rates["search"], rates["nothing"], strict=True))
    return {
        "requests_per_second": {which: round(statistics.median(some), 1) for which, some in rates.items()},
        "server_cpu_ms": {which: round(1e3 * statistics.median(some), 4) for which, some in cpus.items()},
        "ratio": round(ratio, 3),
        "rounds": {which: [round(one, 1) for one in some] for which, some in rates.items()},
        "cores_taken_by_other_machines": round((stolen() - before_all) / (time.perf_counter() - begun), 2),
    }


def stolen() -> float:
    """Seconds that the host gave this machine's cores to others."""
    return int(Path("/proc/stat").read_text().split()[8]) / os.sysconf("SC_CLK_TCK")


class Adding(threading.Thread):
    """A writer that adds so many items a second through the service, one request for each."""

    def __init__(self, running: Running, name: str, a_second: float) -> None:
        super().__init__(daemon=True)
        self.running, self.name_, self.a_second = running, name, a_second
        self.ended, self.added = threading.Event(), 0

    def run(self) -> None:
        model = json.loads(self.running.ask("GET", f"/v1/collections/{self.name_}"))["model"]
        rng = np.random.default_rng(time.time_ns() % 1_000)
        connection = http.client.HTTPConnection(self.running.host, self.running.port, timeout=60)
        start = time.perf_counter()
        while not self.ended.is_set():
            code = base64.b64encode(rng.integers(0, 256, BITS // 8, dtype=np.uint8).tobytes()).decode()
            body = json.dumps({"model": model, "items": [{"code": code, "labels": ["new"]}]})
            connection.request(
                "POST", f"/v1/collections/{self.name_}/codes", body, {"Content-Type": "application/json"}
            )
            answer = connection.getresponse()
            assert answer.status == 201, answer.read()
            answer.read()
            self.added += 1
            self.ended.wait(max(0.0, start + self.added / self.a_second - time.perf_counter()))


def tails(
    running: Running, name: str, bodies: list[bytes], seconds: float, rounds: int, peak: float
) -> dict[str, object]:
    """The slowest of a hundred against the median at half the peak load, beside a writer."""
    at, found = f"/v1/collections/{name}/search", []
    for _ in range(rounds):
        writer = Adding(running, name, 100)
        begun = time.perf_counter()
        writer.start()
        times = load(running, at, bodies, 2 * seconds, peak / 2)
        writer.ended.set()
        writer.join()
        p50, p99 = np.quantile(times, [0.5, 0.99])
        rate = writer.added / (time.perf_counter() - begun)
        found.append({"p50_ms": 1e3 * p50, "p99_ms": 1e3 * p99, "ratio": p99 / p50, "added_per_second": rate})
    middle = {name: round(statistics.median(one[name] for one in found), 3) for name in found[0]}
    return middle | {"ratios": [round(one["ratio"], 2) for one in found], "searches_per_second": round(peak / 2, 1)}


def uploads(folder: Path, rounds: int) -> dict[str, object]:
    """A 500 x 375 JPEG searched for over HTTP, against Collection.search of the same file, in turn."""
    from PIL import Image

    rng = np.random.default_rng(3)
    pictures = folder / "pictures"
    pictures.mkdir()
    for i in range(200):
        small = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        Image.fromarray(small).resize((500, 375), Image.Resampling.BICUBIC).save(pictures / f"{i}.jpg", quality=90)
    home = folder / "photos.bsc"
    with bs.Collection.create(home, bs.load_hasher("fashion-mnist")) as made:
        made.add(pictures)
    running = Running(home)
    http_times, own_times = [], []
    try:
        with bs.Collection.open(home, read_only=True) as photos:
            connection = http.client.HTTPConnection(running.host, running.port, timeout=60)

            def over_http(path: Path) -> None:
                headers = {"Content-Type": "image/jpeg"}
                connection.request("POST", "/v1/collections/photos/search/picture?k=10", path.read_bytes(), headers)
                answer = connection.getresponse()
                assert answer.status == 200, answer.read()
                answer.read()

            def own(path: Path) -> None:
                list(photos.search(str(path), k=10)[0])

            files = sorted(pictures.iterdir())
            for path in files[:20]:
                over_http(path)
                own(path)
            for round_ in range(rounds * 40):
                path = files[round_ % len(files)]
                for which, times in ((over_http, http_times), (own, own_times)):
                    start = time.perf_counter()
                    which(path)
                    times.append(time.perf_counter() - start)
    finally:
        running.close()
    ratio = statistics.median(http_times) / statistics.median(own_times)
    middle = {"http_ms": 1e3 * statistics.median(http_times), "library_ms": 1e3 * statistics.median(own_times)}
    return {"ratio": round(ratio, 3), **{name: round(value, 3) for name, value in middle.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the collection is made, and kept for the next time")
    parser.add_argument("--only", choices=["throughput", "tails", "uploads"])
    parser.add_argument("--kinds", nargs="+", default=KINDS)
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    results = json.loads(given.out.read_text()) if given.out.exists() else {}
    results["load_average_before"] = round(os.getloadavg()[0], 1)  # of other work: tails and rates suffer from it
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        for kind in given.kinds if given.only != "uploads" else ():
            million = folder / f"codes-{kind}-{given.items}.bsc"
            make_million(million, given.items, kind)
            copy = Path(scratch) / kind / "codes.bsc"
            shutil.copytree(million, copy)
            running = Running(copy)
            here = results.setdefault(kind, {})
            try:
                bodies = bodies_for(running, "codes", given.items, kind)
                if given.only in (None, "throughput"):
                    here["throughput"] = throughput(running, "codes", bodies, given.seconds, given.rounds)
                    print(kind, json.dumps(here["throughput"]), flush=True)
                if given.only in (None, "tails"):
                    peak = here["throughput"]["requests_per_second"]["search"]
                    here["tails"] = tails(running, "codes", bodies, given.seconds, given.rounds, peak)
                    print(kind, json.dumps(here["tails"]), flush=True)
            finally:
                running.close()
        if given.only in (None, "uploads"):
            results["uploads"] = uploads(Path(scratch), given.rounds)
            print(json.dumps(results["uploads"]))
    results["items"], results["cores"], results["python"] = given.items, os.cpu_count(), platform.python_version()
    given.out.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
