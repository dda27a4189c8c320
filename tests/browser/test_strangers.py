"""What others bring: readers without a token, and labels that are anything at all."""

from __future__ import annotations

from collections.abc import Callable

from clinic_service import DRINKS, VISITS, WARDS, Clinic, visit
from opened_page import Open, scrolled
from playwright.sync_api import expect

Serve = Callable[..., Clinic]

MARKUP = '<img src=x onerror="window.harmed = 1">\'"&amp;'
TURNED = "evil\u202etxt.exe"
LONG = "long " * 200


def test_a_reader_is_asked_for_a_token(opened: Open, gallery: Clinic) -> None:
    page = opened(f"{gallery.address}#window=total").page
    form = page.get_by_role("textbox", name="Read token")
    expect(form).to_be_focused()
    expect(page.locator("#refused")).to_have_text("")
    for place in ("#statistics", "#promise", "#find", "#state"):
        expect(page.locator(place)).to_be_hidden()
    form.fill("evt_read_wrong")
    page.get_by_role("button", name="Open").click()
    expect(page.locator("#refused")).to_have_text("This token does not open the stream.")
    form.fill(gallery.read_token)
    page.keyboard.press("Enter")
    expect(page.locator("#state")).to_have_text("Live")
    expect(form).to_be_hidden()
    expect(page.get_by_role("button", name="Total")).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(page.locator("#state")).to_have_text("Live")


def test_a_token_in_the_address_does_not_stay_there(opened: Open, gallery: Clinic) -> None:
    seen = opened(f"{gallery.with_token}&window=total")
    page = seen.page
    expect(page.locator("#state")).to_have_text("Live")
    assert page.url == f"{gallery.address}#window=total"
    assert page.evaluate("sessionStorage.getItem('evertally-token')") == gallery.read_token
    assert page.evaluate("localStorage.length") == 0
    assert not any(gallery.read_token in address.split("#")[0] for address in seen.addresses)
    page.locator('[data-tile="visits"]').click()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="All releases as CSV").click()
    assert waiting.value.suggested_filename == "clinic-visits-visits.csv"
    assert gallery.read_token not in page.url


def test_hostile_labels_are_shown_as_text(opened: Open, served: Serve) -> None:
    by_ward = {"name": "by-ward", "kind": "histogram", "column": "ward", "categories": [*WARDS, TURNED]}
    clinic = served(
        [{**VISITS, "title": MARKUP}, DRINKS, by_ward], stream=f"title = '''{MARKUP}'''\nmax_events_per_tick = 5000"
    )
    drinks = [MARKUP, TURNED, LONG.strip(), "\x00\x1b[2J", "plain"]
    clinic.release(*((900 - 150 * rank, visit(WARDS[-1], drink)) for rank, drink in enumerate(drinks)))
    assert clinic.latest("drinks")["category"] == drinks
    seen = opened(f"{clinic.with_token}&window=1", width=360)
    page = seen.page
    expect(page.locator("h1")).to_have_text(MARKUP)
    scrolled(page)
    card = page.locator('[data-query="drinks"]')
    shown = [MARKUP, "evil\\u{202e}txt.exe", LONG.strip(), "\\u{0}\\u{1b}[2J", "plain"]
    for text in shown:
        expect(card).to_contain_text(text)
    expect(page.locator('[data-query="visits"] h2')).to_have_text(MARKUP)
    page.goto(f"{clinic.address}#window=1&open=by-ward&pick=%3Cimg%20src%3Dx%3E&search=%3Cscript%3E")
    page.reload()
    expect(page.locator(".compare li")).to_have_count(5)  # one matches; all five are drawn, as there is no such pick
    page.locator(".compare").get_by_role("searchbox").fill("")
    expect(page.locator(".compare label").filter(has_text=WARDS[-1])).to_be_visible()
    expect(page.locator(".compare label").filter(has_text="evil\\u{202e}txt.exe")).to_be_visible()
    expect(page.locator(".detail .table thead")).to_contain_text(WARDS[-1])
    page.get_by_role("button", name="Find", exact=True).click()
    page.keyboard.type("script")
    expect(page.get_by_role("option").first).to_contain_text(WARDS[-1])
    assert page.evaluate("document.querySelectorAll('main img, main script, #found img').length") == 0
    assert page.evaluate("window.harmed") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert seen.complaints == []
