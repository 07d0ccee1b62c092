"""A collection on a real engine answers as the folder does that it was pushed from: searches, conditions, pages."""

import json

import numpy as np
import pytest
from PIL import Image

import bitscale as bs
from bitscale.collection.duplicates.find import find_duplicates
from bitscale.collection.duplicates.plan import as_dict
from bitscale.collection.engines.collection import EngineCollection
from bitscale.collection.engines.push import push
from bitscale.collection.items import NewItem
from bitscale.collection.search.results import Results
from bitscale.collection.store.seen import Seen
from bitscale.collection.where import Condition
from bitscale.errors import EngineError, InputError, ModelMismatch, UnknownItem
from bitscale.index.engines import connect
from bitscale.pictures.look import LOOK_BYTES
from tests import servers
from tests.cli.run import inside
from tests.collection.engines.made import HASHER, some_codes

pytestmark = pytest.mark.slow
N, PICTURES = 250, 12
NOTES = [2, 2.0, "2", "two", True, False, None, [1, 2], {"a": "é"}, -3, 2.5, "\0zero", "Straße", "", 1, 0, "2.5", 1e30]
LABELS = [(), ("coat",), ("coat", "red"), ("Été", "e\u0301te\u0301"), ("100%",), ("a'b\"c\\",)]


def item(i):
    name = {0: "", 1: "/p/caf\udce9.png", 2: "/p/été \U0001f30d.png", 3: '/p/it\'s "odd"; --.png'}
    taken = {} if i % 4 == 0 else {"taken": f"20{10 + i % 15}-0{1 + i % 9}-11T10:00:0{i % 10}", "iso": 100 * (i % 5)}
    note = {} if i % 7 == 0 else {"note": NOTES[i % len(NOTES)]}
    known = {**note, "none": None, "camera": i % 5, "odd \"' key": f"v{i % 3}"}
    seen = Seen(40 + i, 30, bytes([i % 256]) * LOOK_BYTES, taken)
    times = 1_600_000_000_000_000_000 + i * 86_400_000_000_000
    return NewItem(name.get(i, f"/p/{i}.png"), bytes([i % 256]) * 32, i, times, LABELS[i % 6], known), seen


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A collection of odd items, and of some pictures that can be read."""
    home = tmp_path_factory.mktemp("engine")
    rng = np.random.default_rng(3)
    for i in range(PICTURES):
        Image.fromarray(rng.integers(0, 256, (28, 28), dtype=np.uint8)).save(home / f"{i}.png")
    Image.open(home / "0.png").resize((56, 56)).save(home / "larger.png")
    (home / "same.png").write_bytes((home / "1.png").read_bytes())
    with bs.Collection.create(home / "photos.bsc", HASHER) as photos:
        rows = [item(i) for i in range(N)]
        photos.apply(codes=some_codes(N), items=[one for one, _ in rows], seen=[seen for _, seen in rows])
        photos.remove([9, N - 1])
        photos.add(home)
        yield photos


@pytest.fixture(scope="module", params=["postgres", "milvus", "milvus by camera"])
def both(request, folder):
    engine, _, field = request.param.partition(" by ")
    address = servers.address(engine, "served")
    for left in connect.existing(address):
        left.drop()
    push(folder, address, partition_by=field or None)
    with EngineCollection.open(address, HASHER) as there:
        yield folder, there
        there.index.drop()


WHERE = [
    "camera=2", "camera!=2", "camera<2", "camera>=2", "camera~2", 'camera="2"', "note=2", 'note="2"', "note=2.0",
    "note=1", "note=0", "note=true", "note=false", "note=null", "note!=null", "note!=2", "note=two", "note<2.5",
    "note>=2", 'note>="2"', 'note<"tx"', "note<null", "note~t", "note~STRASSE", "note~2", "note~,", "note=", "note~",
    'note=[1,2]', "note~é", "note>0", "note<true", "note=1e30", "label=coat", "label!=coat", "label~COA",
    "label~été", "label=100%", "label~%", "label=a'b\"c\\", "label=nobody", "path=/p/12.png", "path!=/p/12.png",
    "path~ÉTÉ", "path~.PNG", "path~caf\udce9", "path~it's \"", "size=12", "size>=100.5", "size!=3", "id<10",
    "id>=245.5", "id=7", "id!=7", "id=7.5", "modified>=2020-12", "modified=2021", "modified<2020-10-01",
    "modified!=2020-09-14T10:00",
    "modified<=2020-11", "modified>2020-11", "modified>1610000000000000000", "exif.taken=2013", "exif.taken!=2013-04",
    "exif.taken<2013-04", "exif.taken<=2013-04", "exif.taken>2013-04", "exif.taken>=2013-04", "exif.taken~11T10",
    "exif.iso=200", "exif.iso>=200", "exif.lens=x", "exif.lens!=x", "odd \"' key=v1", "metadata.camera=3", "absent=1",
    "absent!=1", "absent=null", "absent~x", "none=null", "none!=null", "x') OR 1=1 --=1", "label=') OR true --",
]  # fmt: skip


def test_conditions_hold_for_the_same_items(both):
    here, there = both
    for text in WHERE:
        conditions = [text] if "OR 1=1" not in text else [Condition("x') OR 1=1 --", "=", 1)]
        assert np.array_equal(there.select(conditions), here.select(conditions)), text
    many = [{"camera": 2, "label": "coat"}, ["camera>=2", "note~t", "label~COA"], [Condition("note", "=", "\0zero")]]
    for where in many:
        assert np.array_equal(there.select(where), here.select(where)), where
    for bad in ("size~3", "label<3", "modified=soon", "nothing", "exif.taken=yesterday"):
        with pytest.raises(InputError) as error:
            here.select(bad)
        with pytest.raises(InputError) as same:
            there.select(bad)
        assert str(same.value) == str(error.value)


def plain(results: Results):
    return [json.loads(json.dumps(row)) for row in results.to_dicts()]


@pytest.mark.parametrize(
    "how",
    [{}, {"bits": 16}, {"where": "camera=2"}, {"where": "note~t", "bits": 24}, {"radius": 20}, {"max_distance": 5.0},
     {"where": "label=nobody"}, {"k": 3, "weights": np.linspace(2, 0, 64)}],
)  # fmt: skip
def test_searches_tell_the_same(both, how):
    here, there = both
    for query in (
        [0, 5, 17],
        some_codes(3, seed=9),
        bs.Relaxed(np.linspace(-0.9, 0.9, 64)[None], here.bit_weights, model=here.model),
    ):
        ours, theirs = here.search(query, **how), there.search(query, **how)
        assert plain(theirs) == plain(ours)
        assert theirs.version.n_items == ours.version.n_items


def test_pictures_are_searched_for_with_the_model(both, tmp_path):
    here, there = both
    path = here.item(N).path
    ours, theirs = here.search([path]), there.search([path])
    assert plain(theirs) == plain(ours)
    assert theirs[0][0].itself
    theirs.save_html(tmp_path / "found.html")
    assert f"Search in {there.path.name}" in (tmp_path / "found.html").read_text()
    with EngineCollection.open(str(there.path)) as bare:
        assert plain(bare.search(5)) == plain(here.search(5))
        with pytest.raises(EngineError, match="holds codes and no model") as error:
            bare.search([path])
        assert str(there.path) in str(error.value)
    other = bs.make_hasher("lsh", n_bits=8, features="none").fit(
        bs.data.Labelled(np.eye(16, dtype=np.float32), np.zeros(16, np.int64), ("",))
    )
    with pytest.raises(ModelMismatch, match="give that model"):
        EngineCollection.open(str(there.path), other)


def test_items_pages_facets_and_looks(both):
    here, there = both
    assert list(there.items()) == list(here.items())
    assert list(there.listing("/p")) == list(here.listing("/p"))
    for where in (None, "camera=2", "note~t"):
        assert there.page(20, 30, where) == here.page(20, 30, where)
    assert there.find("/p/12.png") == here.find("/p/12.png") == 12
    assert there.find("/p/none.png") is None
    assert there.facets() == here.facets()
    fields = ("camera", "note", "none", "absent", "odd \"' key")
    assert [there.has_field(name) for name in fields] == [here.has_field(name) for name in fields]
    assert there.sizes() == here.sizes()
    ids = [3, 8, N + 1]
    assert sorted(there.looks_of(ids)[0]) == sorted(here.looks_of(ids)[0])
    assert there.item(5) == here.item(5)
    with pytest.raises(UnknownItem):
        there.item(9)


def test_duplicates_are_the_same(both):
    here, there = both
    ours, theirs = as_dict(find_duplicates(here)), as_dict(find_duplicates(there))
    assert theirs == ours
    assert ours["identical"]
    learned = [one.learn(3, [5], [6]) for one in both]
    assert np.array_equal(learned[0].weights, learned[1].weights)


def test_verbs_take_an_address(both, tmp_path):
    here, there = both
    address = str(there.path)
    ours, theirs = (inside("search", place, "5", "--where", "camera=2", "--json") for place in (here.path, address))
    assert theirs.returncode == 0, theirs.stderr + theirs.stdout
    theirs, ours = json.loads(theirs.stdout), json.loads(ours.stdout)
    assert theirs.pop("collection") == address
    ours.pop("collection")
    assert theirs == ours
    picture = here.item(N).path
    run = inside("search", address, picture, "--model", here.path, "--bits", "32", "--html", tmp_path / "found.html")
    assert run.returncode == 0, run.stderr
    assert "itself" in run.stdout
    run = inside("search", address, picture, "--json")
    assert json.loads(run.stdout)["error"]["type"] == "EngineError"
    run = inside("duplicates", address, "--json")
    assert len(json.loads(run.stdout)["identical"]) == 1
    run = inside("search", here.path, "5", "--model", here.path)
    assert "--model goes with" in run.stderr
    ours, theirs = (
        json.loads(inside("list", place, "--where", "camera=2", "--json").stdout) for place in (here.path, address)
    )
    assert theirs.pop("collection") == address
    ours.pop("collection")
    assert theirs == ours
    about = json.loads(inside("info", address, "--json").stdout)
    assert (about["items"], about["n_bits"], about["answers"]) == (len(here), 64, "exact")
    parted = there.index.facts.parted
    assert (about.get("partition_by"), about.get("partitions")) == (parted or (None, None))


def test_back_with_the_model_of_the_collection_that_was_pushed(both, tmp_path):
    here, there = both
    run = inside("pull", there.path, tmp_path / "back.bsc", "--model", here.path)
    assert run.returncode == 0, run.stderr
    with bs.Collection.open(tmp_path / "back.bsc", read_only=True) as back:
        assert list(back.items()) == list(here.items())


@pytest.mark.parametrize("verb", ["add", "backup", "compact", "erase", "index", "label", "reindex", "remove", "verify"])
def test_verbs_for_folders_say_of_an_address_what_to_do(verb, tmp_path):
    """And make no folder of that name; a password that was typed is not repeated."""
    more = {
        "add": [tmp_path], "backup": [tmp_path / "b"], "erase": ["--where", "camera=2"], "label": [1, "--label", "x"],
        "remove": [1], "reindex": ["--model", "fashion-mnist"],
    }  # fmt: skip
    for address in ("milvus://localhost/holiday", "postgresql://me:geheim@localhost/photos"):
        run = inside(verb, address, *more.get(verb, []), cwd=tmp_path)
        assert run.returncode == 2, run.stderr
        assert "is on an engine" in run.stderr
        assert "bitscale pull" in run.stderr
        assert ("geheim" in run.stderr, address in run.stderr) == (False, "milvus" in address)
    run = inside("index", tmp_path, "-c", "milvus://localhost/holiday", cwd=tmp_path)
    assert (run.returncode, "is on an engine" in run.stderr) == (2, True)
    assert not list(tmp_path.iterdir())
