"""The page as it stands: nothing refused, nothing from elsewhere, readable on every screen and by keyboard."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from clinic_service import ALL_KINDS, PEOPLE, Clinic, visit
from opened_page import Open
from playwright.sync_api import Page, expect

_CARDS = {  # the first query of a card -> what its view is made of
    "visits": ".values",
    "stay": ".values",
    "by-ward": ".bars",
    "by-room": ".bars",
    "median": ".values",
    "busiest": ".values",
    "quietest": ".values",
    "top-wards": "table",
    "leader": "table",
    "leaders": "table",
    "often": "table",
    "drinks": "table",
    "all-drinks": "table",
    "range": ".values",
    "inside": ".values",
    "inside-by-ward": ".bars",
    "inside-by-stay": ".bars",
    "inside-asked": ".bars",
    "moves": ".vertices",
    "beds": ".vertices",
    "ways": ".values",
    "ways-of-wards": ".bars",
    "triangles": ".values",
    "stars": ".values",
    "paths": ".values",
    "hubs": ".values",
    "by-degree": ".bars",
    "forest": ".values",
    "groups": ".values",
    "cups": ".bars",
    "often-cups": "table",
    "then": ".bars",
    "stays": ".values",
    "lengths": ".bars",
    "some-drinks": ".bars",
    "drinks-often": "table",
    "all-minutes": ".values",
    "spread": ".values",
    "adapted": ".values",
    "tiles": ".bars",
    "table": ".bars",
    "inside-again": ".values",
}
_CHARTS = {"spread": 3, "adapted": 2}  # where numbers have different units


def loaded(page: Page) -> None:
    """The history is there and drawn."""
    expect(page.locator(".plot canvas").first).to_be_visible()
    for plot in page.locator(".plot").all():
        expect(plot).to_have_attribute("aria-label", re.compile("ticks 1 to "))


def test_page_loads_without_a_complaint_and_asks_nobody_else(opened: Open, gallery: Clinic) -> None:
    seen = opened(gallery.with_token)
    expect(seen.page.locator("#state")).to_have_text("Live")
    loaded(seen.page)
    assert seen.complaints == []
    assert seen.page.evaluate("window.violations") == []
    assert seen.addresses
    assert all(address.startswith(gallery.address) for address in seen.addresses)
    assert seen.page.title() == "clinic-visits · evertally"


def test_every_query_has_its_card(opened: Open, gallery: Clinic) -> None:
    page = opened(gallery.with_token).page
    for name, view in _CARDS.items():
        expect(page.locator(f'[data-query="{name}"] {view}')).to_be_visible()
    expect(page.locator(".card")).to_have_count(len(_CARDS))
    drawn = page.locator(".plot canvas").count()
    strips = page.locator(".strip").count()
    assert drawn + strips == len(_CARDS) + sum(more - 1 for more in _CHARTS.values())


def test_values_are_the_released_ones(opened: Open, gallery: Clinic) -> None:
    page = opened(gallery.with_token).page
    visits = gallery.latest("visits")
    card = page.locator('[data-query="visits"]')
    expect(card.locator("strong")).to_have_text(f"{visits['value']:,}")
    expect(card.locator(".error")).to_have_text(f"± {visits['upper'] - visits['value']:,}")
    leaders = page.locator('[data-query="leaders"] td .name')
    expect(leaders).to_have_text(gallery.latest("leaders")["value"])
    quantiles = page.locator('[data-query="median"]')
    expect(quantiles.locator("dt.keyed")).to_have_text(["lower-quartile (0.25)", "median (0.5)"])
    values = [f"{gallery.latest(name)['value']:,}" for name in ("lower-quartile", "median")]
    expect(quantiles.locator("strong")).to_have_text(values)


def test_promise_and_budget(opened: Open, gallery: Clinic) -> None:
    page = opened(gallery.with_token).page
    stream = gallery.get("/v1/stream").json()
    expect(page.locator("#plain")).to_have_text(stream["plain_words"])
    expect(page.locator("#guarantee")).to_have_text(stream["guarantee"])
    expect(page.locator(".price")).to_contain_text("ε = 20")
    expect(page.locator(".price sup")).to_have_text("\N{MINUS SIGN}6")
    meter = page.get_by_role("meter")
    assert int(meter.get_attribute("aria-valuenow") or 0) == stream["released"]
    expect(page.locator("#gauge")).to_contain_text(f"{stream['released']} of 500 ticks released")


def test_long_histograms_show_the_largest_and_can_be_searched(opened: Open, gallery: Clinic) -> None:
    card = opened(gallery.with_token).page.locator('[data-query="by-room"]')
    expect(card.locator(".bars li")).to_have_count(30)
    expect(card.locator(".note").first).to_have_text("The 30 largest of 40 labels")
    card.get_by_role("searchbox").fill("ROOM 3")
    expect(card.locator(".bars .name")).to_have_text(["room 3", *(f"room {n}" for n in range(30, 40))])


def test_bars_choose_lines_by_keyboard(opened: Open, gallery: Clinic) -> None:
    page = opened(gallery.with_token).page
    bar = page.locator('[data-query="by-room"] .bars button[aria-pressed="false"]').first
    name = bar.locator(".name").inner_text()
    bar.focus()
    page.keyboard.press("Enter")
    chosen = page.locator('[data-query="by-room"] .bars button', has=page.get_by_text(name, exact=True))
    expect(chosen).to_have_attribute("aria-pressed", "true")
    expect(page.locator('[data-query="by-room"] .legend')).to_contain_text(name)
    outline = chosen.evaluate("(node) => getComputedStyle(node).outlineStyle")
    assert outline == "solid"


def test_a_ranking_can_be_sorted_by_value(opened: Open, gallery: Clinic) -> None:
    card = opened(gallery.with_token).page.locator('[data-query="by-ward"]')
    released = gallery.latest("by-ward")
    names = card.locator(".bars .name")
    expect(names).to_have_text(released["category"])
    card.get_by_role("button", name="Sort by value").click()
    ranked = sorted(zip(released["value"], released["category"], strict=True), key=lambda pair: -pair[0])
    expect(names).to_have_text([label for _, label in ranked])


@pytest.mark.parametrize("width", [320, 360, 390, 768, 1280, 2200])
def test_nothing_sticks_out_sideways(opened: Open, gallery: Clinic, width: int) -> None:
    page = opened(gallery.with_token, width=width).page
    loaded(page)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = page.evaluate(
        """(width) => [...document.querySelectorAll("main *")].filter((node) => {
             const { left, right } = node.getBoundingClientRect();
             const hidden = node.closest(".strip, .shares, .plot, .unseen, .bar-row .name, td .name, .tip");
             return !hidden && right > left && (right > width + 1 || left < -1);
           }).map((node) => node.outerHTML.slice(0, 80))""",
        width,
    )
    assert outside == []


def test_theme_follows_the_system_until_the_reader_chooses(opened: Open, gallery: Clinic) -> None:
    page = opened(gallery.with_token, color_scheme="dark").page
    root, switch = page.locator("html"), page.get_by_role("button", name="Dark")
    expect(root).to_have_attribute("data-theme", "dark")
    expect(switch).to_have_attribute("aria-pressed", "true")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="light")
    expect(root).to_have_attribute("data-theme", "light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    switch.click()
    expect(root).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(root).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_words_have_enough_contrast(opened: Open, gallery: Clinic) -> None:
    for scheme in ("light", "dark"):
        page = opened(gallery.with_token, color_scheme=scheme).page
        loaded(page)
        ratios = page.evaluate(
            """() => {
              const light = (text) => {
                const [r, g, b] = text.match(/[\\d.]+/g).map((part) => part / 255)
                  .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
              };
              const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
              const card = light(getComputedStyle(document.querySelector(".card")).backgroundColor);
              const words = [".card h3", ".card .quiet", ".card .error", ".downloads a", "summary", "#state"];
              return words.map((place) => ratio(card, light(getComputedStyle(document.querySelector(place)).color)));
            }"""
        )
        assert min(ratios) >= 4.5


def test_landmarks_names_and_the_first_stop_of_the_keyboard(opened: Open, gallery: Clinic) -> None:
    page = opened(gallery.with_token).page
    expect(page.locator(".card").first).to_be_visible()
    for role in ("banner", "main", "contentinfo"):
        expect(page.get_by_role(role)).to_have_count(1)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the statistics"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "statistics"
    nameless = page.evaluate(
        """[...document.querySelectorAll("button, a, input, [role=img], [role=meter]")].filter((node) =>
             !(node.getAttribute("aria-label") || node.labels?.length || node.textContent.trim()))
             .map((node) => node.outerHTML)"""
    )
    assert nameless == []


def test_downloads_carry_the_token(opened: Open, gallery: Clinic) -> None:
    page = opened(gallery.with_token).page
    card = page.locator('[data-query="visits"]')
    for title, ending in (("CSV", "csv"), ("Arrow", "arrow"), ("JSON", "json")):
        with page.expect_download() as waiting:
            card.get_by_role("link", name=f"visits as {title}").click()
        saved = waiting.value
        assert saved.suggested_filename == f"clinic-visits-visits.{ending}"
        path = f"/v1/releases?query=visits&limit=10000&format={ending}"
        assert Path(saved.path()).read_bytes() == gallery.get(path).content
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Certificate").click()
    assert Path(waiting.value.path()).read_bytes() == gallery.get("/v1/certificate").content


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures(opened: Open, gallery: Clinic, tmp_path: Path, width: int, scheme: str) -> None:
    """Kept where EVERTALLY_SCREENSHOTS says. A page without ink would be a small file."""
    page = opened(gallery.with_token, width=width, color_scheme=scheme).page
    loaded(page)
    expect(page.locator(".plot canvas").last).to_be_visible()
    folder = Path(os.environ.get("EVERTALLY_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / f"dashboard-{width}-{scheme}.png"
    page.screenshot(path=picture, full_page=True)
    assert picture.stat().st_size > 50_000


def test_what_is_present_is_shown_as_present(opened: Open, gallery: Clinic) -> None:
    page = opened(gallery.with_token).page
    inside = page.locator('[data-query="inside"]')
    expect(inside).to_contain_text("Present now")
    expect(inside.locator("strong")).to_have_text(f"{gallery.latest('inside')['value']:,}")
    expect(page.locator('[data-query="inside-by-ward"]')).to_contain_text("Present now, by ward")
    gallery.release((30, visit("north", comes=False)))
    fewer = gallery.latest("inside")["value"]
    expect(inside.locator("strong")).to_have_text(f"{fewer:,}")


def test_all_kinds_are_on_some_page() -> None:
    from evertally.kinds import OURS, find

    assert {find(query["kind"]) for query in [*ALL_KINDS, *PEOPLE]} == set(OURS)
