"""What the reader chose is in the address: a link shows what its sender saw."""

from __future__ import annotations

import re

from clinic_service import Clinic
from opened_page import Open
from playwright.sync_api import Page, expect


def pressed(page: Page, group: str) -> list[str]:
    switch = page.get_by_role("group", name=group).first
    expect(switch.get_by_role("button").first).to_be_visible()
    chosen = switch.locator('[aria-pressed="true"] .desk, [aria-pressed="true"]')
    return [text.strip() for text in chosen.all_inner_texts()][:1]


def test_a_link_shows_what_its_sender_saw(opened: Open, days: Clinic) -> None:
    page = opened(days.address).page
    assert pressed(page, "Window") == ["7 days"]
    assert pressed(page, "Shown") == ["90 days"]
    page.get_by_role("button", name="Total").first.click()
    page.get_by_role("button", name="30 days", exact=True).last.click()
    page.get_by_role("button", name=re.compile("stays hidden")).click()
    page.get_by_role("button", name="Dark", exact=True).click()
    page.get_by_role("button", name="Open By ward").click()
    expect(page.locator(".compare li")).to_have_count(4)
    page.locator(".compare").get_by_label("south").click()
    expect(page.locator(".compare li.on")).to_have_count(3)
    page.get_by_role("button", name="Table", exact=True).click()
    expect(page.locator(".course")).to_be_hidden()
    heads = page.locator(".detail .table thead th").all_inner_texts()
    rows = page.locator(".detail .table tbody th").all_inner_texts()
    assert "south" not in heads

    other = opened(page.url).page
    expect(other.locator(".detail .table tbody th").first).to_be_visible()
    assert other.locator(".detail .table thead th").all_inner_texts() == heads
    assert other.locator(".detail .table tbody th").all_inner_texts() == rows
    assert pressed(other, "Window") == ["Total"]
    expect(other.locator("html")).to_have_attribute("data-theme", "dark")
    expect(other.locator(".course")).to_be_hidden()
    other.locator(".crumb a").click()
    expect(other.locator("#promised")).to_be_visible()


def test_back_leaves_a_statistic_and_nonsense_does_no_harm(opened: Open, days: Clinic) -> None:
    seen = opened(f"{days.address}#window=99&range=x&open=nothing&part=9-3&theme=pink&pick=a&pick=a")
    page = seen.page
    assert pressed(page, "Window") == ["7 days"]
    expect(page.locator("#cards")).to_be_visible()
    page.locator('[data-tile="visits"]').click()
    expect(page.locator(".detail h2")).to_have_text("Visits")
    expect(page.locator(".detail h2")).to_be_focused()
    page.get_by_role("button", name="Day", exact=True).click()
    page.go_back()
    expect(page.locator("#cards")).to_be_visible()
    page.go_forward()
    expect(page.locator(".detail h2")).to_have_text("Visits")
    page.locator("#home").click()
    expect(page.locator("#cards")).to_be_visible()
    page.get_by_role("button", name="Total", exact=True).click()
    page.go_back()
    expect(page.get_by_role("button", name="Total", exact=True)).to_have_attribute("aria-pressed", "false")
    expect(page.locator("#cards")).to_be_visible()
    assert seen.complaints == []


def test_a_drag_looks_closer_and_stays_in_the_address(opened: Open, days: Clinic) -> None:
    page = opened(f"{days.address}#window=1&range=30").page
    plot = page.locator('[data-query="visits"] .plot')
    expect(plot.locator("svg")).to_be_visible()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 70, steps=4)
    page.mouse.up()
    expect(page.get_by_role("button", name="Leave this part")).to_be_visible()
    found = re.search(r"part=(\d+)-(\d+)", page.url)
    assert found is not None
    first, last = int(found[1]), int(found[2])
    assert 30 < first < last < 60
    assert pressed(page, "Shown") == []
    other = opened(page.url).page
    expect(other.get_by_role("button", name="Leave this part")).to_be_visible()
    plot.dblclick(position={"x": box["width"] / 2, "y": 60})
    expect(page.get_by_role("button", name="Leave this part")).to_be_hidden()
    assert "part=" not in page.url
