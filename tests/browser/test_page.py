"""The page as it stands: nothing refused, nothing from elsewhere, readable on every screen and by keyboard."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from clinic_service import ALL_KINDS, PEOPLE, Clinic
from opened_page import Open, scrolled
from playwright.sync_api import Page, expect

_TOGETHER = {"lower-quartile"}  # has no card of its own: it is in that of another query


def loaded(page: Page) -> None:
    """The first numbers are there."""
    expect(page.locator("#state")).to_have_text(re.compile("Live|Ended"))
    expect(page.locator(".tile .big b").first).to_have_text(re.compile(r"\d"))


def outside(page: Page, width: int) -> list[str]:
    """What sticks out of the screen, but for what scrolls inside of its own box."""
    found: list[str] = page.evaluate(
        """(width) => [...document.querySelectorAll("header *, main *, footer *")].filter((node) => {
             const { left, right } = node.getBoundingClientRect();
             const boxes = ".scroll, .controls, .unseen, .skip, svg, bdi, .brush, .labels, .vertices, .found";
             const inside = node.closest(boxes);
             return !inside && right > left && (right > width + 1 || left < -1);
           }).map((node) => node.outerHTML.slice(0, 120))""",
        width,
    )
    return found


def test_page_loads_without_a_complaint_and_asks_nobody_else(opened: Open, gallery: Clinic) -> None:
    seen = opened(gallery.with_token)
    page = seen.page
    loaded(page)
    scrolled(page)
    queries = {query["name"] for query in ALL_KINDS} - _TOGETHER
    for name in queries:
        card = page.locator(f'[data-query="{name}"]')
        expect(card.locator(".content")).to_be_visible()
        expect(card.locator(".content").locator("svg, table, li, .row").first).to_be_attached()
    expect(page.locator("#cards > .card")).to_have_count(len(queries))
    assert seen.complaints == []
    assert page.evaluate("window.violations") == []
    assert all(address.startswith(gallery.address) for address in seen.addresses)
    assert page.title() == "clinic-visits · evertally"


def test_fifty_statistics_are_asked_for_as_the_reader_comes_to_them(opened: Open, gallery: Clinic) -> None:
    seen = opened(gallery.with_token)
    loaded(seen.page)
    last = ALL_KINDS[-1]["name"]
    assert not any(f"query={last}&" in address for address in seen.addresses)
    seen.page.locator(f'[data-query="{last}"]').scroll_into_view_if_needed()
    expect(seen.page.locator(f'[data-query="{last}"] .content')).to_be_visible()
    expect(seen.page.locator(".tile:visible")).to_have_count(4)
    seen.page.get_by_role("button", name="All numbers").click()
    assert seen.page.locator(".tile:visible").count() > 4
    assert "all=1" in seen.page.url


def test_values_are_the_released_ones(opened: Open, gallery: Clinic) -> None:
    page = opened(f"{gallery.with_token}&window=total").page
    visits = gallery.latest("visits")
    tile = page.locator('[data-tile="visits"] .big')
    expect(tile).to_contain_text(f"{visits['value']:,}")
    expect(tile).to_contain_text(f"±\N{NO-BREAK SPACE}{visits['upper'] - visits['value']:,}")
    window = gallery.get("/v1/windows?query=visits&window=24").json()
    page.get_by_role("group", name="Window").get_by_role("button", name="Day", exact=True).click()
    expect(tile).to_contain_text(f"{window['value'][0][-1]:,}")
    expect(page.get_by_role("button", name="Day", exact=True)).to_have_attribute("aria-pressed", "true")


def test_the_promise_is_one_line_that_opens(opened: Open, days: Clinic) -> None:
    page = opened(days.address).page
    stream = days.get("/v1/stream").json()
    strip = page.get_by_role("button", name=re.compile("One visit stays hidden"))
    expect(strip).to_contain_text(f"in at most {stream['guesses']} of 100 cases")
    expect(strip).to_have_attribute("aria-expanded", "false")
    strip.click()
    panel = page.locator("#promised")
    for words in ("What stays hidden", f"{stream['guesses']} of 100", "60 of 400 releases are out", "By ward"):
        expect(panel).to_contain_text(words)
    expect(panel.locator("#guarantee")).to_be_hidden()
    panel.get_by_text("For specialists").click()
    expect(panel.locator("#plain")).to_have_text(stream["plain_words"])
    expect(panel.locator(".price")).to_contain_text("ε = 2")
    expect(panel.locator(".price sup")).to_have_text("\N{MINUS SIGN}6")
    with page.expect_download() as waiting:
        panel.get_by_role("link", name="Certificate").click()
    assert Path(waiting.value.path()).read_bytes() == days.get("/v1/certificate").content
    panel.locator("details").evaluate("(node) => node.open = false")
    words = page.locator("body").inner_text().lower()
    assert not re.search(r"\b(tick|query|sigma|rho|dp|mechanism)\b", words)


def test_a_weak_promise_is_called_one(opened: Open, gallery: Clinic) -> None:
    page = opened(gallery.with_token).page
    expect(page.locator(".strip")).to_contain_text("Here the promise says little.")
    expect(page.locator(".strip")).not_to_contain_text("stays hidden")


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (390, "light"), (800, "light"), (1400, "dark")])
def test_every_screen(opened: Open, days: Clinic, tmp_path: Path, width: int, scheme: str) -> None:
    """Pictures are kept where EVERTALLY_SCREENSHOTS says."""
    folder = Path(os.environ.get("EVERTALLY_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    page = opened(days.address, width=width, color_scheme=scheme).page
    loaded(page)
    expect(page.locator("html")).to_have_attribute("data-theme", scheme)
    first = page.locator(".tile .big").first.bounding_box()
    assert first is not None
    assert first["y"] < 260  # numbers first
    scrolled(page)
    for name in ("board", "detail"):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert outside(page, width) == []
        page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)
        if name == "board":
            page.locator('[data-query="by-ward"]').get_by_role("button", name="Open By ward").click()
            expect(page.locator(".course .plot svg")).to_be_visible()
    if width < 600:
        small = page.evaluate(
            """[...document.querySelectorAll("button, .crumb a, .downloads a")].filter((node) => {
                 const { width, height } = node.getBoundingClientRect();
                 return width > 0 && Math.max(width, height) > 1 && height < 36;
               }).map((node) => node.outerHTML.slice(0, 100))"""
        )
        assert [node for node in small if "Show all" not in node] == []


def test_theme_is_that_of_the_device_until_the_reader_chooses(opened: Open, days: Clinic) -> None:
    page = opened(days.address, color_scheme="dark").page
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("button", name="As the device")).to_have_attribute("aria-pressed", "true")
    page.emulate_media(color_scheme="light")
    expect(root).to_have_attribute("data-theme", "light")
    page.get_by_role("button", name="Dark", exact=True).click()
    expect(root).to_have_attribute("data-theme", "dark")
    assert "theme=dark" in page.url
    page.goto(days.address)
    expect(root).to_have_attribute("data-theme", "dark")
    page.goto(f"{days.address}#theme=light")
    page.reload()
    expect(root).to_have_attribute("data-theme", "light")


def test_words_have_enough_contrast(opened: Open, days: Clinic) -> None:
    for scheme in ("light", "dark"):
        page = opened(f"{days.address}#promise=1", color_scheme=scheme).page
        loaded(page)
        weak = page.evaluate(
            """() => {
              const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
              const light = (colour, below) => {
                pen.fillStyle = below; pen.fillRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
                const [r, g, b] = [...pen.getImageData(0, 0, 1, 1).data].map((part) => part / 255)
                  .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
              };
              const ground = (node) => {
                for (let at = node; at; at = at.parentElement) {
                  const colour = getComputedStyle(at).backgroundColor;
                  if (!/, 0\\)$|transparent/.test(colour)) return colour;
                }
                return "white";
              };
              const own = (node) => [...node.childNodes].some((one) => one.nodeType === 3 && one.textContent.trim());
              return [...document.querySelectorAll("header *, main *, footer *")]
                .filter((node) => own(node) && !node.disabled && node.getBoundingClientRect().width > 1)
                .flatMap((node) => {
                const style = getComputedStyle(node);
                const below = ground(node);
                const [a, b] = [light(node.closest("svg") ? style.fill : style.color, below), light(below, below)];
                const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
                return ratio < 4.5 ? [`${ratio.toFixed(2)} ${node.outerHTML.slice(0, 80)}`] : [];
              });
            }"""
        )
        assert weak == []


def test_landmarks_names_and_the_first_stop_of_the_keyboard(opened: Open, days: Clinic) -> None:
    page = opened(f"{days.address}#promise=1").page
    loaded(page)
    for role in ("banner", "main", "contentinfo"):
        expect(page.get_by_role(role)).to_have_count(1)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the statistics"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "statistics"
    nameless = page.evaluate(
        """[...document.querySelectorAll("button, a, input, [role=img], [role=slider]")].filter((node) =>
             !(node.getAttribute("aria-label") || node.labels?.length || node.textContent.trim()))
             .map((node) => node.outerHTML)"""
    )
    assert nameless == []
    ringed = page.evaluate(
        """() => { const button = document.querySelector(".seg button"); button.focus({ focusVisible: true });
             return getComputedStyle(button).outlineWidth; }"""
    )
    assert ringed == "2px"


def test_other_colours_and_twice_the_size(opened: Open, days: Clinic) -> None:
    seen = opened(days.address, width=700, forced_colors="active", reduced_motion="reduce")
    page = seen.page
    loaded(page)
    page.evaluate("document.documentElement.style.zoom = 2")
    expect(page.locator(".tile .big").first).to_be_visible()
    assert page.evaluate("document.getAnimations().length") == 0
    pressed = page.locator('.seg button[aria-pressed="true"]').first
    assert pressed.evaluate("(node) => getComputedStyle(node).outlineStyle") == "solid"
    assert seen.complaints == []


def test_all_kinds_are_on_some_page() -> None:
    from evertally.kinds import OURS, find

    assert {find(query["kind"]) for query in [*ALL_KINDS, *PEOPLE]} == set(OURS)
