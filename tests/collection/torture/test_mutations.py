"""Damaged files: every answer a collection gives is right, or an error of ours; the process lives on.

For each type of file, thousands of mutations: flipped bits, overwritten and zeroed stretches, cut and lengthened
files, stretches swapped, a file of the same type from another collection, a deleted file. Then a reader or a writer
looks at everything: items, codes, brute-force search, the model, verification.

Two files need a word.
- The write-ahead log (`items.db-wal`, as a crash leaves it): a power cut leaves a tail whose checksums are wrong, and
  SQLite drops it. A mutation whose last byte lies in the last commit looks the same, so every state from the first
  commit touched on is accepted; likewise where one commit stands behind it and the mutation hit the 24 bytes that
  head a frame, which say where commits end. A log cut short, emptied or deleted is such a tail too: no file but the
  log knows how long it was. All else must be called damage, and a state that never was is never accepted.
- `writer.json` and `writer.lock` hold nothing that matters: whatever is in them, everything works.
"""

import shutil

import pytest

from tests.collection.torture.damage import TAIL
from tests.collection.torture.tasks import PREPARED, ended
from tests.conftest import TORTURE, endurance

MUTATIONS = 10_000
BATCH = 250  # by one child
TYPES = ("items.db", "items.db-wal", "segment", "model", "writer.json", "writer.lock", "backup")


@pytest.fixture(scope="module")
def damaged(server, prepared, tmp_path_factory):
    """The collection in three forms: closed, crashed with a log, and its backup; and another to swap files with."""
    base = tmp_path_factory.mktemp("damage")
    shutil.copytree(prepared, base / "closed")
    other = server.run("tasks:make", str(base / "other"), [*PREPARED, ["add", 99, 4], ["stage"], ["switch"], ["seal"]])
    assert other.error is None, ended(other)
    shutil.copytree(prepared, base / "crashed")
    assert server.run("tasks:leave", str(base / "crashed"), PREPARED, TAIL).died()
    assert (base / "crashed" / "items.db-wal").stat().st_size > 50_000
    assert server.run(
        "tasks:leave", str(base / "other"), [*PREPARED, ["add", 99, 4], ["switch"]], [["add", 98, 1]]
    ).died()
    backup = server.run("tasks:back_up", str(base / "closed"), str(base / "backup"))
    assert backup.error is None, ended(backup)
    return base


@pytest.mark.parametrize("kind", TYPES)
def test_no_silent_wrong_answer_and_no_death(kind, server, damaged, tmp_path, capsys):
    source = {"items.db-wal": "crashed", "backup": "backup"}.get(kind, "closed")
    n, counts = endurance(MUTATIONS) // (10 if kind.startswith("writer") and not TORTURE else 1), {}
    for start in range(0, n, BATCH):
        seeds = [start, min(start + BATCH, n)]
        task = ("damage:suffer", kind, str(damaged / source), str(damaged / "other"), str(tmp_path / "c"), *seeds)
        outcome = server.run(*task, patience=600)
        assert outcome.signal == 0, f"{ended(outcome)} after {outcome.acks[-1:]}"
        assert outcome.error is None, ended(outcome)
        for what, count in outcome.value.items():
            counts[what] = counts.get(what, 0) + count
    with capsys.disabled():
        print(f"\n{kind}: {counts}", end=" ")
    assert sum(counts.values()) == n
