"""Words on the page, in a real browser: written, searched for, and shared by the address."""

import pytest

import bitscale as bs
from bitscale.collection.ingest.default_model import default_hasher
from tests.features.joint_made import coloured, joint_folder
from tests.server.serving import running
from tests.server.web.conftest import check_accessible, page_of

pytestmark = pytest.mark.slow
NAMES = "ol.grid .tile"


def test_words_are_searched_for_and_can_be_shared(page, browser, tmp_path):
    name, pictures = f"joint:{joint_folder(tmp_path / 'tiny')}", coloured(tmp_path / "pictures", 4)
    hasher = default_hasher([pictures], features=name, n_bits=256, workers=1)
    with bs.Collection.create(tmp_path / "c.bsc", hasher) as made:
        made.add(pictures, workers=1)
    with running(tmp_path / "c.bsc") as service:
        page.goto(service.address)
        page.wait_for_selector("#words")
        check_accessible(page)
        page.fill("#words", "a photo of blue")
        page.click("#ask-words")
        page.wait_for_selector(f"{NAMES} .strip")
        assert "q=text%3Aa+photo+of+blue" in page.url
        assert page.inner_text("#asked-name") == "a photo of blue"
        assert "blue-" in page.locator(NAMES).first.inner_html()
        check_accessible(page)
        with page_of(browser) as other:
            other.goto(page.url)
            other.wait_for_selector(f"{NAMES} .strip")
            assert other.input_value("#words") == "a photo of blue"
