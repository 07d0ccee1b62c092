"""Items parted by a value in Milvus: found as before, looked for where they can be, moved when their value changes."""

import numpy as np
import pytest

from bitscale.collection.engines.collection import EngineCollection
from bitscale.collection.engines.parting import (
    NOTHING,
    SEVERAL,
    check_field,
    condition_like,
    field_of,
    key_of,
    key_of_value,
    keys_of,
)
from bitscale.collection.engines.push import Pushed, push
from bitscale.collection.engines.verify import differences
from bitscale.collection.items import NewItem
from bitscale.collection.store.seen import Seen
from bitscale.collection.where import Condition, conditions_of
from bitscale.errors import EngineError, InputError
from bitscale.index.engines import connect
from bitscale.index.engines.milvus_parted import name_of
from bitscale.pictures.look import LOOK_BYTES
from tests import servers
from tests.cli.run import inside
from tests.collection.engines.made import N, some_codes
from tests.collection.engines.test_collection import NOTES, WHERE

CAMERA = field_of("camera")
NOWHERE = 31  # a partition that no value of these tests is in


def test_values_that_one_equality_finds_have_one_number():
    alike = [[1, 1.0, True, "1", "1.0"], ["two"], [2, "2", 2.0], [None], [[1, 2], "[1,2]"], ["true"], [0, False, -0.0]]
    numbers = [{key_of_value(value) for value in values} for values in alike]
    assert [len(each) for each in numbers] == [1] * len(alike)
    assert len(set.union(*numbers)) == len(alike)
    assert key_of_value(None) == NOTHING
    assert key_of_value("two") == 80263502630021  # the same tomorrow, and elsewhere
    assert key_of_value(10**400) == key_of_value(str(10**400))


def test_what_conditions_leave():
    for where, values in (
        ("camera=2", [2]), (["metadata.camera=2", "size>3"], [2]), ({"camera": True}, [1]), ("camera=null", [None]),
        (["camera=2", "camera=2.0"], [2]), (["camera=2", "camera=3"], []),
    ):  # fmt: skip
        assert keys_of(conditions_of(where), CAMERA) == tuple(map(key_of_value, values)), where
    for where in ("camera!=2", "camera<2", "camera~2", "exif.camera=2", "label=2", "metadata.label=2"):
        assert keys_of(conditions_of(where), CAMERA) is None, where
    label = field_of("label")
    rows = [(0, "", None, 0, 0, labels, None, None) for labels in (None, '["coat"]', '["coat", "red"]')]
    nothing, coat, several = (key_of(row, label) for row in rows)
    assert (nothing, several) == (NOTHING, SEVERAL)
    assert set(keys_of([Condition("label", "=", "coat")], label)) == {coat, SEVERAL}
    assert field_of("exif.camera") != field_of("camera") == field_of("metadata.camera")


@pytest.mark.parametrize("field", ["id", "size", "path", "modified", "exif.taken", "exif.nothing", ""])
def test_what_items_cannot_be_parted_by(field):
    with pytest.raises(InputError):
        check_field(field)


@pytest.fixture
def address():
    there = servers.address("milvus", "parted")
    for left in connect.existing(there):
        left.drop()
    yield there
    for left in connect.existing(there):
        left.drop()


def counts(index):
    """Rows in each partition that holds any."""
    rows = {}
    for part in range(index.facts.parted.n):
        ((row,),) = [read(index, "", ["count(*)"], partition_names=[name_of(part)])]
        rows |= {part: row["count(*)"]} if row["count(*)"] else {}
    return rows


def read(index, where, fields=("*",), **more):
    return index._client.query(index.collection, where, [*fields], consistency_level="Strong", **more)


def put_elsewhere(index, where):
    """Rows as they are, put where no push would put them as well."""
    rows = [{**row, "signs": [*row["signs"]], "part": NOWHERE} for row in read(index, where)]
    index._client.upsert(index.collection, rows, partition_name=name_of(NOWHERE))


@pytest.fixture
def odd(photos):
    """Items of odd values, labels, and EXIF."""
    labels = [("coat", "red"), ("coat",), (), ("2",), ("True",)]
    notes = [*NOTES, 2**53, 2**53 + 1]
    for id in range(N):
        known = {"note": notes[id % len(notes)], "camera": id % 5} if id % 9 else {}
        photos.describe([id], labels=labels[id % len(labels)], metadata=known)
    seen = [Seen(4, 4, bytes(LOOK_BYTES), {"iso": 100 * (id % 5)} if id % 5 else {}) for id in range(100)]
    photos.keep_looks(list(range(100)), seen)
    return photos


@pytest.mark.slow
@pytest.mark.parametrize("field", ["label", "note", "exif.iso"])
def test_every_condition_holds_for_the_same_items(field, address, odd):
    push(odd, address, partition_by=field)
    with EngineCollection.open(address) as there:
        assert len(counts(there.index)) > 3
        assert sum(counts(there.index).values()) == len(odd)
        like = {str(one): [one] for item in odd.items() if (one := condition_like(item, field)) is not None}
        for where in [*([text] for text in WHERE if "OR 1=1" not in text), *like.values()]:
            assert np.array_equal(there.select(where), odd.select(where)), where
    assert differences(odd, address, 20) == []


@pytest.mark.slow
def test_a_search_for_a_value_looks_only_where_it_can_be(photos, address):
    """A row that was put where no push would put it is found by searches of everything alone."""
    push(photos, address, partition_by="camera")
    with EngineCollection.open(address) as there:
        index = there.index
        parts = {value: key_of_value(value) % index.facts.parted.n for value in (1, 2, None)}
        assert counts(index) == dict.fromkeys(parts.values(), N // 3)
        put_elsewhere(index, "id == 1")
        index._client.delete(index.collection, filter="id in [1]", partition_name=name_of(parts[1]))
        assert there.select("camera=1").tolist() == [id for id in range(N) if id % 3 == 1 and id != 1]
        assert 1 in there.select("camera<2")
        code = photos.index.get([1])
        for where in ("camera=1", ["camera=1", "path~png"], ["camera=1", "size>0"]):
            assert 1 not in [match.id for match in there.search(code, k=N, where=where)[0]]
            assert there.page(-1, 1, where)[0].id != 1
        assert [match.id for match in there.search(code, k=1)[0]] == [1]


@pytest.mark.slow
def test_items_move_with_their_value(photos, address):
    push(photos, address, partition_by="camera")
    photos.describe([1, 4], metadata={"camera": 2})
    photos.describe([3], labels=["hat"])
    assert push(photos, address) == Pushed(updated=3, items=N)
    assert push(photos, address) == Pushed(items=N)
    with EngineCollection.open(address) as there:
        two = key_of_value(2) % there.index.facts.parted.n
        assert counts(there.index)[two] == N // 3 + 2
        assert sum(counts(there.index).values()) == len(there) == N
        assert {1, 4} <= set(there.select("camera=2").tolist())
        assert np.array_equal(there.select("camera=2"), photos.select("camera=2"))
        assert differences(photos, address, 10) == []


@pytest.mark.slow
def test_an_item_that_stands_in_two_partitions_is_set_right(photos, address):
    """What an ended push had sent may arrive when the next has put the item elsewhere."""
    push(photos, address, partition_by="camera")
    with EngineCollection.open(address) as there:
        put_elsewhere(there.index, "id in [5, 8]")
        assert len(there) == N + 2
        photos.describe([7], labels=["hat"])
        assert push(photos, address) == Pushed(updated=3, items=N)
        assert NOWHERE not in counts(there.index)
        put_elsewhere(there.index, "id in [11]")
        photos.remove([1, 5])
        photos.apply(codes=some_codes(1, 3), items=[NewItem(metadata={"camera": 2})])
        assert push(photos, address) == Pushed(added=1, removed=2, items=N)  # one too many: the next looks at all
        assert push(photos, address) == Pushed(updated=1, items=N - 1)
        assert push(photos, address) == Pushed(items=N - 1)
        assert there.select("camera=2").tolist() == photos.select("camera=2").tolist()


@pytest.mark.slow
def test_how_items_are_parted_is_chosen_once(photos, address):
    assert inside("push", photos.path, address, "--partition-by", "metadata.camera", "--verify", 5).returncode == 0
    assert inside("push", photos.path, address).returncode == 0
    assert inside("push", photos.path, address, "--partition-by", "camera").returncode == 0
    run = inside("push", photos.path, address, "--partition-by", "label")
    said = " ".join(run.stderr.split())
    assert (run.returncode, f"{address} was made in partitions by metadata.camera" in said) == (1, True)
    assert "bitscale unpush" in said
    assert "metadata.camera" in inside("info", address).stdout
    assert inside("unpush", address, "--yes").returncode == 0
    assert "note: no item has camra" in inside("push", photos.path, address, "--partition-by", "camra").stdout
    with connect.open_index(address) as index:
        index.drop()
    push(photos, address)
    with pytest.raises(EngineError, match="without partitions, which no push can change"):
        push(photos, address, partition_by="camera")
    with pytest.raises(InputError, match="Got 'path'"):
        push(photos, address, partition_by="path")
    there = servers.address("postgres", "parted")
    with pytest.raises(EngineError, match="Milvus has partitions") as error:
        push(photos, there, partition_by="camera")
    assert there in str(error.value)
    assert "Push without --partition-by" in str(error.value)
    assert connect.existing(there) == []


@pytest.mark.slow
def test_approximate_and_in_partitions(photos, address):
    done = push(photos, address, approximate="hnsw", partition_by="camera")
    assert done.recall.recall > 0.5
    photos.apply(codes=some_codes(2, 3), items=[NewItem(metadata={"camera": 2})] * 2)
    assert push(photos, address).added == 2
    with EngineCollection.open(address) as there:
        found = [match.id for match in there.search(photos.index.get([N]), k=3, where="camera=2")[0]]
        assert found[0] == N
        assert np.isin(found, photos.select("camera=2")).all()
