"""Users, percentiles and large domains on the page: windows as lines, cohorts as a triangle, prefixes as a table."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from clinic_service import WARDS, Clinic
from opened_page import Open
from playwright.sync_api import expect

_CARDS = {
    "people": ".values",
    "people-by-ward": ".bars",
    "found": "table",
    "active": ".values",
    "active-by-ward": ".bars",
    "weekly": ".values",
    "retention": "table",
    "then-west": ".bars",
    "prefixes": "table",
    "watched": ".bars",
}


def test_every_statistic_of_users_has_its_card(opened: Open, people: Clinic) -> None:
    seen = opened(people.with_token)
    page = seen.page
    for name, view in _CARDS.items():
        expect(page.locator(f'[data-query="{name}"] {view}')).to_be_visible()
    expect(page.locator(".card")).to_have_count(len(_CARDS))
    for name in ("people", "weekly"):
        expect(page.locator(f'[data-query="{name}"] strong')).to_have_text(f"{people.latest(name)['value']:,}")
    expect(page.locator("#plain")).to_contain_text("whether any one person (a name in the column 'who')")
    assert seen.complaints == []


def test_windows_are_lines_named_by_the_clock(opened: Open, people: Clinic) -> None:
    page = opened(people.with_token).page
    card = page.locator('[data-query="active"]')
    released = people.latest("active")
    expect(card.locator("dt.keyed")).to_have_text(["last day", "last 7 days", "last 28 days"])
    expect(card.locator("strong")).to_have_text([f"{value:,}" for value in released["value"]])
    errors = [upper - value for value, upper in zip(released["value"], released["upper"], strict=True)]
    expect(card.locator(".values .error")).to_have_text([f"± {error:,}" for error in errors])
    words = "3 lines (last day; last 7 days; last 28 days) with error bands, ticks 1 to 22"
    expect(card.locator(".plot")).to_have_attribute("aria-label", words)
    by_ward = page.locator('[data-query="active-by-ward"] .bars .name')
    lasts = [f"{ward}, last {last}" for last in ("day", "7 days") for ward in WARDS]
    expect(by_ward).to_have_text(lasts)


def test_cohorts_are_a_triangle(opened: Open, people: Clinic) -> None:
    page = opened(people.with_token).page
    card = page.locator('[data-query="retention"]')
    released = people.latest("retention")
    cells = dict(zip(released["category"], zip(released["value"], released["lower"], strict=True), strict=True))
    expect(card.locator("thead th")).to_have_text(["First active", "size", "+ 1", "+ 2"])
    expect(card.locator("tbody th")).to_have_text(["2026-01-01", "2026-01-08", "2026-01-15"])
    for cohort, row in enumerate(card.locator("tbody tr").all(), start=1):
        expect(row.locator("td")).to_have_count(4 - cohort)  # what is not over has no cell
        for age, cell in enumerate(row.locator("td").all()):
            value, lower = cells[f"cohort {cohort}, age {age}"]
            expect(cell).to_have_text(f"{value:,} ± {value - lower}")
            assert (cell.get_attribute("class") == "unclear") == (lower <= 0)
    # Nobody came first in the third week, but for noise that is known; all of the first cohort is darker than a part.
    first, later = (card.locator("tbody tr").nth(0).locator("td").nth(age) for age in (0, 2))
    shades = [cell.evaluate("(node) => getComputedStyle(node).backgroundColor") for cell in (first, later)]
    assert len(set(shades)) == 2
    part, size = cells["cohort 1, age 2"], cells["cohort 1, age 0"]
    assert (later.get_attribute("title") or "").startswith(f"{round(100 * part[0] / size[0])} % of the cohort (")
    expect(card).to_contain_text("by age in periods of 7 days")
    region = card.get_by_role("region", name="retention by cohort and age")
    region.focus()
    expect(region).to_be_focused()


def test_prefixes_and_watched_labels_are_text(opened: Open, people: Clinic) -> None:
    seen = opened(people.with_token)
    page = seen.page
    released = people.latest("prefixes")
    nested = sorted(released["category"], key=lambda prefix: prefix.removesuffix("*"))
    assert "<img src=x*" in released["category"]
    names = page.locator('[data-query="prefixes"] td .name')
    expect(names).to_have_text(nested)
    expect(page.locator('[data-query="prefixes"] td.error')).to_have_count(len(nested))
    expect(page.locator('[data-query="prefixes"] .rank').first).to_be_hidden()
    expect(page.locator('[data-query="watched"] .bars .name')).to_have_text(["tea", WARDS[3]])
    expect(page.locator('[data-query="then-west"] .bars .name')).to_have_text(["west", WARDS[3]])
    assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
    assert page.evaluate("window.harmed") is None
    assert seen.complaints == []


def test_percentiles_are_on_a_scale_of_factors_and_moments_apart(opened: Open, gallery: Clinic) -> None:
    page = opened(gallery.with_token).page
    stays = page.locator('[data-query="stays"]')
    expect(stays.locator("dt.keyed")).to_have_text(["p50", "p95", "p99"])
    expect(stays.locator(".plot")).to_have_attribute("aria-label", re.compile("on a logarithmic scale$"))
    expect(page.locator('[data-query="lengths"] .bars .name')).to_have_text(["0 to 30", "30 to 60", "60 to 120"])
    spread = page.locator('[data-query="spread"]')
    expect(spread.locator("dt.keyed")).to_have_text(["mean", "variance", "standard deviation"])
    expect(spread.locator(".plot canvas")).to_have_count(3)
    expect(spread.locator(".plot").nth(1)).to_have_attribute("aria-label", re.compile(r"^One line \(variance\)"))


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_cards_of_users_fit(opened: Open, people: Clinic, tmp_path: Path, width: int, scheme: str) -> None:
    """Pictures are kept where EVERTALLY_SCREENSHOTS says."""
    page = opened(people.with_token, width=width, color_scheme=scheme).page
    folder = Path(os.environ.get("EVERTALLY_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    for query in _CARDS:
        card = page.locator(f'[data-query="{query}"]')
        expect(card.locator(".plot canvas, .triangle td").first).to_be_visible()
        card.scroll_into_view_if_needed()
        card.screenshot(path=folder / f"{query}-{width}-{scheme}.png")
        assert card.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
