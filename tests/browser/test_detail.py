"""One statistic on a page of its own: compare, search, table, exactness, making, files; and finding it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from clinic_service import WARDS, Clinic
from opened_page import Open, Opened
from playwright.sync_api import expect


@pytest.fixture
def by_ward(opened: Open, days: Clinic) -> Iterator[Opened]:
    seen = opened(f"{days.address}#window=7&range=30&open=by-ward")
    expect(seen.page.locator(".course .plot svg")).to_be_visible()
    yield seen
    assert seen.complaints == []
    assert seen.page.evaluate("window.violations") == []


def test_numbers_of_chart_and_table_are_those_of_the_service(by_ward: Opened, days: Clinic) -> None:
    page = by_ward.page
    expect(page.locator(".detail h2")).to_have_text("By ward")
    expect(page.locator(".course h3")).to_have_text("Visits per day, 7-day windows")
    answer = days.get("/v1/windows?query=by-ward&window=7&per=1&from=30").json()
    row = page.locator(".detail .table tbody tr").first
    expect(row.locator("th")).to_have_text("23 Feb to 1 Mar")
    heads = page.locator(".detail .table thead th").all_inner_texts()[1:]
    assert heads[0] == "west"
    for place, label in enumerate(heads):
        value, upper = (answer[name][answer["labels"].index(label)][-1] for name in ("value", "upper"))
        told = (
            row.locator("td").nth(place).inner_text().replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-")
        )
        shown, error = (float(part) for part in told.split(" ± "))
        assert abs(shown - value) <= 0.51
        assert abs(error - (upper - value)) <= 0.51


def test_labels_are_compared_by_keyboard(by_ward: Opened) -> None:
    page = by_ward.page
    labels = page.locator(".compare li label")
    expect(labels).to_have_count(len(WARDS))
    expect(page.locator(".compare")).to_contain_text("4 of 4 labels, 6 at most")
    box = page.locator(".compare").get_by_label("north")
    box.focus()
    page.keyboard.press("Space")
    expect(page.locator(".compare")).to_contain_text("3 of 4 labels, 6 at most")
    expect(box).to_be_focused()
    expect(page.locator(".detail .table thead")).not_to_contain_text("north")
    page.locator(".course .plot").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".course .tip")).to_contain_text("west")
    expect(page.locator(".course [role=status]")).to_contain_text("west")


def test_the_strip_below_moves_what_is_shown(by_ward: Opened) -> None:
    page = by_ward.page
    start = page.get_by_role("slider", name="Start of what is shown")
    expect(start).to_have_attribute("aria-valuenow", "50")
    start.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    expect(start).to_have_attribute("aria-valuenow", "40")
    assert "part=24-60" in page.url
    box = page.locator(".brush-part").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] - 100, box["y"] + 10, steps=3)
    page.mouse.up()
    expect(page.get_by_role("slider", name="End of what is shown")).not_to_have_attribute("aria-valuenow", "100")
    page.get_by_role("button", name="Leave this part").click()
    expect(start).to_have_attribute("aria-valuenow", "50")


def test_exactness_making_and_files(by_ward: Opened, days: Clinic) -> None:
    page = by_ward.page
    windows = days.get("/v1/exactness?query=by-ward").json()["windows"]
    errors = [
        text.replace("\N{NO-BREAK SPACE}", " ") for text in page.locator(".exactness td:nth-child(3)").all_inner_texts()
    ]
    assert errors == [f"± {one['usual']:,.0f}" for one in windows]
    expect(page.locator(".made")).to_contain_text("Each visit adds 1 to its ward, and nothing else.")
    expect(page.locator(".made")).to_contain_text("it costs no privacy")
    expect(page.locator(".made dl")).to_be_hidden()
    page.locator(".made summary").click()
    expect(page.locator(".made dl")).to_contain_text("by-ward")

    files = page.locator(".downloads")
    with page.expect_download() as waiting:
        files.get_by_role("button", name="This view, CSV").click()
    lines = Path(waiting.value.path()).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "query,since,tick,start,end,label,value,stddev,lower,upper"
    assert len(lines) == 1 + 4 * 4
    for title, ending in (("CSV", "csv"), ("JSON", "json"), ("Arrow", "arrow")):
        with page.expect_download() as waiting:
            files.get_by_role("link", name=f"All releases as {title}").click()
        assert waiting.value.suggested_filename == f"clinic-visits-by-ward.{ending}"
        path = f"/v1/releases?query=by-ward&limit=10000&format={ending}"
        assert Path(waiting.value.path()).read_bytes() == days.get(path).content
    with page.expect_download() as waiting:
        files.get_by_role("button", name="Picture as SVG").click()
    picture = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert picture.startswith("<svg")
    assert "Visits per day" in picture
    assert "class=" not in picture
    assert "var(" not in picture
    with page.expect_download() as waiting:
        files.get_by_role("button", name="Picture as PNG").click()
    content = Path(waiting.value.path()).read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 10_000
    files.get_by_role("button", name="Link to this view").click()
    expect(files.get_by_role("status").or_(files.get_by_role("textbox"))).to_be_visible()


def test_long_lists_are_searched_on_the_server_fifty_rows_at_a_time(opened: Open, days: Clinic) -> None:
    page = opened(f"{days.address}#window=7&open=by-room").page
    rows = page.locator('.compare li:not(:has([id*="first"]))')  # without those that are picked and not found
    expect(rows).to_have_count(50)
    expect(page.locator(".compare .note-line")).to_contain_text("120 match, ")
    page.locator(".compare").get_by_role("button", name="Show 50 more").click()
    expect(rows).to_have_count(100)
    page.locator(".compare").get_by_role("searchbox").fill("room 11")
    expect(page.locator(".compare .note-line")).to_contain_text("11 match, ")
    expect(page.locator(".compare label").filter(has_text="room 11")).to_have_count(11)
    assert "search=room+11" in page.url
    page.locator(".compare").get_by_role("searchbox").fill("cellar")
    expect(page.locator(".compare .note-line")).to_have_text("Nothing of that name is published here.")
    expect(page.locator(".compare li.on")).to_have_count(5)  # what is drawn can still be dropped
    for _ in range(2):  # six at most: the first picks make room
        page.locator(".compare").get_by_role("searchbox").fill("room 119")
        page.locator(".compare").get_by_label("room 119").click()
    assert page.url.count("pick=") <= 6


def test_statistics_and_labels_are_found_by_keyboard(opened: Open, days: Clinic) -> None:
    seen = opened(days.address)
    page = seen.page
    expect(page.locator(".tile .big").first).to_be_visible()
    page.keyboard.press("/")
    finder = page.get_by_role("combobox", name="Find a statistic or a label")
    expect(finder).to_be_focused()
    page.keyboard.type("rOOm 7")
    options = page.get_by_role("option")
    expect(options.first).to_contain_text("room 7")
    expect(options.first).to_contain_text("By room")
    expect(options.first).to_contain_text("±")
    expect(finder).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page.locator(".detail h2")).to_have_text("By room")
    expect(page.locator(".compare li.on label")).to_have_text(["room 7"])
    page.keyboard.press("/")
    page.keyboard.type("stay")
    page.keyboard.press("Enter")
    expect(page.locator(".detail h2")).to_have_text("Stay")
    page.keyboard.press("/")
    page.keyboard.type("nobody")
    expect(page.locator("#found")).to_have_text("Nothing of that name is published here.")
    page.keyboard.press("Escape")
    expect(page.locator("#found")).to_be_hidden()
    phone = opened(days.address, width=390).page
    phone.get_by_role("button", name="Find", exact=True).click()
    phone.keyboard.type("ward")
    phone.get_by_role("option").first.click()
    expect(phone.locator(".detail h2")).to_have_text("By ward")
    assert seen.complaints == []
