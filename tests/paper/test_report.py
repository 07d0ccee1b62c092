"""Figures and report: made of the records alone, nothing from outside, marks where ours is above the paper's."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import bitscale as bs
from bitscale.data.sets.cifar import CIFAR10_FILES
from bitscale.errors import FileError
from bitscale.paper import Cell, in_table, rows, small, whole_plan
from bitscale.paper.blocks import Entry, Grid, Heading, Pictures, Text, to_html, to_markdown
from bitscale.paper.cells import RANDOM
from bitscale.paper.contents import contents
from bitscale.paper.figures import ORDER, Figure, Line, against_bits, caption, draw, drawn_from, figures, style
from bitscale.paper.models import FACTS, MODEL, new_hasher
from bitscale.paper.record import TIMING, read_all, with_run, write
from bitscale.paper.report import draw_retrieval, markdown, retrieval_cells
from bitscale.paper.retrieval import EDGE, GAP, RED, ZOOM, digest_of, nearest, picture, queries_of
from tests.data.formats import write_cifar

RESULTS = Path(__file__).parents[2] / "results" / "paper"
CELLS = (
    *(Cell("mnist", "drsch", bits, bits, "ours", iterations=2000, group="a") for bits in (8, 16, 64)),
    *(Cell("mnist", "nested", bits, 64, "ours", iterations=2000, seeds=(0, 1)) for bits in (8, 64)),
    Cell("mnist", "lsh", 16, 16),
    Cell("cifar10", "drsch", 16, 16, "ours", iterations=8000),
    Cell("cifar10", "dsch", 64, 64, "ours", iterations=2000, settings=(("beta_end", 2.0),), held_out=True),
    Cell("sample", "lsh", 16, 16),
)


def run(cell, seed, value):
    found = {
        "seed": seed, "split_seed": 0, "model": "m", "chance_map": 10.0,
        "settings": {"optimizer": "adam"} | dict(cell.settings),
        "scores": {"map": value, "ham2": value - 1, "precision@500": value - 2, "precision@1": value},
        "network": cell.network, "seconds": {"fit": 1.0}, "machine": {}, "versions": {},
        "health": {"constant_bits": 0, "mean_correlation": 0.25, "distinct_codes": 1234, "largest_collision": 5},
        "laplacian_share": 0.5,
    }  # fmt: skip
    return found | ({"bit_weights": [2.0, 1.0]} if cell.method == "nested" and cell.bits == 64 else {})


@pytest.fixture
def results(tmp_path):
    values = {"mnist-drsch-16-ours-2000": 99.0, "mnist-lsh-16": 12.0, "cifar10-drsch-16-ours-8000": 62.0}
    for cell in CELLS[:-1]:
        record = None
        for seed in cell.seeds:
            record = with_run(cell, record, run(cell, seed, values.get(cell.name, 90.0 + seed)))
        write(tmp_path / f"{cell.name}.json", record)
    return tmp_path


def test_the_page(results):
    text = markdown(CELLS, results, "figures/")
    assert "8 of 9 cells are measured: MNIST 6 of 6, CIFAR-10 2 of 2, the sample 0 of 1." in text
    assert "| DRSCH | **99.00 (96.92)** | 90.00 (98.09) | `ours`, paper-net+recipe, adam, 2,000 iterations |" in text
    assert "90.50 ± 0.71" in text  # nested over two seeds
    assert "62.00 (61.46)" in text  # above what one table prints, but not above the larger of the two
    assert "**62.00" not in text
    assert "| LSH | 12.00 (22.65) |  | pixels |" in text
    assert "| MNIST | LSH | pixels | 16: -10.6 | random" in text
    assert re.search(r"\| MNIST \| DRSCH \| `ours`, 2,000 iterations \| 64: -8\.1 \|", text)
    assert "`beta_end=2.0`" in text
    assert "1,234" in text


def test_images_and_queries_are_counted_beside_the_table(tmp_path):
    note = "190,000 images carry one of the 21 labels; the paper counts 195,969."
    for dataset, n in (("nus-wide", 2_100), ("mnist", 10_000)):
        cell = Cell(dataset, "drsch", 16, 16, "ours", iterations=2000)
        about = {"n_queries": n} | ({"note": note} if dataset == "nus-wide" else {})
        write(tmp_path / f"{cell.name}.json", with_run(cell, None, run(cell, 0, 60.0) | about))
    cells = [Cell(dataset, "drsch", 16, 16, "ours", iterations=2000) for dataset in ("mnist", "nus-wide")]
    text = markdown(tuple(cells), tmp_path, "figures/")
    assert f"## NUS-WIDE\n\n{note} 2,100 queries.\n\n### `tab3`" in text
    assert "## MNIST\n\n### `tab1`" in text


def test_the_second_track_has_a_table_of_its_own(tmp_path):
    cell = Cell("cifar10", "nested", 64, 64, "ours", "efficientnet-lite4@224", 3000)
    write(tmp_path / f"{cell.name}.json", with_run(cell, None, run(cell, 0, 90.0)))
    text = markdown((cell,), tmp_path, "figures/")
    made = "`ours`, paper-net, adam, 3,000 iterations, on efficientnet-lite4@224"
    assert "## Second track" in text
    assert f"| NESTED | 90.00 | {made} |" in text
    assert "tab5" not in text.partition("## Where")[0]


@pytest.mark.slow
def test_the_html_page_needs_nothing_else(results):
    for figure in figures(CELLS, read_all(results)):
        draw(figure, results / "figures")
    page = to_html(contents(CELLS, read_all(results), results), "Title <b>")
    assert "<title>Title &lt;b&gt;</title>" in page
    assert page.count("data:image/png;base64,") == len(list((results / "figures").glob("*.png"))) > 5
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    assert "<script" not in page
    assert 'class="above"' in page
    assert 'class="below"' in page


def test_figures_are_of_the_records(results):
    drawn = {figure.name: figure for figure in figures(CELLS, read_all(results))}
    curve = {line.name: line for line in drawn["mnist-map"].lines}
    assert curve["drsch"].points == [(8, 90.0), (16, 99.0), (64, 90.0)]
    assert curve["drsch, paper"].points[:2] == [(8.0, 91.69), (16.0, 96.92)]
    assert curve["drsch, paper"].dashed
    assert "nested, paper" not in curve
    assert {line.name: line.points for line in drawn["mnist-weights"].lines} == {"nested": [(1.0, 1.0), (2.0, 0.5)]}
    assert {line.name for line in drawn["mnist-precision-k"].lines} == {"drsch", "nested"}
    assert drawn["mnist-ham2"].lines[0].points[0] == (8, 89.0)
    assert drawn["mnist-map"].title == "MNIST: MAP, the paper's dashed"


def test_a_longer_training_is_in_no_figure_whatever_stands_first(results):
    long = Cell("mnist", "nested", 8, 64, "ours", iterations=20_000)
    write(results / f"{long.name}.json", with_run(long, None, run(long, 0, 99.9)))
    drawn = {figure.name: figure for figure in figures((long, *CELLS), read_all(results))}
    curve = {line.name: line.points for line in drawn["mnist-map"].lines}
    assert curve["nested"] == [(8, 90.5), (64, 90.5)]


def test_a_method_looks_alike_in_all_figures_and_like_no_other():
    looks = {method: tuple(sorted(style(Line(method, [], method=method)).items())) for method in ORDER}
    assert len(set(looks.values())) == len(ORDER)
    assert {cell.method for cell in whole_plan()} == set(ORDER)
    lines = against_bits([(cell, run(cell, 0, 50.0)) for cell in reversed(CELLS[:6])], "map")
    assert [line.name for line in lines] == ["drsch", "nested", "lsh"]


@pytest.mark.slow
def test_a_figure_is_drawn_anew_only_where_it_changed(tmp_path):
    figure = Figure("mnist-map", "t", "bits", "%", (Line("drsch", [(8.0, 1.0)], method="drsch"),))
    assert drawn_from(tmp_path / "mnist-map.png") is None
    path = draw(figure, tmp_path)
    before = path.stat().st_mtime_ns
    assert drawn_from(path) == figure.digest
    assert draw(figure, tmp_path).stat().st_mtime_ns == before
    other = replace(figure, lines=(Line("drsch", [(8.0, 2.0)], method="drsch"),))
    assert other.digest != figure.digest
    assert drawn_from(draw(other, tmp_path)) == other.digest
    path.write_bytes(b"no picture")
    assert drawn_from(path) is None


def test_captions_name_the_figure_of_the_paper():
    assert caption("cifar10-ham2") == "CIFAR-10: precision within Hamming radius 2 (fig:cifar10_hamm_dist)"
    assert caption("cifar20-bit-scalable") == "CIFAR-20: precision@500, one model and many (fig:comp)"
    assert caption("mirflickr-map") == "MIRFLICKR: MAP against bits"
    assert "mistakes in red (fig:short)" in caption("cifar10-retrieval")
    assert caption("something-else") == "something else"
    for figure in figures(whole_plan(), read_all(RESULTS)):
        assert ":" in caption(figure.name)


def test_health_tells_a_model_once(tmp_path):
    cell = Cell("mnist", "bs-drsch", 8, 64, "ours", iterations=2000)
    drawn = replace(cell, seeds=(3,), metric=RANDOM)
    write(tmp_path / f"{cell.name}.json", with_run(cell, None, run(cell, 0, 90.0)))
    found = run(drawn, 3, 91.0)
    found["scores"] |= {RANDOM: 80.0, f"{RANDOM}-best": 85.0}
    write(tmp_path / f"{drawn.name}.json", with_run(drawn, None, found))
    text = markdown((cell, drawn), tmp_path, "figures/")
    assert text.partition("## Health")[2].count("| BS-DRSCH | 8 |") == 1
    assert "| 8 | 3 | 91.00 | 80.00 | 85.00 |" in text


@pytest.mark.slow
def test_a_figure_that_cannot_be_written_is_named(results, tmp_path):
    (tmp_path / "figures").write_text("a file in the way")
    with pytest.raises(FileError, match=r"mnist-.*\.png cannot be written.*all cells so far are kept"):
        draw(figures(CELLS, read_all(results))[0], tmp_path / "figures")


def test_rows_for_machines(results):
    found = [row.as_json() for row in rows(CELLS, results, ["tab222", "tabtime"])]
    keys = {"table", "dataset", "method", "bits", "metric", "paper", "ours", "protocol", "recipe", "network"}
    assert keys <= found[0].keys()
    by_place = {(row["table"], row["dataset"], row["method"], row["bits"], row["metric"]): row for row in found}
    row = by_place["tab4", "mnist", "drsch", 16, "map"]
    assert (row["paper"], row["ours"], row["recipe"], row["network"]) == (96.92, 99.0, "ours", "paper-net+recipe")
    assert by_place["fig:comp", "mnist", "nested", 8, "precision@500"]["ours"] == 88.5
    assert by_place["tab4", "mnist", "nested", 8, "map"]["paper"] is None
    assert by_place["tab222", "cuhk03", "drsch", 64, "cmc@1"]["paper"] == 21.96
    assert by_place["tabtime", "mnist", "ksh", 64, "h+s"]["paper"] == in_table("tabtime", "mnist", "ksh", 64, "h+s")
    assert by_place["sample", "sample", "lsh", 16, "map"]["ours"] is None
    assert by_place["ablations", "cifar10", "dsch", 64, "map"]["settings"] == {"beta_end": 2.0}


def test_rows_of_times_and_of_persons_follow_the_methods_asked_for(results):
    path = results / "timing-mnist.json"
    timed = {"recipe": "ours", "network": "paper-net", "features": "pixels", "f+h+s": 1.0}
    write(path, {"dataset": "mnist", "methods": {"nested": {**timed, "h+s": None}}}, TIMING)
    found = rows((), results, ["tab222", "tabtime"], ["nested", "kissme"])
    assert {(row.table, row.method, row.metric) for row in found if row.table == "tabtime"} == {
        ("tabtime", "nested", "f+h+s")  # what neither the paper nor we can measure is no place
    }
    assert {row.method for row in found if row.table == "tab222"} == {"kissme"}


def test_blocks_in_both_forms(tmp_path):
    Image.new("RGB", (2, 2)).save(tmp_path / "a.png")
    grid = Grid(("a", "b"), ((Entry("x<y"), Entry("1.0", "above")),))
    blocks = [Heading("T", 1), Text("one `two`"), Text("p", point=True), Text("q", point=True), grid]
    blocks.append(Pictures(((tmp_path / "a.png", "said"),)))
    text = to_markdown(blocks, "there/")
    assert "# T\n\none `two`\n\n- p\n- q\n\n| a | b |\n|---|---|\n| x<y | **1.0** |\n\n![said](there/a.png)" in text
    page = to_html(blocks, "T")
    assert "one <code>two</code>" in page
    assert '<td>x&lt;y</td><td class="above">1.0</td>' in page
    worded = to_html([Grid(("a", "why"), ((Entry("1.0"), Entry("words enough to be broken into lines")),))], "T")
    assert '<th>a</th><th class="words">why</th>' in worded  # beside numbers, which are not
    assert '<td>1.0</td><td class="words">words enough' in worded


@pytest.mark.slow
def test_the_retrieval_picture_frames_mistakes(tmp_path):
    split = bs.load_dataset("sample")
    fixed = bs.make_hasher("lsh", n_bits=32).fit(split.train)
    longer = bs.make_hasher("itq", n_bits=64).fit(split.train)
    mistakes = picture(fixed, longer, split, tmp_path / "p.png")
    pixels = np.asarray(Image.open(tmp_path / "p.png"))[::ZOOM, ::ZOOM]
    side = 28 + 2 * EDGE
    assert pixels.shape == (10 * side, 21 * side + 2 * GAP, 3)
    corners = pixels[::side, :, :]
    columns = [side + GAP + i * side for i in range(10)] + [11 * side + 2 * GAP + i * side for i in range(10)]
    red = (corners[:, columns] == RED).all(axis=2)
    assert (int(red[:, :10].sum()), int(red[:, 10:].sum())) == mistakes
    assert mistakes[0] > 0
    queries = queries_of(split)
    assert split.query.labels[queries].tolist() == list(range(10))
    assert not (nearest(fixed, split, queries, 32) == queries[:, None]).any()  # nobody finds itself


@pytest.mark.slow
def test_the_retrieval_picture_is_drawn_anew_for_other_models(tmp_path):
    for i, file in enumerate(CIFAR10_FILES):
        write_cifar(tmp_path / "cifar-10-batches-bin" / file, np.arange(1_700)[:, None] % 10, seed=i)
    path, runs = tmp_path / "p.png", tmp_path / "runs"

    def keep(cell, seed):
        training = cell.trainings[0]
        model = bs.make_hasher("lsh", n_bits=cell.trained_bits, seed=seed).fit(split.train)
        asked = json.loads(json.dumps(asdict(new_hasher(training).settings)))
        (runs / training.name).mkdir(parents=True, exist_ok=True)
        model.save(runs / training.name / MODEL)
        (runs / training.name / FACTS).write_text(json.dumps({"seconds": 1.0, "asked": asked}))
        return model.fingerprint

    split, cells = bs.load_dataset("cifar10", tmp_path), whole_plan()
    fixed, longer = retrieval_cells(cells)
    assert (fixed.method, longer.method, longer.trained_bits, longer.iterations) == ("drsch", "bs-drsch", 64, 8_000)
    first = keep(fixed, 0)
    assert not draw_retrieval(cells, path, runs, tmp_path)  # one model of two is here
    assert not draw_retrieval(small(cells), path, runs, tmp_path)
    second = keep(longer, 0)
    assert draw_retrieval(cells, path, runs, tmp_path)
    assert drawn_from(path) == digest_of(first, second)
    assert not draw_retrieval(cells, path, runs, tmp_path)
    other = keep(longer, 1)
    assert draw_retrieval(cells, path, runs, tmp_path)
    assert drawn_from(path) == digest_of(first, other) != digest_of(first, second)
