"""The page and a stream that goes on: new releases, new orders, lost connections, the end."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable

from clinic_service import DRINKS, NUMBERED, ON_THE_WALL, VISITS, Clinic, visit
from opened_page import Open
from playwright.sync_api import Page, expect

Serve = Callable[..., Clinic]


def shown_tick(page: Page, tick: int) -> None:
    expect(page.locator("#tick")).to_have_text(f"Tick {tick}")


def ticks_under_the_cursor(page: Page, query: str) -> list[int]:
    """Moves over a chart from end to end and reads which ticks it knows."""
    over = page.locator(f'[data-query="{query}"] .u-over')
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    seen: list[int] = []
    for step in range(61):
        page.mouse.move(box["x"] + 1 + step * (box["width"] - 2) / 60, box["y"] + 40)
        told = page.locator(f'[data-query="{query}"] .when').inner_text()
        seen.append(int(told.split(",")[0].removeprefix("Tick ")))
    return sorted(set(seen))


def test_a_release_arrives_by_itself(opened: Open, gallery: Clinic) -> None:
    seen = opened(gallery.with_token)
    page = seen.page
    shown_tick(page, gallery.tick)
    gallery.release((1000, visit("south")))
    shown_tick(page, gallery.tick)
    visits = page.locator('[data-query="visits"] strong')
    expect(visits).to_have_text(f"{gallery.latest('visits')['value']:,}")
    expect(page.get_by_role("meter")).to_have_attribute("aria-valuenow", str(gallery.tick))
    expect(page.locator("#time")).to_have_text(re.compile(r"2026-01-0\d \d\d:00:00 UTC"))
    assert sum("/v1/releases/live" in address for address in seen.addresses) == 1
    assert seen.complaints == []


def test_a_table_moves_its_rows_when_the_order_changes(opened: Open, served: Serve) -> None:
    clinic = served([VISITS, DRINKS])
    clinic.release((900, visit(drink="tea")), (600, visit(drink="coffee")), (400, visit(drink="milk")))
    page = opened(clinic.with_token).page
    still = opened(clinic.with_token, reduced_motion="reduce").page
    for one in (page, still):
        expect(one.locator("td .name")).to_have_text(["tea", "coffee", "milk"])
    before = page.evaluate("window.animated")
    clinic.release((1200, visit(drink="milk")))
    for one in (page, still):
        expect(one.locator("td .name")).to_have_text(["milk", "tea", "coffee"])
    expect(page.locator("tbody tr").first).to_have_attribute("data-moved", "up")
    expect(page.locator("tbody tr").last).to_have_attribute("data-moved", "down")
    assert page.evaluate("window.animated") == before + 3
    assert still.evaluate("window.animated") == 0


def test_a_new_label_appears_once_it_passed_the_threshold(opened: Open, served: Serve) -> None:
    clinic = served([VISITS, DRINKS])
    clinic.release((1, visit(drink="a secret")))
    page = opened(clinic.with_token).page
    expect(page.locator('[data-query="drinks"]')).to_contain_text("Nothing to show yet")
    clinic.release((900, visit(drink="tea")))
    expect(page.locator("td .name")).to_have_text(["tea"])
    assert "a secret" not in page.content()


def test_before_the_first_release_and_after_the_last(opened: Open, served: Serve) -> None:
    clinic = served([VISITS], horizon=2, public=True)
    seen = opened(clinic.address)
    page = seen.page
    expect(page.locator("#tick")).to_have_text("Nothing yet")
    expect(page.locator(".card")).to_contain_text("Nothing has been released yet.")
    expect(page.locator("#next")).to_have_text("On request")
    clinic.release((10, visit()))
    clinic.release((10, visit()))
    shown_tick(page, 2)
    expect(page.locator("#state")).to_have_text("Ended")
    expect(page.locator("#next")).to_have_text("None: the stream has ended")
    expect(page.get_by_role("button", name="Pause")).to_be_hidden()
    page.reload()
    expect(page.locator("#state")).to_have_text("Ended")
    expect(page.locator(".card strong")).to_have_text(f"{clinic.latest('visits')['value']:,}")
    assert seen.complaints == []


def test_a_countdown_runs_where_ticks_close_on_the_wall_clock(opened: Open, served: Serve) -> None:
    clinic = served([VISITS], clock=ON_THE_WALL)
    page = opened(clinic.with_token).page
    expect(page.locator("#next")).to_have_text(re.compile(r"In [1-6] s"))
    shown_tick(page, 1)
    expect(page.locator("#next")).to_have_text(re.compile(r"In [1-6] s"))


def test_a_clock_of_plain_numbers(opened: Open, served: Serve) -> None:
    clinic = served([VISITS], clock=NUMBERED)
    for _ in range(3):
        clinic.release((10, visit()))
    seen = opened(clinic.with_token)
    expect(seen.page.locator("#time")).to_have_text("time 1,030")
    expect(seen.page.locator("#ranges button:visible")).to_have_text(["Last 100 ticks", "All"])
    assert ticks_under_the_cursor(seen.page, "visits") == [1, 2, 3]
    assert seen.complaints == []


def test_after_a_crash_of_the_service_the_page_goes_on_without_a_gap(opened: Open, served: Serve) -> None:
    clinic = served([VISITS])
    for _ in range(4):
        clinic.release((10, visit()))
    seen = opened(clinic.with_token)
    page = seen.page
    asked: list[str | None] = []
    page.on("request", lambda one: asked.append(one.headers.get("last-event-id")) if "/live" in one.url else None)
    expect(page.locator("#state")).to_have_text("Live")
    clinic.stop(signal.SIGKILL)
    expect(page.locator("#state")).to_have_text("Reconnecting")
    clinic.start()
    for _ in range(3):
        clinic.release((10, visit()))
    shown_tick(page, 7)
    expect(page.locator("#state")).to_have_text("Live")
    assert set(asked) == {"4"}
    # The history may have been on its way when the service died: it is asked for again, a little later.
    expect(page.locator('[data-query="visits"] .plot')).to_have_attribute("aria-label", re.compile("ticks 1 to 7"))
    assert ticks_under_the_cursor(page, "visits") == [1, 2, 3, 4, 5, 6, 7]


def test_pause_holds_the_page_still_and_resume_catches_up(opened: Open, served: Serve) -> None:
    clinic = served([VISITS])
    clinic.release((10, visit()))
    page = opened(clinic.with_token).page
    expect(page.locator("#state")).to_have_text("Live")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#state")).to_have_text("Paused")
    clinic.release((10, visit()))
    clinic.release((10, visit()))
    page.wait_for_timeout(500)
    shown_tick(page, 1)
    page.get_by_role("button", name="Resume").click()
    shown_tick(page, 3)
    expect(page.locator("#state")).to_have_text("Live")
    assert ticks_under_the_cursor(page, "visits") == [1, 2, 3]


def test_a_screen_reader_hears_the_last_values_but_not_all_of_them(opened: Open, served: Serve) -> None:
    clinic = served([VISITS])
    clinic.release((10, visit()))
    page = opened(clinic.with_token).page
    spoken = page.locator("#announcer")
    expect(spoken).to_have_attribute("aria-live", "polite")
    value = clinic.latest("visits")["value"]
    expect(spoken).to_contain_text(f"Tick 1. visits: {value} plus or minus")
    clinic.release((10, visit()))
    shown_tick(page, 2)
    expect(spoken).to_contain_text("Tick 1.")


def test_zoom_loads_that_part_of_the_history_and_a_double_click_leaves_it(opened: Open, gallery: Clinic) -> None:
    page = opened(gallery.with_token).page
    plot = page.locator('[data-query="visits"] .plot')
    expect(plot).to_have_attribute("aria-label", f"One line with error bands, ticks 1 to {gallery.tick}")
    box = page.locator('[data-query="visits"] .u-over').bounding_box()
    assert box is not None
    with page.expect_request(lambda one: "query=visits" in one.url and "last=" in one.url) as asked:
        page.mouse.move(box["x"] + box["width"] * 9.5 / (gallery.tick - 1), box["y"] + 50)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 19.5 / (gallery.tick - 1), box["y"] + 60, steps=4)
        page.mouse.up()
    assert "points=600" in asked.value.url
    first, last = 10, 21  # the ticks around the places where the mouse went down and up
    expect(plot).to_have_attribute("aria-label", f"One line with error bands, ticks {first} to {last}")
    expect(page.get_by_role("button", name="Leave this part")).to_be_visible()
    gallery.release((10, visit()))
    visits = page.locator('[data-query="visits"] strong')
    expect(visits).to_have_text(f"{gallery.latest('visits')['value']:,}")  # drawn together with the chart
    expect(plot).to_have_attribute("aria-label", f"One line with error bands, ticks {first} to {last}")
    page.mouse.dblclick(box["x"] + 100, box["y"] + 50)
    expect(plot).to_have_attribute("aria-label", f"One line with error bands, ticks 1 to {gallery.tick}")
    expect(page.get_by_role("button", name="Leave this part")).to_be_hidden()


def test_ranges(opened: Open, gallery: Clinic) -> None:
    page = opened(gallery.with_token).page
    plot = page.locator('[data-query="visits"] .plot')
    page.get_by_role("button", name="Last day").click()
    first = gallery.tick - 23
    expect(plot).to_have_attribute("aria-label", f"One line with error bands, ticks {first} to {gallery.tick}")
    gallery.release((10, visit()))
    expect(plot).to_have_attribute("aria-label", f"One line with error bands, ticks {first + 1} to {gallery.tick}")
    page.get_by_role("button", name="All", exact=True).click()
    expect(plot).to_have_attribute("aria-label", f"One line with error bands, ticks 1 to {gallery.tick}")
