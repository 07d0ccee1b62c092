"""Splits of CUHK03 that others measured on: who is learned from and found, and galleries across its camera pairs."""

import numpy as np
import pytest

from bitscale.data.sets.cuhk03 import load_cuhk03
from bitscale.errors import DataError, InputError
from bitscale.reid.evaluate import How, between_cameras, ways
from bitscale.reid.measure import Asked
from bitscale.reid.protocols import in_the_paper, is_whole, listed_count, listed_split, paper_split
from bitscale.reid.table import fill, lines
from tests.cli.run import inside
from tests.reid.crops import crop, cuhk03_folder, cuhk03_mat, save

SIZES = {"tested": 4, "validated": 2}


@pytest.fixture
def source(tmp_path):
    (tmp_path / "data").mkdir()
    return cuhk03_mat(tmp_path / "data/cuhk-03.mat", pairs=(6, 3, 3, 2), empty=()).parent


@pytest.fixture
def folder(tmp_path):
    """Pictures under the official names: five persons in each of three pairs, two in the fourth."""
    for pair, persons in enumerate((5, 5, 5, 2), 1):
        for person in range(1, persons + 1):
            for shot in (1, 2, 6, 7):
                name = f"{pair}_{person:03d}_{1 + (shot > 5)}_{shot:02d}.png"
                save(tmp_path / "cuhk03/images_labeled" / name, crop(100 * pair + person, shot > 5, shot))
    return tmp_path / "cuhk03"


def test_the_paper_s_persons_are_those_of_three_pairs(folder):
    people = load_cuhk03(folder)
    assert (people.n_persons, in_the_paper(people).n_persons) == (17, 15)
    seen = [paper_split(people, number, **SIZES) for number in range(10)]
    for number, one in enumerate(seen):
        assert one.name == f"paper-{number}"
        assert (one.train.n_persons, one.test.n_persons) == (9, 4)  # two are kept aside
        assert not set(one.train.persons) & set(one.test.persons)
        assert not any(people.names[person].startswith("4-") for person in {*one.train.persons, *one.test.persons})
    assert len({tuple(np.unique(one.test.persons)) for one in seen}) > 5
    again = paper_split(people, 3, **SIZES)
    np.testing.assert_array_equal(again.test.persons, seen[3].test.persons)
    with pytest.raises(InputError, match=r"10 splits, from 0 on\. Got 10"):
        paper_split(people, 10, **SIZES)


def test_persons_that_go_by_other_names_are_not_the_paper_s(tmp_path):
    people = load_cuhk03(cuhk03_folder(tmp_path / "cuhk03"))
    assert not is_whole(people)
    with pytest.raises(DataError, match=r"pairs 1 to 3\. Got 0.*1_012_2_07\.png"):
        paper_split(people, 0)


def test_the_file_s_own_test_sets(source, folder):
    people = load_cuhk03(source)
    assert listed_count(source) == listed_count(source / "cuhk-03.mat") == 2
    one = listed_split(people, source, 1)
    assert one.name == "testset-1"
    assert {people.names[person] for person in one.test.persons} == {"1-0001", "1-0002"}
    assert one.train.n_persons == 12
    with pytest.raises(InputError, match="2 test sets"):
        listed_split(people, source, 2)
    with pytest.raises(DataError, match=r"cuhk-03\.mat, which is not at"):
        listed_count(folder)


def test_a_gallery_has_the_persons_of_all_pairs(folder):
    """The first cameras of all pairs ask together: in a gallery of one pair's persons ranks would come out too good."""
    people = load_cuhk03(folder)
    (first, second), back = ways(people)
    assert {people.camera_names[camera] for camera in people.cameras[first]} == {"1A", "2A", "3A", "4A"}
    np.testing.assert_array_equal(back[0], second)
    found = between_cameras(people, lambda q, g: np.zeros((len(q), len(g))), How(ranks=(1,)))
    assert [(one.queries, one.gallery, one.n_persons) for one in found] == [
        ("1A, 2A, 3A, 4A", "1B, 2B, 3B, 4B", 17), ("1B, 2B, 3B, 4B", "1A, 2A, 3A, 4A", 17),
    ]  # fmt: skip
    assert found[0].rates[1] == pytest.approx(1 / 17)  # all tied


@pytest.mark.slow
def test_measured_by_the_command(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    how = ("--set", "dimensions=4", "--splits", "1")
    inside("reid", "measure", source, "kissme", "--protocol", "testsets", *how)
    inside("reid", "measure", source, "kissme", "--protocol", "paper", "--persons", "4", *how)
    assert sorted(path.name for path in (tmp_path / "results/reid").iterdir()) == ["kissme-testset-0.json"]
    refused = inside("reid", "measure", source, "kissme", "--protocol", "testsets", "--choosing")
    assert refused.returncode == 2


@pytest.mark.slow
def test_the_table_is_filled_by_the_paper_s_splits_where_all_are_there(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("bitscale.reid.protocols.IN_THE_PAPER", 15)
    monkeypatch.setattr("bitscale.reid.table.paper_split", lambda people, n: paper_split(people, n, **SIZES))
    plan = (Asked("kissme", settings={"dimensions": 4}),)
    results = tmp_path / "results"
    assert fill(folder, results, plan=plan, splits=[0, 9]) == {}
    assert sorted(path.name for path in results.iterdir()) == ["kissme-paper-0.json", "kissme-paper-9.json"]
    [line] = lines(results, {}, plan)
    assert line.splits == 2
