"""Graphs and strings on the page: cuts that the reader chooses, degrees in their order, words that occur often."""

from __future__ import annotations

import os
import re
from itertools import combinations
from pathlib import Path

import pytest
from clinic_service import WARDS, Clinic
from opened_page import Open, scrolled
from playwright.sync_api import Locator, expect


def weight(gallery: Clinic, chosen: set[str]) -> int:
    """The cut between these wards and the others, from what was released."""
    released = gallery.latest("moves")["value"]
    pairs = combinations(WARDS, 2)
    return sum(value for (a, b), value in zip(pairs, released, strict=True) if (a in chosen) != (b in chosen))


def shown(card: Locator) -> tuple[str, str]:
    return card.locator(".values b").inner_text(), card.locator(".values dd span").inner_text().replace("\u00a0", " ")


def test_a_cut_is_chosen_by_keyboard(opened: Open, gallery: Clinic) -> None:
    seen = opened(gallery.with_token)
    page = seen.page
    card = page.locator('[data-query="moves"]')
    card.scroll_into_view_if_needed()
    north, south, west = (card.get_by_role("button", name=ward, exact=True) for ward in WARDS[:3])
    expect(north).to_have_attribute("aria-pressed", "true")
    expect(card.locator(".values dt")).to_have_text("Between north and the rest")
    expect(card.locator(".values b")).to_have_text(f"{weight(gallery, {'north'}):,}")
    north.focus()
    page.keyboard.press("Tab")
    expect(south).to_be_focused()
    page.keyboard.press("Space")
    expect(south).to_have_attribute("aria-pressed", "true")
    expect(south).to_be_focused()
    expect(card.locator(".values b")).to_have_text(f"{weight(gallery, {'north', 'south'}):,}")
    expect(card.locator(".values dt")).to_have_text("Between 2 of 4 vertices and the rest")
    expect(card.get_by_role("status").last).to_contain_text("plus or minus")
    # k p pairs cross: 3 for one ward, 4 for two. The error grows with their root, and is called what it is.
    deviation = gallery.latest("moves")["stddev"]
    assert shown(card)[1] == f"± {-int(-1.96 * deviation * 2 // 1):,}"
    expect(card).to_contain_text("about 95 of 100 cases")
    for button in (north, south):
        button.press("Enter")
    expect(card.locator(".values dt")).to_have_text("No vertex is chosen: there is nothing between")
    assert shown(card) == ("\N{EN DASH}", "")
    west.press("Enter")
    expect(card.locator(".values b")).to_have_text(f"{weight(gallery, {'west'}):,}")
    assert west.evaluate("(node) => getComputedStyle(node).outlineStyle") == "solid"
    assert page.evaluate("window.harmed") is None
    assert seen.complaints == []


def test_a_long_list_of_vertices_is_filtered_and_keeps_what_is_chosen(opened: Open, gallery: Clinic) -> None:
    card = opened(gallery.with_token).page.locator('[data-query="beds"]')
    card.scroll_into_view_if_needed()
    expect(card.locator(".vertices button")).to_have_count(30)
    hidden = "room 39"
    filter_box = card.get_by_role("searchbox", name="Find among 44 vertices")
    filter_box.fill(hidden)
    expect(card.locator(".vertices button")).to_have_text([hidden])
    card.locator(".vertices button").click()
    filter_box.fill("")
    expect(card.get_by_role("button", name=hidden, exact=True)).to_have_attribute("aria-pressed", "true")
    expect(card.locator(".values dt")).to_have_text("Between 2 of 44 vertices and the rest")


def test_degrees_stand_in_their_order_and_words_by_their_count(opened: Open, gallery: Clinic) -> None:
    page = opened(gallery.with_token).page
    scrolled(page)
    degrees = page.locator('[data-query="by-degree"]')
    expect(degrees.locator(".column")).to_have_count(13)
    degrees.get_by_role("button", name="by-degree as a table").click()
    degrees.get_by_role("button", name="Show all").click()
    expect(degrees.locator("tbody th")).to_have_text([*map(str, range(12)), ">=12"])
    often = gallery.latest("often-cups")
    assert often["category"], "tea is drunk often enough"
    ranked = sorted(zip(often["value"], often["category"], strict=True), key=lambda pair: -pair[0])
    expect(page.locator('[data-query="often-cups"] .bars .name')).to_have_text([word for _, word in ranked])
    expect(page.locator('[data-query="often-cups"] .place').first).to_have_text(re.compile("^1"))
    expect(page.locator('[data-query="often-cups"]')).to_contain_text("above 400 with noise")
    expect(page.locator('[data-query="cups"] .bars .name')).to_have_count(6)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_cards_of_graphs_fit(opened: Open, gallery: Clinic, tmp_path: Path, width: int, scheme: str) -> None:
    """Pictures are kept where EVERTALLY_SCREENSHOTS says."""
    page = opened(gallery.with_token, width=width, color_scheme=scheme).page
    folder = Path(os.environ.get("EVERTALLY_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    for query in ("moves", "beds", "by-degree", "often-cups"):
        card = page.locator(f'[data-query="{query}"]')
        card.scroll_into_view_if_needed()
        expect(card.locator(".plot > svg, .bars .hbar").first).to_be_visible()
        card.screenshot(path=folder / f"{query}-{width}-{scheme}.png")
        assert card.evaluate("(node) => node.scrollWidth <= node.clientWidth")
