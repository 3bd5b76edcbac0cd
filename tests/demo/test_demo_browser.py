"""The demo's page in a real browser, narrow and wide, light and dark."""

import pytest
from webdriver import AVAILABLE, browser

from ptncn.demo.page import demo_page, make_pictures

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="no chromium, or no chromedriver")


@pytest.fixture(scope="module")
def window():
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(record, tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "index.html"
    path.write_text(demo_page(record, make_pictures(record)), encoding="utf-8")
    return f"file://{path}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1280])
def test_everything_is_shown_nothing_overflows_and_the_animation_comes_first(width, scheme, window, address):
    window.emulate(width, scheme=scheme)
    window.open(address)
    assert window.console() == []
    assert window.requests() == [address]
    images = window.run("return [...document.images].map(i => [i.alt, i.naturalWidth])")
    assert len(images) == 8  # animation and still, two curves, three strips, task matrices
    assert all(alt and image_width > 0 for alt, image_width in images)
    assert "Animation" in images[0][0]
    assert window.run("return document.documentElement.scrollWidth") <= width
    script = "const f = document.querySelector('.film .moving img').getBoundingClientRect(); return [f.left, f.right]"
    left, right = window.run(script)
    assert 0 <= left < right <= width  # all of it can be seen at once
