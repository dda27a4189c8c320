"""The page and a stream that goes on: new releases, lost connections, pauses, the end."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable

from clinic_service import DRINKS, IN_WORDS, NUMBERED, ON_THE_WALL, VISITS, WARDS, Clinic, visit
from opened_page import Open
from playwright.sync_api import Locator, Page, expect

Serve = Callable[..., Clinic]
BY_WARD = {"name": "by-ward", "kind": "histogram", "column": "ward", "categories": WARDS}


def big(page: Page, query: str) -> Locator:
    return page.locator(f'[data-tile="{query}"] .big')


def shows(page: Page, query: str, count: int) -> None:
    """A chart has so many points, at the latest when it is drawn again."""
    for _ in range(20):
        if len(moments(page, query)) == count:
            return
        page.wait_for_timeout(500)
    assert len(moments(page, query)) == count


def moments(page: Page, query: str) -> list[str]:
    """Steps through a chart by keyboard and reads which windows it knows, newest first."""
    card = page.locator(f'[data-query="{query}"]')
    plot = card.locator(".plot").first
    plot.focus()
    page.keyboard.press("End")
    seen: list[str] = []
    for _ in range(50):
        told = card.locator(".tip b, .tip p").first.inner_text()
        if told in seen[-1:]:
            break
        seen.append(told)
        page.keyboard.press("ArrowLeft")
    return seen


def test_a_release_arrives_by_itself(opened: Open, served: Serve) -> None:
    clinic = served([VISITS, DRINKS], stream=IN_WORDS)
    clinic.release((1, visit(drink="a secret")))
    seen = opened(f"{clinic.with_token}&window=total")
    page = seen.page
    expect(page.locator("#when .desk")).to_have_text("updated 1 Jan 01:00 UTC")
    spoken = page.locator("#announcer")
    expect(spoken).to_have_attribute("aria-live", "polite")
    expect(spoken).to_contain_text("New numbers, 1 Jan 01:00 UTC.")
    expect(page.locator('[data-query="drinks"]')).to_contain_text("No drink stands out yet")
    clinic.release((900, visit(drink="tea")))
    expect(page.locator("#when .desk")).to_have_text("updated 1 Jan 02:00 UTC")
    expect(big(page, "visits")).to_contain_text(f"{clinic.latest('visits')['value']:,}")
    expect(page.locator('[data-query="drinks"]')).to_contain_text("tea")
    page.wait_for_timeout(2500)  # what would be spoken is spoken by then, but for that it is too soon
    expect(spoken).to_contain_text("1 Jan 01:00 UTC")
    assert "a secret" not in page.content()
    assert sum("/v1/releases/live" in address for address in seen.addresses) == 1
    assert seen.complaints == []


def test_before_the_first_release_and_after_the_last(opened: Open, served: Serve) -> None:
    clinic = served([VISITS, BY_WARD], horizon=2, public=True, stream=IN_WORDS)
    seen = opened(clinic.address)
    page = seen.page
    expect(page.locator("#state")).to_have_text("Not started")
    expect(page.locator("#when .desk")).to_have_text("first numbers on request")
    expect(page.locator("#notice")).to_contain_text("How exact the numbers will be is known already")
    radius = clinic.get("/v1/exactness?query=visits").json()["windows"][0]["radius"]
    expect(big(page, "visits")).to_contain_text(f"±\N{NO-BREAK SPACE}{radius:,.0f}")
    expect(page.get_by_role("button", name="Pause")).to_be_hidden()
    page.locator('[data-query="by-ward"]').get_by_role("button", name="Open by-ward").click()
    expect(page.locator(".course .empty")).to_contain_text("is known already")
    expect(page.locator(".exactness")).to_contain_text("Error")
    expect(page.locator(".compare")).to_be_hidden()
    page.get_by_role("link", name="All statistics").last.click()
    clinic.release((10, visit()))
    expect(page.locator("#state")).to_have_text("Live")
    expect(page.locator("#notice")).to_be_hidden()
    clinic.release((10, visit()))
    expect(page.locator("#state")).to_have_text("Ended")
    expect(page.locator("#when .desk")).to_have_text("1 Jan 02:00 UTC · these numbers are final")
    expect(page.get_by_role("button", name="Pause")).to_be_hidden()
    expect(page.locator(".mini")).to_contain_text("100 %")
    page.reload()
    expect(page.locator("#state")).to_have_text("Ended")
    expect(page.locator("#cards .plot svg").first).to_be_visible()
    assert seen.complaints == []


def test_a_countdown_runs_where_ticks_close_on_the_wall_clock(opened: Open, served: Serve) -> None:
    clinic = served([VISITS], clock=ON_THE_WALL)
    page = opened(clinic.with_token).page
    expect(page.locator("#when .desk")).to_have_text(re.compile(r"updated .* UTC · next in [1-6] s"))


def test_a_clock_of_plain_numbers(opened: Open, served: Serve) -> None:
    clinic = served([VISITS], clock=NUMBERED)
    for _ in range(3):
        clinic.release((10, visit()))
    seen = opened(clinic.with_token)
    page = seen.page
    expect(page.locator("#when .desk")).to_have_text("updated time 1,030")
    expect(page.locator("#times")).to_be_hidden()
    expect(page.locator('[data-query="visits"] .plot svg')).to_be_visible()
    shows(page, "visits", 3)
    assert seen.complaints == []


def test_a_lost_connection_is_told_and_caught_up_without_a_gap(opened: Open, served: Serve) -> None:
    clinic = served([VISITS])
    for _ in range(4):
        clinic.release((10, visit()))
    seen = opened(clinic.with_token)
    page = seen.page
    asked: list[str | None] = []
    page.on("request", lambda one: asked.append(one.headers.get("last-event-id")) if "/live" in one.url else None)
    expect(page.locator("#state")).to_have_text("Live")
    expect(page.locator('[data-query="visits"] .plot svg')).to_be_visible()
    clinic.stop(signal.SIGKILL)
    expect(page.locator("#state")).to_have_text("No connection")
    notice = page.locator("#notice")
    expect(notice.get_by_role("alert")).to_have_text(
        re.compile(r"No connection since \d\d:\d\d UTC. What you see is from 1 Jan 04:00 UTC and stays true.")
    )
    expect(notice).to_contain_text(re.compile(r"Trying again (in \d+ s|now)"))
    expect(page.locator('[data-query="visits"] .hatched')).to_be_attached()
    with page.expect_request("**/v1/releases/live"):
        notice.get_by_role("button", name="Try now").click()
    clinic.start()
    for _ in range(3):
        clinic.release((10, visit()))
    expect(page.locator("#state")).to_have_text("Live")
    expect(page.locator("#when .desk")).to_have_text("updated 1 Jan 07:00 UTC")
    expect(page.locator('[data-query="visits"] .hatched')).to_have_count(0)
    assert set(asked) == {"4"}
    shows(page, "visits", 7)


def test_pause_holds_the_page_still_and_resume_catches_up(opened: Open, served: Serve) -> None:
    clinic = served([VISITS])
    clinic.release((10, visit()))
    page = opened(f"{clinic.with_token}&window=total").page
    first = f"{clinic.latest('visits')['value']:,}"
    expect(big(page, "visits")).to_contain_text(first)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#state")).to_have_text("Paused")
    clinic.release((400, visit()))
    clinic.release((400, visit()))
    expect(page.locator("#notice")).to_contain_text("2 newer releases are waiting; nothing is lost.")
    expect(page.locator("#when .desk")).to_have_text("showing 1 Jan 01:00 UTC")
    expect(big(page, "visits")).to_contain_text(first)
    page.locator("#notice").get_by_role("button", name="Resume").click()
    expect(big(page, "visits")).to_contain_text(f"{clinic.latest('visits')['value']:,}")
    expect(page.locator("#state")).to_have_text("Live")
    shows(page, "visits", 3)
