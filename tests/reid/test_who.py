"""A gallery asked who somebody is: persons, cameras, times, filters, sequences, a timeline; and the verbs for it."""

import json

import numpy as np
import pytest

from bitscale.collection import Collection
from bitscale.collection.where import Condition
from bitscale.data.labelled import Labelled
from bitscale.errors import InputError, UnreadablePicture
from bitscale.hashers import load_hasher, make_hasher
from bitscale.reid.gallery import moments, take_in
from bitscale.reid.sources import load_people
from bitscale.reid.who import pooled, save_timeline, time_text, who
from tests.cli.run import inside
from tests.pictures.bombs import BOMBS
from tests.reid.crops import crop, cuhk03_mat, market_folder, save


def model(n_bits=32):
    """Colours alone tell these persons apart; nothing is trained on them."""
    pixels = np.stack([crop(person, 0, 0) for person in range(200, 260)])
    part = Labelled(pixels, np.zeros(len(pixels), np.int64), ("none",))
    return make_hasher("itq", n_bits=n_bits, features="pixels@16", seed=0).fit(part)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "persons.safetensors"
    model().save(path)
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory, fitted):
    """A gallery of eight persons in three cameras, and crops to ask for."""
    root = tmp_path_factory.mktemp("gallery")
    market_folder(root / "crops")
    with Collection.create(root / "g.bsc", load_hasher(fitted)) as gallery:
        take_in(gallery, load_people(root / "crops"), workers=1)
    for shot in range(3):
        save(root / f"asked-{shot}.png", crop(5, 2, 40 + shot))
    return root


def test_persons_with_cameras_and_times(place):
    with Collection.open(place / "g.bsc", read_only=True) as gallery:
        (answer,) = who(gallery, [[str(place / "asked-0.png")]], k=3)
    first = answer.candidates[0]
    assert (first.person, first.cameras, len(first.sightings)) == (5, [1, 2, 3], 6)
    assert [one.time for one in first.sightings] == sorted(one.time for one in first.sightings)
    assert first.span == (60.0, 141.0)  # frames 1,500 and 3,525 at 25 a second
    assert len({one.person for one in answer.candidates}) == 3
    far = [one.distance for one in answer.candidates]
    assert far == sorted(far)
    assert first.distance == min(one.distance for one in first.sightings)


def test_only_some_cameras_and_times(place):
    with Collection.open(place / "g.bsc", read_only=True) as gallery:
        (answer,) = who(gallery, [[str(place / "asked-0.png")]], k=99, where=["camera=3", "time>=140"])
        assert {s.camera for one in answer.candidates for s in one.sightings} == {3}
        assert {s.time >= 140 for one in answer.candidates for s in one.sightings} == {True}
        with pytest.raises(InputError, match="no picture of a known person for which camera=9 holds"):
            who(gallery, [[str(place / "asked-0.png")]], where="camera=9")
        with pytest.raises(InputError, match=r"no picture\. Give one"):
            who(gallery, [[]])


def test_times_are_asked_for_as_they_are_shown(place):
    day = 86_400 * 19_844  # 2024-05-01
    assert moments("time>=2024-05-01T00:02") == [Condition("time", ">=", day + 120)]
    assert moments(["camera=2", "time<=2024-05-01"]) == [
        Condition("camera", "=", 2),
        Condition("time", "<", day + 86_400),
    ]
    assert moments("time=2024-05-01") == [Condition("time", ">=", day), Condition("time", "<", day + 86_400)]
    assert moments("time>60") == [Condition("time", ">", 60)]
    for bad in ("time>noon", "time>=2024-13-01", "time!=2024-05-01"):
        with pytest.raises(InputError, match="a date"):
            moments(bad)
    with Collection.open(place / "g.bsc", read_only=True) as gallery:
        (answer,) = who(gallery, [[str(place / "asked-0.png")]], k=99, where="time<1970-01-01T00:01")
        assert {s.time < 60 for one in answer.candidates for s in one.sightings} == {True}
        with pytest.raises(InputError, match="for which time>2024-05 holds"):
            who(gallery, [[str(place / "asked-0.png")]], where=["time>2024-05"])


@pytest.mark.slow
def test_a_sequence_is_one_query(place):
    paths = [str(place / f"asked-{shot}.png") for shot in range(3)]
    with Collection.open(place / "g.bsc", read_only=True) as gallery:
        (answer,) = who(gallery, [paths], k=1)
        values = pooled(gallery, [paths]).values
        single = [pooled(gallery, [[path]]).values[0] for path in paths]
    np.testing.assert_allclose(values[0], np.mean(single, axis=0), atol=1e-4)
    assert answer.candidates[0].person == 5
    assert answer.name == "asked-0.png and 2 more"


@pytest.mark.slow
def test_a_bomb_is_decoded_by_a_worker(place, tmp_path):
    """In this process it would be decoded, into gigabytes."""
    (tmp_path / "bomb.webp").write_bytes(BOMBS["webp wide"]())
    with Collection.open(place / "g.bsc", read_only=True) as gallery, pytest.raises(UnreadablePicture, match="bomb"):
        who(gallery, [[str(place / "asked-0.png"), str(tmp_path / "bomb.webp")]])


def test_the_timeline_shows_sightings_in_order(place, tmp_path):
    with Collection.open(place / "g.bsc", read_only=True) as gallery:
        save_timeline(who(gallery, [[str(place / "asked-0.png")]], k=1), gallery, tmp_path / "who.html")
    page = (tmp_path / "who.html").read_text("utf-8")
    assert "1. person 5" in page
    places = [page.index(f"<strong>00:0{time}") for time in ("1:00.0", "1:40.0", "2:20.0", "2:21.0")]
    assert places == sorted(places)
    assert page.count('src="data:image') == 7


def test_times_in_words():
    assert time_text(None) == ""
    assert time_text(3_725.5) == "01:02:05.5"
    assert time_text(1714571100.0) == "2024-05-01 13:45:00"


def test_pictures_that_are_no_files(tmp_path, fitted):
    people = load_people(cuhk03_mat(tmp_path / "cuhk-03.mat"))
    with Collection.create(tmp_path / "g.bsc", load_hasher(fitted)) as gallery:
        assert take_in(gallery, people).added == 69
        item = gallery.item(0)
        assert (item.path, item.metadata) == ("", {"person": "1-0001", "camera": "1A"})


def test_pictures_that_are_no_files_are_added_once(tmp_path, fitted):
    people = load_people(cuhk03_mat(tmp_path / "cuhk-03.mat"))
    with Collection.create(tmp_path / "g.bsc", load_hasher(fitted)) as gallery:
        take_in(gallery, people.take(np.arange(20)))  # as far as a stopped call came
        changes = take_in(gallery, people)
        assert (changes.added, changes.unchanged, len(gallery)) == (49, 20, 69)
        changes = take_in(gallery, people)
        assert (changes.added, changes.unchanged, len(gallery)) == (0, 69, 69)


def test_codes_only_goes_on_and_keeps_nothing_of_files(tmp_path, fitted):
    market_folder(tmp_path / "crops")
    (tmp_path / "crops" / "0005_c1s1_000001_09.jpg").write_bytes(b"no picture")
    people = load_people(tmp_path / "crops")

    def stop(done, total):
        raise KeyboardInterrupt

    with Collection.create(tmp_path / "g.bsc", load_hasher(fitted), codes_only=True) as gallery:
        with pytest.raises(KeyboardInterrupt):
            take_in(gallery, people, workers=1, progress=stop)
        before = len(gallery)
        assert before
        changes = take_in(gallery, people, workers=1)
        assert (changes.added, changes.unchanged, len(gallery)) == (48 - before, before, 48)
        assert len(changes.skipped) == 1
        assert take_in(gallery, people, workers=1).added == 0
        assert {item.path for item in gallery.items()} == {""}
        assert gallery.skipped() == []


def test_two_crops_alike_in_all_that_is_kept_are_both_added(tmp_path, fitted):
    people = load_people(cuhk03_mat(tmp_path / "cuhk-03.mat")).take(np.array([0, 0, 0, 1]))
    with Collection.create(tmp_path / "g.bsc", load_hasher(fitted)) as gallery:
        assert [take_in(gallery, people).added for _ in range(2)] == [4, 0]


@pytest.mark.slow
def test_the_verbs(place, fitted, tmp_path):
    crops, home = place / "crops", tmp_path / "v.bsc"
    assert inside("reid", "index", crops, "-c", home).returncode == 2  # no model
    made = told("reid", "index", crops, "-c", home, "--model", fitted, "--codes-only")
    assert (made["added"], made["items"], made["created"]) == (48, 48, True)
    found = told("reid", "who", home, place / "asked-0.png", "--where", "camera!=2", "-k", "2")
    best = found["queries"][0]["candidates"][0]
    assert (best["person"], best["cameras"]) == (5, [1, 3])
    assert {one["path"] for one in best["sightings"]} == {""}
    shown = inside("reid", "who", home, place / "asked-0.png", place / "asked-1.png", "--sequence", "-k", "1")
    assert "and 1 more" in shown.stdout
    assert "1, 2, 3" in shown.stdout
    assert inside("reid", "who", home, place / "asked-0.png", "--where", "camera=9").returncode == 1
    assert inside("reid", "index", crops, "-c", home, "--model", "fashion-mnist").returncode == 2  # it has another
    for added in (48, 0):  # the same command goes on
        made = told("reid", "index", crops, "-c", tmp_path / "w.bsc", "--model", fitted)
        assert (made["added"], made["items"]) == (added, 48)
    assert inside("reid", "index", crops, "-c", tmp_path / "w.bsc", "--codes-only").returncode == 2
    assert told("reid", "train", crops, "--out", tmp_path / "m.txt")["error"]


def told(*words):
    """What a verb prints for machines."""
    return json.loads(inside(*words, "--json").stdout)
