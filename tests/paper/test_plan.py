"""The plan: what is measured, in which order, and what can be asked for."""

import pytest

from bitscale.errors import InputError
from bitscale.paper import select, small, whole_plan
from bitscale.paper.numbers import MAIN, SCALABLE, printed
from bitscale.paper.plan import BUDGET, labels


def test_files_and_folders_never_collide():
    cells = whole_plan()
    assert len({cell.name for cell in cells}) == len(cells)
    trainings = {training for cell in cells for training in cell.trainings}
    assert len({training.name for training in trainings}) == len(trainings)


def test_the_order_of_the_plan():
    groups = [cell.group for cell in whole_plan()]
    assert list(dict.fromkeys(groups)) == sorted(set(groups))
    first = [cell for cell in whole_plan() if cell.dataset == "cifar10"][:4]  # what the text speaks of most
    assert [(cell.method, cell.bits) for cell in first] == [("drsch", 64), ("drsch", 32), ("drsch", 16), ("nested", 8)]


def test_every_map_the_paper_prints_is_planned():
    planned = {(cell.dataset, cell.method, cell.bits) for cell in whole_plan() if not cell.held_out}
    for number in printed():
        if number.metric == "map":
            assert (number.dataset, number.method, number.bits) in planned, number


def test_one_budget_for_all_methods_of_a_table():
    for dataset, table in (*MAIN.items(), *SCALABLE.items()):
        lot = [cell for cell in whole_plan() if cell.dataset == dataset and cell.stands_in(table)]
        steps = {cell.iterations for cell in lot if cell.iterations}
        assert steps - {20_000} == {BUDGET[dataset]}


def test_a_bit_scalable_model_is_trained_once():
    lot = [cell for cell in select(["tab4"], ["nested"]) if cell.iterations == BUDGET["mnist"]]
    assert [cell.bits for cell in lot] == [8, 16, 24, 32, 48, 64]
    assert len({training for cell in lot for training in cell.trainings}) == 1
    assert len({training for cell in select(["tab4"], ["dsch"]) for training in cell.trainings}) == 6


def test_every_label_finds_its_cells():
    for label in labels():
        if label not in ("tab222",):
            assert select([label]), label
    assert select(["table:tab1"]) == select(["tab1"])
    assert {cell.dataset for cell in select(["cifar20"])} == {"cifar20"}
    assert all(cell.bits == 64 for cell in select(["tabtime"]))
    assert {cell.method for cell in select(["fig:short"])} == {"drsch", "bs-drsch"}
    assert set(select(["tab1", "ablations"])) == set(select(["tab1"])) | set(select(["ablations"]))


def test_words_that_name_nothing_are_refused():
    with pytest.raises(InputError, match="did you mean 'tab1'"):
        select(["tab11"])
    with pytest.raises(InputError, match="no cell is measured with the method 'nonsense'"):
        select([], ["nonsense"])


def test_the_small_version_needs_nothing_from_elsewhere():
    cells = small(whole_plan())
    assert {cell.dataset for cell in cells} == {"sample"}
    assert not [cell for cell in cells if cell.method.endswith("-cnn")]
    assert len({cell.name for cell in cells}) == len(cells)
    assert {cell.method for cell in cells} >= {"drsch", "nested", "ksh", "lsh", "euclidean"}


def test_where_a_cell_stands():
    cell = next(cell for cell in select(["mnist"], ["drsch"]) if cell.bits == 16)
    assert {"tab1", "tab4", "fig:comp", "fig:mnist_hamm_dist"} <= {table for table, _ in cell.places}
    assert cell.printed("tab4", "map") == 96.92
    short = next(cell for cell in select(["mnist"], ["lsh"]) if cell.bits == 8)
    assert "tab1" not in {table for table, _ in short.places}  # the main tables have no 8 bits
    assert short.to_beat is None


def test_the_second_track_stands_apart_from_the_papers_tables():
    lot = select(["second-track"])
    assert {(cell.dataset, cell.method) for cell in lot} == {("cifar10", "nested"), ("cifar20", "nested")}
    assert all(cell.second and cell.places == (("second-track", "map"),) for cell in lot)
    assert not set(lot) & {*select(["tab5"]), *select(["tabtime"]), *select(["figures"])}
    frozen = next(cell for cell in lot if cell.features != "pixels")
    assert frozen.name == "cifar10-nested-8-efficientnet-lite4224-ours-3000"
    assert "efficientnet-lite4@224" in str(frozen.trainings[0])
    assert {cell.network for cell in lot} == {"mobilenetv2", "paper-net"}  # of the last, only what vectors go through
    assert not any(cell.second for cell in small(whole_plan()))
