"""Graphs and strings on the page: cuts that the reader chooses, degrees in their order, words that occur often."""

from __future__ import annotations

from itertools import combinations

from clinic_service import WARDS, Clinic
from opened_page import Open, scrolled
from playwright.sync_api import Locator, expect


def weight(gallery: Clinic, chosen: set[str]) -> int:
    """The cut between these wards and the others, from what was released."""
    released = gallery.latest("moves")["value"]
    pairs = combinations(WARDS, 2)
    return sum(value for (a, b), value in zip(pairs, released, strict=True) if (a in chosen) != (b in chosen))


def shown(card: Locator) -> tuple[str, str]:
    value, error = card.locator(".values dd").inner_text(), card.locator(".values dd span").inner_text()
    return value.removesuffix(error).strip(), error.replace("\N{NO-BREAK SPACE}", " ")


def test_a_cut_is_chosen_by_keyboard(opened: Open, gallery: Clinic) -> None:
    seen = opened(f"{gallery.with_token}&open=moves")
    page = seen.page
    card = page.locator('.detail [data-query="moves"]')
    north, south, west = (card.get_by_role("button", name=ward, exact=True) for ward in WARDS[:3])
    value = card.locator(".values dd")
    expect(north).to_have_attribute("aria-pressed", "true")
    expect(card.locator("dt").first).to_have_text("Between north and the rest")
    expect(value).to_contain_text(f"{weight(gallery, {'north'}):,}")
    north.focus()
    page.keyboard.press("Tab")
    expect(south).to_be_focused()
    page.keyboard.press("Space")
    expect(south).to_have_attribute("aria-pressed", "true")
    expect(south).to_be_focused()
    expect(value).to_contain_text(f"{weight(gallery, {'north', 'south'}):,}")
    expect(card.locator("dt").first).to_have_text("Between 2 of 4 vertices and the rest")
    expect(card.get_by_role("status").filter(has_text="plus or minus")).to_have_count(1)
    # k p pairs cross: 3 for one ward, 4 for two. The error grows with their root, and is called what it is.
    deviation = gallery.latest("moves")["stddev"]
    assert shown(card)[1] == f"± {-int(-1.96 * deviation * 2 // 1):,}"
    expect(card).to_contain_text("about 95 of 100 cases")
    for button in (north, south):
        button.press("Enter")
    expect(card.locator("dt").first).to_have_text("No vertex is chosen: there is nothing between")
    assert shown(card) == ("\N{EN DASH}", "")
    west.press("Enter")
    expect(value).to_contain_text(f"{weight(gallery, {'west'}):,}")
    assert west.evaluate("(node) => getComputedStyle(node).outlineStyle") == "solid"
    assert page.evaluate("window.harmed") is None
    assert seen.complaints == []


def test_a_long_list_of_vertices_is_filtered_and_keeps_what_is_chosen(opened: Open, gallery: Clinic) -> None:
    page = opened(f"{gallery.with_token}&open=beds", width=360, color_scheme="dark").page
    card = page.locator('.detail [data-query="beds"]')
    hidden = "room 39"
    filter_box = card.get_by_role("searchbox", name="Find among 44 vertices")
    filter_box.fill(hidden)
    expect(card.locator(".vertices button")).to_have_text([hidden])
    card.locator(".vertices button").click()
    filter_box.fill("")
    expect(card.get_by_role("button", name=hidden, exact=True)).to_have_attribute("aria-pressed", "true")
    expect(card.locator("dt").first).to_have_text("Between 2 of 44 vertices and the rest")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_degrees_stand_in_their_order_and_words_by_their_count(opened: Open, gallery: Clinic) -> None:
    page = opened(f"{gallery.with_token}&window=total").page
    scrolled(page)
    often = gallery.latest("often-cups")
    assert often["category"], "tea is drunk often enough"
    for query, labels in (("by-degree", [*map(str, range(12)), ">=12"]), ("often-cups", often["category"])):
        card = page.locator(f'[data-query="{query}"]')
        card.get_by_role("button", name=f"{query} as a table").click()
        card.get_by_role("button", name="Show all").click() if len(labels) > 7 else None
        expect(card.locator("tbody th")).to_have_text(labels)
    expect(page.locator('[data-query="often-cups"]')).to_contain_text("above 400 with noise")
