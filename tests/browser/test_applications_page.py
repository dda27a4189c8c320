"""Graphs and strings on the page: cuts that the reader chooses, degrees in their order, words that occur often."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path

import pytest
from clinic_service import WARDS, Clinic
from opened_page import Open
from playwright.sync_api import Locator, expect


def weight(gallery: Clinic, chosen: set[str]) -> int:
    """The cut between these wards and the others, from what was released."""
    released = gallery.latest("moves")["value"]
    pairs = combinations(WARDS, 2)
    return sum(value for (a, b), value in zip(pairs, released, strict=True) if (a in chosen) != (b in chosen))


def shown(card: Locator) -> tuple[str, str]:
    return card.locator("strong").inner_text(), card.locator(".values .error").inner_text()


def test_a_cut_is_chosen_by_keyboard(opened: Open, gallery: Clinic) -> None:
    seen = opened(gallery.with_token)
    page = seen.page
    card = page.locator('[data-query="moves"]')
    north, south, west = (card.get_by_role("button", name=ward, exact=True) for ward in WARDS[:3])
    expect(north).to_have_attribute("aria-pressed", "true")
    expect(card.locator("dt").first).to_have_text("Between north and the rest")
    expect(card.locator("strong")).to_have_text(f"{weight(gallery, {'north'}):,}")
    north.focus()
    page.keyboard.press("Tab")
    expect(south).to_be_focused()
    page.keyboard.press("Space")
    expect(south).to_have_attribute("aria-pressed", "true")
    expect(south).to_be_focused()
    expect(card.locator("strong")).to_have_text(f"{weight(gallery, {'north', 'south'}):,}")
    expect(card.locator("dt").first).to_have_text("Between 2 of 4 vertices and the rest")
    expect(card.get_by_role("status")).to_contain_text("plus or minus")
    # k p pairs cross: 3 for one ward, 4 for two. The error grows with their root, and is called what it is.
    deviation = gallery.latest("moves")["stddev"]
    assert shown(card)[1] == f"± {-int(-1.96 * deviation * 2 // 1):,}"
    expect(card).to_contain_text("about 95 % of cases")
    for button in (north, south):
        button.press("Enter")
    expect(card.locator("dt").first).to_have_text("No vertex is chosen: there is nothing to cut")
    assert shown(card) == ("\N{EN DASH}", "")
    west.press("Enter")
    expect(card.locator("strong")).to_have_text(f"{weight(gallery, {'west'}):,}")
    assert west.evaluate("(node) => getComputedStyle(node).outlineStyle") == "solid"
    assert page.evaluate("window.harmed") is None
    assert seen.complaints == []


def test_a_long_list_of_vertices_is_filtered_and_keeps_what_is_chosen(opened: Open, gallery: Clinic) -> None:
    card = opened(gallery.with_token).page.locator('[data-query="beds"]')
    expect(card.locator(".note").first).to_have_text("The 30 largest of 44 vertices")
    hidden = "room 39"
    filter_box = card.get_by_role("searchbox", name="Filter vertices")
    filter_box.fill(hidden)
    expect(card.locator(".vertices button")).to_have_text([hidden])
    card.locator(".vertices button").click()
    filter_box.fill("")
    expect(card.get_by_role("button", name=hidden, exact=True)).to_have_attribute("aria-pressed", "true")
    expect(card.locator("dt").first).to_have_text("Between 2 of 44 vertices and the rest")


def test_degrees_stand_in_their_order_and_words_by_their_count(opened: Open, gallery: Clinic) -> None:
    page = opened(gallery.with_token).page
    degrees = page.locator('[data-query="by-degree"] .bars .name')
    expect(degrees).to_have_text([*map(str, range(12)), ">=12"])
    often = gallery.latest("often-cups")
    assert often["category"], "tea is drunk often enough"
    expect(page.locator('[data-query="often-cups"] td .name')).to_have_text(often["category"])
    expect(page.locator('[data-query="often-cups"]')).to_contain_text("above 400 with noise")
    expect(page.locator('[data-query="cups"] .bars .name')).to_have_text(
        ["tea", "coffee", "tea tea", "tea coffee", "coffee tea", "coffee coffee"]
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_cards_of_graphs_fit(opened: Open, gallery: Clinic, tmp_path: Path, width: int, scheme: str) -> None:
    """Pictures are kept where EVERTALLY_SCREENSHOTS says."""
    page = opened(gallery.with_token, width=width, color_scheme=scheme).page
    folder = Path(os.environ.get("EVERTALLY_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    for query in ("moves", "beds", "by-degree", "often-cups"):
        card = page.locator(f'[data-query="{query}"]')
        expect(card.locator(".plot canvas")).to_be_visible()
        card.scroll_into_view_if_needed()
        card.screenshot(path=folder / f"{query}-{width}-{scheme}.png")
        assert card.evaluate("(node) => node.scrollWidth <= node.clientWidth")
