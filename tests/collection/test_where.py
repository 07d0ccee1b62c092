"""Conditions: what they find, and that nothing typed is ever run."""

from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitscale import Collection
from bitscale.collection import NewItem
from bitscale.collection.store.seen import Seen
from bitscale.collection.where import Condition, condition, parse
from bitscale.errors import InputError
from tests.collection.made import codes_for, hasher

ROWS = [
    NewItem("/a/Holiday/1.jpg", labels=("cat",), metadata={"camera": 2, "year": 2019}, size=10),
    NewItem("/a/holiday/2.jpg", labels=("cat", "dog"), metadata={"camera": "2", "year": 2020}, size=20),
    NewItem("/a/3.jpg", labels=("catfish",), metadata={"year": "2021", "a.b": 1, "path": "x"}, size=30),
    NewItem("/a/caf\u00e9 \udcff.jpg", metadata={"flag": True, "none": None, "year": 2021.5}),
]
DAY = int(datetime(2024, 5, 3, 14, 2, 11).timestamp()) * 10**9
TAKEN = [
    Seen(4, 3, b"", {"taken": "2024-05-03T14:02:11", "camera": "Lumix DC-G9", "iso": 200}),
    Seen(4, 3, b"", {"taken": "2024-06-30T00:00:00", "aperture": 2.8}),
    Seen(4, 3, b"", {"taken": "2019-12-31T23:59:59", "camera": "Holga"}),
    Seen(4, 3, b"", {}),
]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    with Collection.create(tmp_path_factory.mktemp("w") / "c.bsc", hasher()) as made:
        rows = [replace(row, modified=DAY + place * 10**9 * 3600 * 24) for place, row in enumerate(ROWS)]
        made.apply(codes=codes_for(made, len(ROWS)), items=rows, seen=TAKEN)
        yield made


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("camera=2", [0, 1]),
        ({"camera": 2}, [0, 1]),
        ('camera="2"', [1]),
        ("camera!=2", [2, 3]),
        ("label=cat", [0, 1]),
        ("label!=cat", [2, 3]),
        ("label~CAT", [0, 1, 2]),
        ("path~holiday", [0, 1]),
        ("path~CAF", [3]),
        ("path~\udcff", [3]),
        ("path=/a/3.jpg", [2]),
        ("path!=/a/3.jpg", [0, 1, 3]),
        ("path=/a/caf\u00e9 \udcff.jpg", [3]),
        ("year>=2020", [1, 3]),  # the text "2021" is no number
        ('year>="2020"', [2]),
        ("year < 2020", [0]),
        ("size>10", [1, 2]),
        ("id<=1", [0, 1]),
        ("a.b=1", [2]),
        ("metadata.path=x", [2]),
        ("flag=true", [3]),
        ("none=null", [0, 1, 2, 3]),
        ("label=", []),
        ("none~" + "[" * 5_000, []),
        ("none=" + "[" * 5_000, []),  # deeper than JSON is read: a text
        ("exif.taken>=2024-05", [0, 1]),
        ("exif.taken=2024-05", [0]),
        ("exif.taken>2024-05", [1]),
        ("exif.taken<=2024-05-03", [0, 2]),
        ("exif.taken<2024", [2]),
        ("exif.taken!=2024", [2, 3]),
        ("exif.taken=2024-05-03 14:02", [0]),
        ("exif.camera~lumix", [0]),
        ("exif.iso>=100", [0]),
        ("exif.aperture=2.8", [1]),
        ("exif.camera=Holga", [2]),
        ("modified>=2024-05-05", [2, 3]),
        ("modified=2024-05", [0, 1, 2, 3]),
        ("modified<2024-05-03T14:02", []),
        ("modified<=2024-05-03T14:02", [0]),
        ("modified!=2024-05-03", [1, 2, 3]),
        (["label=cat", "year>2019"], [1]),
        (["label=cat", Condition("year", "=", 2019)], [0]),
    ],
)
def test_what_is_found(photos, where, found):
    assert photos.select(where).tolist() == found


@pytest.mark.parametrize(
    "where",
    ["camera", "", "=2", [], {}, 7, "path<3", "label>3", "size~3", "size=x", "label=\udcff", ["camera=2", 7],
     Condition("camera", "LIKE", 2), Condition("camera", "=", [1]), "size=99999999999999999999", {"camera": {}}],
)  # fmt: skip
def test_what_cannot_be_asked_is_said(photos, where):
    with pytest.raises(InputError):
        photos.select(where)


@pytest.mark.slow
@given(st.text(), st.sampled_from(["=", "!=", "~", "<", ">="]), st.text())
def test_nothing_typed_stands_in_the_sql(field, sign, value):
    plain, _ = condition(Condition("a", sign, "b"))
    sql, values = condition(Condition(f"{field}\u00a7", sign, f"{value}"))
    assert sql == plain
    assert {value, value.encode()} & set(values)


@given(st.text())
def test_parsing_never_crashes(text):
    try:
        found = parse(text)
    except InputError:
        return
    assert found.sign in ("=", "!=", "<", "<=", ">", ">=", "~")


@pytest.mark.parametrize("nasty", ["x'; DROP TABLE items; --", 'a"]', "$.x", "%", "\x00", "a b", "[0]"])
def test_hostile_names_are_only_names(photos, nasty):
    for where in ({nasty: 1}, f"path~{nasty}" if "\x00" not in nasty else {"label": nasty}, {"label": nasty}):
        assert photos.select(where).tolist() == []
    assert len(photos) == len(ROWS)


def test_searching_within(photos):
    found = photos.search(np.int64(0), 10, where="label=cat")
    assert {match.id for match in found[0]} == {0, 1}


def test_numbers_beyond_the_database_are_told_apart_from_what_is_no_number(photos):
    for where in ("year=99999999999999999999", {"year": -(2**63) - 1}):
        with pytest.raises(InputError, match="whole numbers of 64 bits"):
            photos.select(where)
