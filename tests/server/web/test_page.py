"""Every flow of the page in a real browser, each looked at by axe-core."""

import json
import re
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from PIL import Image

import bitscale as bs
from tests.cli.run import inside
from tests.server.serving import running
from tests.server.web.conftest import check_accessible, page_of, until

pytestmark = pytest.mark.slow
EXPLAINED = "ol.grid .tile .strip"
IDS = "[...document.querySelectorAll('ol.grid .tile')].map(one => Number(one.dataset.id))"


def picture(path, row=200):
    Image.fromarray(np.squeeze(bs.load_dataset("sample").query.images[row])).save(path)
    return path


def shown(page):
    return [int(tile.get_attribute("data-id")) for tile in page.locator("ol.grid .tile").all()]


def asked(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def search_for(page, served, id=3, more=""):
    page.goto(f"{served}/?c=clothes&q=id:{id}{more}")
    page.wait_for_selector(EXPLAINED)


def test_the_first_page_is_small_and_says_what_to_do(page, served):
    sizes = {}
    page.on("response", lambda answer: sizes.setdefault(answer.url, answer))
    page.goto(served)
    page.wait_for_selector(".tile[data-id]")
    page.wait_for_load_state("networkidle")
    assert all(url.startswith((served, "blob:")) for url in sizes)
    loaded = sum(len(answer.body()) for url, answer in sizes.items() if "thumbnail" not in url)
    assert loaded < 300_000
    assert "Drop a picture" in page.inner_text("#query")
    check_accessible(page)


def test_a_chosen_picture_is_searched_for_and_its_address_can_be_shared(page, served, tmp_path, browser):
    page.goto(served)
    page.wait_for_selector(".tile[data-id]")
    page.set_input_files("#file", picture(tmp_path / "mine.png"))
    page.wait_for_selector(EXPLAINED)
    assert page.inner_text("#asked-name") == "mine.png"
    assert asked(page)["q"].startswith("code:")
    check_accessible(page)
    page.locator("ol.grid .tile button.compare").first.click()
    page.wait_for_selector("dialog[open]")
    assert page.inner_text("dialog .of-query") == "mine.png"
    page.go_back()
    page.wait_for_selector("dialog[open]", state="hidden")
    assert page.inner_text("#asked-name") == "mine.png"  # the same search: its picture stays
    page.set_input_files("#file", {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"words"})
    page.wait_for_selector("#problem >> text=notes.txt is no picture")
    with page_of(browser) as other:
        other.goto(page.url)
        other.wait_for_selector(EXPLAINED)
        assert shown(other) == shown(page)


@pytest.mark.parametrize("way", ["drop", "paste"])
def test_a_picture_is_dropped_or_pasted(page, served, tmp_path, way):
    data = list(picture(tmp_path / "p.png").read_bytes())
    page.goto(served)
    page.wait_for_selector(".tile[data-id]")
    page.evaluate(
        """([way, data]) => {
        const given = new DataTransfer();
        given.items.add(new File([new Uint8Array(data)], "way.png", { type: "image/png" }));
        const how = { bubbles: true, cancelable: true };
        const event = way === "drop" ? new DragEvent("drop", { ...how, dataTransfer: given })
          : new ClipboardEvent("paste", { ...how, clipboardData: given });
        document.body.dispatchEvent(event);
        }""",
        [way, data],
    )
    page.wait_for_selector(EXPLAINED)
    assert page.inner_text("#asked-name") == "way.png"


def test_a_result_is_clicked_to_search_again_and_back_goes_back(page, served):
    search_for(page, served)
    before = shown(page)
    other = page.locator("ol.grid .tile").nth(5)
    id = other.get_attribute("data-id")
    other.locator("button.show").click()
    page.wait_for_url(re.compile(rf"q=id%3A{id}\b"))
    until(page, "id => document.querySelector('.badge.itself')?.closest('.tile').dataset.id === id", arg=id)
    page.go_back()
    until(page, "id => document.querySelector('.badge.itself')?.closest('.tile').dataset.id === id", arg="3")
    assert shown(page) == before
    check_accessible(page)


@pytest.mark.parametrize("bits", [64, 16, 4])
def test_grades_are_those_that_the_library_tells(page, served, clothes_at, bits):
    search_for(page, served, 3, f"&bits={bits}")
    with bs.Collection.open(clothes_at, read_only=True) as clothes:
        row = clothes.search(3, k=24, bits=bits)[0]
    told = {str(match.id): "itself" if match.itself else match.grade for match in row}
    seen = {
        tile.get_attribute("data-id"): tile.locator(".badge").inner_text()
        for tile in page.locator("ol.grid .tile").all()
    }
    assert seen
    assert seen == {id: told[id] for id in seen}


def test_the_slider_lets_the_same_index_answer_at_other_lengths(page, served, clothes_at):
    search_for(page, served)
    with bs.Collection.open(clothes_at, read_only=True) as clothes:
        for bits in (16, 4):
            page.locator("#bits-slider").fill(str(bits))
            until(page, "bits => document.querySelector('#status').textContent.includes(`by ${bits} bits`)", arg=bits)
            assert shown(page) == clothes.search(3, 24, bits=bits).ids[0].tolist()
    assert asked(page)["bits"] == "4"
    assert page.inner_text("#bytes") == "0.5 bytes"
    until(page, "document.querySelector('ol.grid .tile .strip').getAttribute('aria-label').includes('of 4 bits')")
    assert re.fullmatch(r"[\d.]+ ms", page.inner_text("#latency"))
    worth = 100 * bs.load_hasher("fashion-mnist").measured.map_by_bits[4]
    assert f"MAP {worth:.1f} at 4 bits" in page.get_attribute("svg.curve", "aria-label")
    assert f"MAP {worth:.1f} at 4 bits" in page.inner_text(".worth")
    page.keyboard.press("]")
    until(page, "document.querySelector('#status').textContent.includes('by 5 bits')")
    check_accessible(page)


def test_filters_by_label_field_and_condition(page, served):
    search_for(page, served)
    page.click("#filters .chip >> text=Bag")
    until(page, "[...document.querySelectorAll('ol.grid .tile')].every(tile => tile.innerText.includes('Bag'))")
    assert asked(page)["where"] == "label=Bag"
    page.fill("#condition", "nonsense")
    page.click("#filters >> text=Add")
    page.wait_for_selector("#problem .problem")
    page.problems.clear()  # the browser tells the refusal as well
    check_accessible(page)
    page.click("[aria-label='Remove nonsense']")
    page.wait_for_selector(EXPLAINED)
    page.fill("#condition", "label=nothing")
    page.click("#filters >> text=Add")
    page.wait_for_selector("text=No item fits these filters")
    check_accessible(page)
    page.click(".notice >> text=Clear filters")
    page.wait_for_selector(EXPLAINED)
    assert "where" not in asked(page)
    for value in ("camera=0", "camera=1"):  # one field, one value
        page.select_option("#field-camera", value)
        until(page, "value => new URLSearchParams(location.search).getAll('where').join() === value", arg=value)
        assert page.input_value("#field-camera") == value
    until(page, "document.querySelector('#status').textContent.includes('that fit the filters')")


def test_a_copy_is_called_one_at_every_length(page, served):
    search_for(page, served, id=0)
    copy = page.locator("ol.grid .tile", has_text="again.png").locator(".badge")
    assert copy.inner_text() == "copy"
    assert "The 24 nearest of 121 items, by 64 bits. This picture is here." in page.inner_text("#status")
    page.click("[aria-label='Compare 32 bits']")
    until(page, "document.querySelector('#status').textContent.includes('by 32 bits. This picture is here.')")
    assert page.input_value("#bits-slider") == "32"
    assert copy.inner_text() == "copy"


def test_what_comes_late_is_not_shown_in_another_view(page, served):
    search_for(page, served)
    page.locator("#bits-slider").fill("16")
    page.click("nav >> text=Browse")
    page.wait_for_selector("#more")
    page.wait_for_timeout(500)  # by then the slider's second search would have been drawn
    assert page.locator("ol.grid").count() == 0


def test_compare_shows_both_pictures_and_the_bits_between(page, served):
    search_for(page, served)
    tile = page.locator("ol.grid .tile").nth(6)
    tile.locator("button.compare").click()
    page.wait_for_selector("dialog[open] .pair img >> nth=1")
    page.wait_for_load_state("networkidle")
    assert asked(page)["compare"] == tile.get_attribute("data-id")
    assert page.evaluate("[...document.querySelectorAll('dialog .pair img')].every(one => one.naturalWidth === 28)")
    check_accessible(page)
    page.keyboard.press("Escape")
    until(page, "!location.search.includes('compare')")
    search_for(page, served, more=f"&compare={tile.get_attribute('data-id')}")
    page.wait_for_selector("dialog[open]")


def test_marks_are_learned_from_kept_and_taken_back(page, served):
    search_for(page, served, id=11)
    ids = shown(page)
    page.locator("ol.grid .tile").nth(20).locator("button.right").click()
    page.wait_for_selector("#keep-marks")
    page.locator(f"ol.grid .tile[data-id='{ids[1]}'] button.wrong").click()
    said = {"id": 11, "right": [ids[20]], "wrong": [ids[1]]}
    learned = page.request.post(f"{served}/v1/collections/clothes/learn", data=said).json()
    found = page.request.post(f"{served}/v1/collections/clothes/search", data={**learned, "k": 25}).json()
    wanted = [match["id"] for match in found["matches"]]
    until(page, f"ids => {IDS}.join() === ids.join()", arg=wanted)
    page.wait_for_selector(".tile.marked-wrong")
    assert page.inner_text(".tile[data-id='11'] .badge") == "itself"  # still, though its learned code is asked for
    check_accessible(page)
    assert "The 24 nearest" in page.inner_text("#status")  # as before: the item itself is one more
    page.click("#keep-marks")
    page.wait_for_selector("[aria-label^='Take back mark']")
    assert "1 mark kept in this collection, for bitscale train --from-feedback." in page.inner_text("#feedback")
    kept = json.loads(page.request.get(f"{served}/v1/collections/clothes/marks").text())["marks"]
    assert (kept[-1]["item"], kept[-1]["right"], kept[-1]["wrong"]) == (11, [ids[20]], [ids[1]])
    check_accessible(page)
    page.click("nav >> text=Browse")
    page.wait_for_selector("#more")
    page.wait_for_load_state("networkidle")
    assert not page.locator("#feedback").is_visible()
    page.click("nav >> text=Search")
    page.click("[aria-label^='Take back mark']")
    page.wait_for_selector("#feedback", state="hidden")


def test_a_lesson_that_comes_late_is_not_that_of_another_query(page, served):
    search_for(page, served, id=11)
    page.evaluate(
        """() => {
        const sent = window.fetch;
        window.fetch = async (address, how) => {
          if (String(address).endsWith("/learn")) await new Promise((go) => { window.answered = go; });
          return sent(address, how);
        };
        }"""
    )
    page.locator("ol.grid .tile").nth(2).locator("button.right").click()
    until(page, "window.answered !== undefined")
    page.locator("ol.grid .tile").nth(5).locator("button.show").click()
    other = asked(page)["q"]
    until(page, "id => document.querySelector('.badge.itself')?.closest('.tile').dataset.id === id", arg=other[3:])
    before = shown(page)
    with page.expect_response("**/learn"):
        page.evaluate("window.answered()")
    page.wait_for_timeout(500)  # by then what it would have searched for would be shown
    assert shown(page) == before
    assert page.locator("#keep-marks").count() == 0


def test_emphasis_of_a_model_of_several_attributes(page, served):
    page.goto(f"{served}/?c=dyed&q=id:5")
    page.wait_for_selector(EXPLAINED)
    page.locator("#emphasis-kind").fill("0")
    until(page, "location.search.includes('e=kind%3A0')")
    body = {"id": 5, "k": 24, "emphasis": {"kind": 0.0, "colour": 1.0}}
    found = page.request.post(f"{served}/v1/collections/dyed/search", data=body).json()
    ids = [match["id"] for match in found["matches"]]
    until(page, f"ids => {IDS}.join() === ids.join()", arg=ids)
    check_accessible(page)
    page.locator(f"ol.grid .tile[data-id='{ids[9]}'] button.right").click()  # learned from by what matters
    said = {"id": 5, "right": [ids[9]], "emphasis": body["emphasis"]}
    learned = page.request.post(f"{served}/v1/collections/dyed/learn", data=said).json()
    found = page.request.post(f"{served}/v1/collections/dyed/search", data={**learned, "k": 25}).json()
    until(page, f"ids => {IDS}.join() === ids.join()", arg=[match["id"] for match in found["matches"]])


def test_browsing_without_a_query(page, served):
    page.goto(f"{served}/?c=clothes&view=browse")
    page.wait_for_selector("#more")
    check_accessible(page)
    page.click("#more")
    until(page, "document.querySelectorAll('.tile[data-id]').length > 60")
    page.locator(".tile[data-id] button.show").first.click()
    page.wait_for_selector(EXPLAINED)
    assert asked(page)["q"].startswith("id:")


def test_duplicates_are_shown_and_their_plan_downloaded(page, served):
    page.goto(f"{served}/?c=clothes&view=duplicates")
    page.wait_for_selector(".group .badge.keep")
    check_accessible(page)
    with page.expect_download() as download:
        page.click("text=Download a plan")
    assert "every command is a comment" in download.value.path().read_text()
    page.locator(".group button.show").first.click()
    page.wait_for_selector(EXPLAINED)
    assert asked(page)["q"].startswith("id:")


def test_a_bad_picture_and_a_gone_item_are_told(page, served, tmp_path):
    page.goto(served)
    page.wait_for_selector(".tile[data-id]")
    (tmp_path / "broken.png").write_bytes(b"not a picture")
    page.set_input_files("#file", tmp_path / "broken.png")
    page.wait_for_selector("#problem .problem")
    check_accessible(page)
    page.goto(f"{served}/?c=clothes&q=id:99999")
    page.wait_for_selector("#problem .problem")
    told = page.inner_text("#problem")  # without a button to try again, which would be of no use
    assert told == "Item 99999 is not in clothes.bsc. It may have been removed."
    page.problems.clear()


def test_keys_go_through_the_grid(page, served):
    search_for(page, served)
    page.locator("ol.grid .tile button.show").first.focus()
    page.keyboard.press("ArrowRight")
    ids = shown(page)
    focused = "Number(document.activeElement.closest('.tile').dataset.id)"
    assert page.evaluate(focused) == ids[1]
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == ids[6]
    page.keyboard.press("c")
    page.wait_for_selector("dialog#compare[open]")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.wait_for_selector("dialog#keys[open]")
    check_accessible(page)


def test_the_focus_is_not_lost_when_something_is_drawn_anew(page, served):
    focused = "document.activeElement.closest('.tile')?.dataset.id"
    page.goto(f"{served}/?c=clothes")
    page.wait_for_selector(".tile[data-id] button.show")
    page.locator(".tile[data-id='7'] button.show").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(EXPLAINED)
    until(page, f"{focused} === '7'")  # the first result, and so the keys go on
    page.keyboard.press("ArrowDown")
    marked = page.evaluate(focused)
    page.keyboard.press("w")
    page.wait_for_selector("#clear-marks")
    until(page, "document.querySelector('ol.grid .tile:last-child .badge').textContent !== ''")
    assert page.evaluate(focused) == marked
    page.keyboard.press("c")
    page.wait_for_selector("dialog#compare[open]")
    page.keyboard.press("Escape")
    page.locator("#filters .chip >> text=Bag").focus()
    page.keyboard.press("Space")
    page.wait_for_selector("#filters .chip[aria-pressed=true]")
    assert page.evaluate("document.activeElement.textContent") == "Bag"
    page.locator("#clear").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#query >> text=Drop a picture")
    assert page.evaluate("document.activeElement.id") == "main"  # what had the focus is gone


@pytest.mark.parametrize("how", ["dark", "phone", "dark phone"])
def test_dark_and_phone(browser, served, how):
    size = {"width": 390, "height": 844} if "phone" in how else {"width": 1360, "height": 900}
    with page_of(browser, viewport=size, color_scheme="dark" if "dark" in how else "light") as page:
        for where, sign in (
            ("", ".tile[data-id]"),
            ("?c=clothes&q=id:3&bits=12", EXPLAINED),
            ("?c=clothes&q=id:3&compare=3", "dialog[open]"),
            ("?c=dyed&q=id:5", "#emphasis-kind"),
            ("?c=clothes&view=browse", "#more"),
            ("?c=clothes&view=duplicates", ".group"),
        ):
            page.goto(f"{served}/{where}")
            page.wait_for_selector(sign)
            check_accessible(page)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), where
        page.goto(f"{served}/?c=clothes&view=browse")
        page.wait_for_selector("#filters summary")
        assert page.locator("#condition").is_visible() == ("phone" not in how)  # folded where room is scarce
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "condition"
        assert page.evaluate("document.documentElement.dataset.theme") == ("dark" if "dark" in how else "light")
        page.click("#theme")
        assert page.evaluate("document.documentElement.dataset.theme") == ("light" if "dark" in how else "dark")


def test_a_phone_shows_results_and_errors_without_a_search_for_them(browser, served):
    with page_of(browser, viewport={"width": 390, "height": 844}) as page:
        search_for(page, served)
        assert page.locator("ol.grid .tile").first.bounding_box()["y"] < 844
        assert not page.locator("#latency").is_visible()
        page.click("#bits summary")
        assert page.locator("#latency").is_visible()
        page.click(".jumps >> text=16")
        page.wait_for_url(re.compile("bits=16"))
        assert page.locator("#latency").is_visible()  # unfolded it stays
        check_accessible(page)
        page.set_viewport_size({"width": 390, "height": 400})
        page.set_input_files("#file", {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"words"})
        page.wait_for_selector("#problem >> text=notes.txt is no picture")
        box = page.locator("#problem").bounding_box()
        assert 0 <= box["y"] < 400


def test_signing_in_and_out(browser, clothes_at, tmp_path):
    keys = tmp_path / "keys.json"
    key = json.loads(inside("keys", "make", "tester", "--keys", keys, "--json").stdout)["key"]
    with running(clothes_at, "--require-keys", "--keys", keys) as service, page_of(browser) as page:
        page.goto(f"{service.address}/?c=clothes&q=id:3")
        page.wait_for_selector("#key")
        check_accessible(page)
        page.fill("#key", "wrong")
        page.click("text=Sign in >> nth=-1")
        until(page, "document.querySelector('#problem').textContent")
        page.problems.clear()
        page.fill("#key", key)
        page.keyboard.press("Enter")
        page.wait_for_selector(EXPLAINED)
        assert asked(page)["q"] == "id:3"
        page.locator("ol.grid .tile button.right").nth(1).click()
        page.wait_for_selector("#clear-marks")
        assert page.locator("#keep-marks").count() == 0  # this key only reads
        page.click("#sign-out")
        page.wait_for_selector("#key")
        page.problems[:] = [one for one in page.problems if "401" not in one]  # the wrong key, and what came too late


def test_an_empty_collection(browser, tmp_path):
    bs.Collection.create(tmp_path / "empty.bsc", bs.load_hasher("fashion-mnist")).close()
    with running(tmp_path / "empty.bsc") as service, page_of(browser) as page:
        page.goto(service.address)
        page.wait_for_selector("text=This collection is empty")
        check_accessible(page)


def test_the_description_of_the_api_is_shown(page, served):
    page.goto(f"{served}/docs")
    page.wait_for_selector("details summary code")
    page.wait_for_load_state("networkidle")
    assert "`" not in page.inner_text("main")
    check_accessible(page)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_contact_sheet_can_be_read(browser, clothes_at, tmp_path, theme):
    with bs.Collection.open(clothes_at, read_only=True) as clothes:
        clothes.search(0, 60).save_html(tmp_path / "found.html")
    with page_of(browser, color_scheme=theme) as page:
        page.goto((tmp_path / "found.html").as_uri())
        page.wait_for_selector(".bs-unlike")
        check_accessible(page)
