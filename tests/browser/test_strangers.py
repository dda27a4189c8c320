"""What others bring: readers without a token, and labels that are anything at all."""

from __future__ import annotations

from collections.abc import Callable

from clinic_service import DRINKS, VISITS, WARDS, Clinic, visit
from opened_page import Open
from playwright.sync_api import expect

Serve = Callable[..., Clinic]

MARKUP = '<img src=x onerror="window.harmed = 1">\'"&amp;'
TURNED = "evil\u202etxt.exe"
LONG = "long " * 200


def test_a_reader_is_asked_for_a_token(opened: Open, gallery: Clinic) -> None:
    page = opened(gallery.address).page
    form = page.get_by_role("textbox", name="Read token")
    expect(form).to_be_focused()
    expect(page.locator("#refused")).to_have_text("")
    expect(page.locator("#statistics")).to_be_hidden()
    form.fill("evt_read_wrong")
    page.get_by_role("button", name="Open").click()
    expect(page.locator("#refused")).to_have_text("This token does not open the stream.")
    form.fill(gallery.read_token)
    page.keyboard.press("Enter")
    expect(page.locator("#state")).to_have_text("Live")
    expect(form).to_be_hidden()
    page.reload()
    expect(page.locator("#state")).to_have_text("Live")


def test_a_token_in_the_address_does_not_stay_there(opened: Open, gallery: Clinic) -> None:
    seen = opened(gallery.with_token)
    expect(seen.page.locator("#state")).to_have_text("Live")
    assert seen.page.url == gallery.address
    assert seen.page.evaluate("sessionStorage.getItem('evertally-token')") == gallery.read_token
    assert seen.page.evaluate("localStorage.length") == 0
    assert not any(gallery.read_token in address.split("#")[0] for address in seen.addresses)


def test_a_public_stream_needs_none(opened: Open, served: Serve) -> None:
    clinic = served([VISITS], public=True)
    clinic.release((10, visit()))
    page = opened(clinic.address).page
    expect(page.locator("#state")).to_have_text("Live")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="visits as CSV").click()
    assert waiting.value.suggested_filename == "clinic-visits-visits.csv"


def test_hostile_labels_are_shown_as_text(opened: Open, served: Serve) -> None:
    clinic = served([VISITS, DRINKS, {"name": "by-ward", "kind": "histogram", "column": "ward", "categories": WARDS}])
    drinks = [MARKUP, TURNED, LONG.strip(), "\x00\x1b[2J", "plain"]
    clinic.release(*((900 - 150 * rank, visit(WARDS[-1], drink)) for rank, drink in enumerate(drinks)))
    assert clinic.latest("drinks")["category"] == drinks
    seen = opened(clinic.with_token, width=360)
    page = seen.page
    shown = [MARKUP, "evil\\u{202e}txt.exe", LONG.strip(), "\\u{0}\\u{1b}[2J", "plain"]
    names = page.locator("td .name")
    expect(names).to_have_count(len(shown))
    assert [name.text_content() for name in names.all()] == shown
    expect(page.locator(".bars .name").last).to_have_text(WARDS[-1])
    assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
    assert page.evaluate("window.harmed") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    long = names.nth(2)
    assert long.evaluate("(node) => node.scrollWidth > node.clientWidth")
    assert long.get_attribute("title") == LONG.strip()
    page.locator('[data-query="drinks"] .u-over').hover()
    assert page.locator('[data-query="drinks"] .legend .name').first.text_content() == MARKUP
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert seen.complaints == []
