"""Users, percentiles and large domains on the page: windows as lines, cohorts as a triangle, prefixes as a list."""

from __future__ import annotations

import re

from clinic_service import PEOPLE, WARDS, Clinic
from opened_page import Open, scrolled
from playwright.sync_api import expect


def numbers(values: list[int]) -> list[str]:
    return [f"{value:,}".replace("-", "\N{MINUS SIGN}") for value in values]


def test_every_statistic_of_users_has_its_card(opened: Open, people: Clinic) -> None:
    seen = opened(f"{people.with_token}&promise=1")
    page = seen.page
    scrolled(page)
    for query in PEOPLE:
        expect(page.locator(f'[data-query="{query["name"]}"] .content')).to_be_visible()
    expect(page.locator("#cards > .card")).to_have_count(len(PEOPLE))
    weekly = people.latest("weekly")
    expect(page.locator('[data-tile="weekly"] .big')).to_contain_text(f"{weekly['value']:,}")
    expect(page.locator("#promised")).to_contain_text("Whether any one person is in the data, with all their events.")
    expect(page.locator("#promised")).not_to_contain_text("Less protected")
    expect(page.locator("#plain")).to_contain_text("whether any one person (a name in the column 'who')")

    # Windows of active users are lines that the clock has named.
    card = page.locator('[data-query="active"]')
    released = people.latest("active")
    expect(card.locator(".values dt")).to_have_text(["last day", "last 7 days", "last 28 days"])
    expect(card.locator(".values b")).to_have_text(numbers(released["value"]))
    expect(card.locator("path.line")).to_have_count(3)
    expect(card.locator(".plot")).to_have_attribute("aria-label", re.compile("last 28 days"))

    # Labels are text, whatever they are.
    prefixes = people.latest("prefixes")["category"]
    assert "<img src=x*" in prefixes
    for name, text in (("prefixes", "<img*"), ("watched", WARDS[3]), ("then-west", WARDS[3])):
        page.locator(f'[data-query="{name}"]').get_by_role("button", name=re.compile("as a table")).click()
        expect(page.locator(f'[data-query="{name}"] table')).to_contain_text(text)
    assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
    assert page.evaluate("window.harmed") is None
    assert seen.complaints == []


def test_cohorts_are_a_triangle(opened: Open, people: Clinic) -> None:
    page = opened(f"{people.with_token}&open=retention", width=360).page
    card = page.locator('.detail [data-query="retention"]')
    released = people.latest("retention")
    cells = dict(zip(released["category"], zip(released["value"], released["lower"], strict=True), strict=True))
    expect(card.locator("tbody th")).to_have_text(["1 Jan", "8 Jan", "15 Jan"])
    for cohort, row in enumerate(card.locator("tbody tr").all(), start=1):
        expect(row.locator("td")).to_have_count(4 - cohort)  # what is not over has no cell
        for age, cell in enumerate(row.locator("td").all()):
            value, lower = cells[f"cohort {cohort}, age {age}"]
            told = cell.inner_text().replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-")
            assert told == f"{value:,} ± {value - lower}"
            assert ("unclear" in (cell.get_attribute("class") or "")) == (lower <= 0)
    first, later = (card.locator("tbody tr").nth(0).locator("td").nth(age) for age in (0, 2))
    shades = [cell.evaluate("(node) => getComputedStyle(node).backgroundColor") for cell in (first, later)]
    assert len(set(shades)) == 2
    region = card.get_by_role("region", name="retention by cohort and age")
    region.focus()
    expect(region).to_be_focused()
    expect(page.get_by_role("group", name="Window")).to_have_count(0)  # it has none
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_percentiles_are_named_in_plain_words_and_moments_stand_apart(opened: Open, gallery: Clinic) -> None:
    page = opened(f"{gallery.with_token}&open=stays&window=24").page
    stays = page.locator('.detail [data-query="stays"]')
    expect(stays.locator(".plot svg").first).to_be_visible()
    expect(stays).to_contain_text("half")
    expect(stays).to_contain_text("19 in 20")
    assert not re.search(r"\bp\d\d\b|quantile", page.locator("main").inner_text())
    page.goto(f"{gallery.address}#open=spread")
    spread = page.locator('.detail [data-query="spread"]')
    expect(spread.locator(".values dt")).to_have_text(["mean", "variance", "standard deviation"])
    expect(spread.locator(".plot")).to_have_count(3)
