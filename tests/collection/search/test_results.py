"""Results: matches with their items, as data, as HTML; cheap until asked."""

import gc
import json
import shutil

import numpy as np
import pytest
from PIL import Image

from bitscale import Codes, Collection, Relaxed
from bitscale.collection import NewItem
from bitscale.errors import InputError, UnknownItem
from bitscale.hamming import distances
from tests.collection.folders import model
from tests.collection.made import codes_for, hasher

WEIGHTS = np.sort(np.random.default_rng(3).random(16))[::-1]
NASTY = "<b onmouseover='x'>&\"\n\udcff\x1b[31m.png"


@pytest.fixture
def photos(tmp_path):
    with Collection.create(tmp_path / "c.bsc", hasher()) as made:
        for i in range(30):
            Image.fromarray(np.full((20, 30), i * 8, np.uint8)).save(tmp_path / f"{i}.png")
        Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / NASTY, "PNG")
        items = [NewItem(str(tmp_path / f"{i}.png"), labels=("even",) * (i % 2 == 0)) for i in range(29)]
        items += [NewItem(str(tmp_path / NASTY), metadata={"camera": 2})]
        made.apply(codes=codes_for(made, 30), items=items)
        yield made


def test_rows_and_matches(photos):
    results = photos.search([4, 29], k=5)
    assert len(results) == 2
    assert [row.name for row in results] == ["item 4", "item 29"]
    assert results[0][0].id == 4
    assert results[0][0].item.labels == ("even",)
    assert results[-1].name == "item 29"
    assert [match.id for match in results[0]] == results.hits.ids[0].tolist()
    assert len(results[:1]) == 1
    assert len(results[0][:2]) == 2
    with pytest.raises(IndexError):
        results[2]


@pytest.mark.parametrize("how", [{}, {"bits": 7}, {"radius": 6}, {"max_distance": 6.0, "bits": 12}])
def test_explanations_agree_with_the_codes(photos, how):
    codes = photos.index.get([3])
    used = how.get("bits", 16)
    row = photos.search(codes, **how)[0]
    for match in row:
        other = photos.index.get([match.id])
        bits = np.unpackbits(codes.packed[0] ^ other.packed[0])[:used]
        assert match.differing == bits.sum()
        assert match.disagree == tuple(np.flatnonzero(bits[:8]))
        most = used if "radius" in how else codes.bit_weights[:used].sum()
        assert match.share == pytest.approx(match.distance / most)
        assert row.code_distances[match._place] == distances(codes, other, bits=used)[0, 0]


def test_relaxed_queries_are_explained_by_their_signs(photos):
    values = np.random.default_rng(0).uniform(-1, 1, (1, 16))
    row = photos.search(Relaxed(values, photos.bit_weights, model=photos.model), 3)[0]
    assert all(0 <= match.share <= 1 for match in row)
    signs = np.packbits(values >= 0, axis=1)
    assert row[0].differing == np.unpackbits(signs[0] ^ photos.index.get([row[0].id]).packed[0]).sum()


def test_plain_data_has_a_stable_shape(photos):
    (row,) = json.loads(json.dumps(photos.search(29, k=2).to_dicts()))
    assert list(row) == ["query", "bits", "verdict", "grade", "matching", "cutoff", "matches"]
    assert list(row["cutoff"]) == ["distance", "chance", "usual", "kind"]
    assert list(row["matches"][0]) == [
        "id", "path", "distance", "share", "verdict", "grade", "decided", "itself", "differing_bits", "disagree",
        "labels", "metadata", "exif", "size", "modified",
    ]  # fmt: skip
    assert row["matches"][0]["path"].endswith(NASTY)
    assert row["matches"][0]["metadata"] == {"camera": 2}


def test_the_item_searched_for_does_not_count_as_similar_to_itself(tmp_path):
    with Collection.create(tmp_path / "c.bsc", hasher(64)) as photos:
        photos.apply(codes=codes_for(photos, 50), items=[NewItem(str(tmp_path / f"{i}.png")) for i in range(50)])
        row = photos.search(7, k=3)[0]
        assert [match.itself for match in row] == [True, False, False, False]  # it does not use up k
        assert (row[0].verdict, row.verdict) == ("similar", "not similar")
        assert row.to_dict()["matches"][0]["itself"] is True
        photos.add_codes(photos.index.get([7]), paths=[str(tmp_path / "copy.png")])
        assert photos.search(7, k=3)[0].verdict == "similar"
        results = photos.search(photos.index.get([7]), k=3)
        assert [match.itself for match in results[0]] == [False, False, False]  # a code is no item


def test_a_notebook_gets_at_most_24_pictures_and_no_markup_of_ours(photos):
    html = photos.search(list(range(30)), k=10)._repr_html_()
    assert html.count("<img") == 24
    assert "<script" not in html
    html = photos.search(29, k=3)._repr_html_()
    assert "<b onmouseover" not in html
    assert "&lt;b onmouseover=&#39;x&#39;&gt;&amp;&#34;\\n\\udcff\\x1b[31m.png" in html


def test_a_page_shows_missing_files_as_such(photos, tmp_path):
    (tmp_path / "5.png").unlink()
    (tmp_path / "6.png").write_bytes(b"rubbish")
    photos.search([5, 6, 29], k=3).save_html(tmp_path / "out.html", "My <title>")
    page = (tmp_path / "out.html").read_text()
    assert "the file is missing" in page
    assert "cannot be read as an image" in page
    assert "My &lt;title&gt;" in page


def test_nothing_found_is_a_row_without_matches(photos):
    row = photos.search(Codes(np.array([[0, 0]], np.uint8), photos.bit_weights, photos.model), where="label=none")[0]
    assert len(row) == 0
    assert row.verdict == "not similar"
    assert row.to_dict()["matches"] == []
    assert (row.says, row.finds, row.to_dict()["matching"]) == (*["no item passes the filter"] * 2, 0)


def test_results_explain_the_version_they_were_searched_in(photos):
    before = photos.search(4, k=3)[0].to_dict()
    results, other = photos.search(4, k=3), hasher(8, seed=1)
    photos.remove(4)
    assert results[0].to_dict()["matches"] == before["matches"]
    results, before = photos.search(5, k=3), photos.search(5, k=3).to_dicts()
    photos.stage([item.id for item in photos.items()], codes_for(other, len(photos)), other)
    photos.switch(other)  # shorter codes: nothing of the old ones may meet them
    assert results.to_dicts() == before


def test_words_for_numbers_of_bits_and_for_an_empty_collection(photos, tmp_path):
    row = photos.search(4, radius=16)[0]
    assert row[1].shown_distance == f"{row[1].differing} bits"
    assert "weighted" in row.limit
    assert "weighted" not in photos.search(4)[0].limit
    photos.remove(range(30))
    assert photos.search(codes_for(photos, 1))[0].says == "there is nothing in this collection yet"


@pytest.mark.slow
@pytest.mark.parametrize("asked", [4, [4, 29], "5.png"])
def test_results_outlive_their_collection(tmp_path, photos, asked):
    """Everything they can tell is told from what they hold, also after the files of the collection are gone."""
    with Collection.create(tmp_path / "other.bsc", model()) as home:
        home.add([tmp_path / f"{i}.png" for i in range(30)])
        query = str(tmp_path / asked) if isinstance(asked, str) else asked
        open_ones, results = home.search(query, k=3), home.search(query, k=3)
        told, page, shown = open_ones.to_dicts(), open_ones.sheet().page(), open_ones._repr_html_()
        names, ids, distances = open_ones.names, open_ones.ids, open_ones.distances
    shutil.rmtree(tmp_path / "other.bsc")
    assert np.array_equal(results.ids, ids)
    assert np.array_equal(results.distances, distances)
    assert (results.names, [match.item.path for match in results[0]]) == (
        names,
        [m["path"] for m in told[0]["matches"]],
    )
    assert results.to_dicts() == told
    assert results.sheet().page() == page
    assert results._repr_html_() == shown
    results.save_html(tmp_path / "after.html")
    assert (tmp_path / "after.html").read_text() == page


def test_results_never_call_their_collection(photos, monkeypatch):
    """Searching is the last that the collection has to do with it."""
    results = photos.search([4, 29], k=5)

    def called(*_, **__):
        raise AssertionError("results went back to the collection")

    for name in ("items_of", "item", "sample", "refresh", "search"):
        monkeypatch.setattr(Collection, name, called)
    monkeypatch.setattr(type(photos._database), "reading", called)
    assert results.to_dicts()
    assert results._repr_html_()


def test_other_weights_for_one_search(photos):
    codes = photos.index.get([3, 4])
    weights = np.random.default_rng(5).random((2, 16))
    for given in (weights, weights[0]):
        results = photos.search(codes, k=5, weights=given, bits=12)
        wanted = distances(codes, photos.index.get(np.arange(30)), weights=given, bits=12)
        for place, row in enumerate(results):
            assert [match.id for match in row] == np.lexsort((np.arange(30), wanted[place]))[:5].tolist()
            most = np.atleast_2d(given)[place % np.atleast_2d(given).shape[0], :12].sum()
            assert [match.share for match in row] == [match.distance / most for match in row]
    with pytest.raises(InputError, match="radius counts"):
        photos.search(codes, radius=2, weights=weights[0])


def test_an_item_that_is_not_there_has_an_error_of_its_own(photos):
    with pytest.raises(UnknownItem):
        photos.search(99)
    with pytest.raises(UnknownItem):
        photos.item(99)


@pytest.mark.slow
def test_nothing_is_left_for_the_garbage_collector(photos):
    """A service that searches without end would hold on to old versions of the index until the collector comes."""

    def search(k):
        row = photos.search([4], k=k, where={"label": "even"} if k % 2 else None)[0]
        return [match.verdict for match in row], row.says

    search(3)
    gc.collect()
    gc.disable()
    try:
        for k in range(1, 20):
            search(k)
            photos.remove(photos.add_codes(codes_for(photos, 1)))
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_row_in_use_is_the_same_row(photos):
    results = photos.search([4, 29], k=3)
    row = results[0]
    assert results[0] is row
    assert row[1] == list(row)[1] == row[1:][0]
    assert row[-1] == list(row)[-1]
    with pytest.raises(IndexError):
        row[len(row)]
