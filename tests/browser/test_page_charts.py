"""Charts by themselves: what they draw of numbers whose errors are known, and what a reader can do with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from clinic_service import VISITS, Clinic
from opened_page import Open
from playwright.sync_api import Locator, Page, expect

# A chart in a box of its own, over the page that asks for a token. Values of days from 1 Dec 2013 on.
_DRAW = """async ({lines, width, options}) => {
  const { lineChart } = await import("/static/charts/line.js");
  const { lookAt } = await import("/static/charts/look.js");
  const { setYear } = await import("/static/format.js");
  setYear("2013-12-01T00:00:00Z");
  document.getElementById("box")?.remove();
  const box = document.createElement("div");
  box.id = "box";
  box.style.width = `${width}px`;
  document.body.prepend(box);
  const day = 86400, first = Date.UTC(2013, 11, 1) / 1000;
  const time = (x) => new Date(x * 1000).toISOString();
  const point = (value, i, radius) => ({
    x: first + (i + 1) * day, start: time(first + i * day), end: time(first + (i + 1) * day), total: false,
    value, lower: value === null ? null : value - radius, upper: value === null ? null : value + radius,
  });
  const series = lines.map(({ name, values, radius, soft }, i) => ({
    label: name, name, soft, look: lookAt(i), sub: `± ${radius}`,
    points: values.map((value, place) => point(value, place, radius)),
  }));
  window.heard = [];
  const zoom = (from, to) => window.heard.push([from, to]);
  const chart = lineChart(box, { zoom, back: () => window.heard.push("back") });
  chart.draw({ series, ends: true, say: "Drawn", caption: "Numbers", ...options });
  window.chart = chart;
}"""

TO = "{}\N{EN DASH}{}"


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """Any service: what is drawn here are numbers of the tests."""
    made = Clinic(tmp_path_factory.mktemp("charts"), [VISITS])
    yield made
    made.stop()


@pytest.fixture
def page(opened: Open, clinic: Clinic) -> Page:
    return opened(clinic.address, width=1280).page


def drawn(page: Page, lines: list[dict[str, Any]], width: int = 700, **options: Any) -> Locator:
    page.evaluate(_DRAW, {"lines": lines, "width": width, "options": options})
    expect(page.locator("#box .plot > svg")).to_be_visible()
    return page.locator("#box")


def asked(page: Page, module: str, expression: str) -> Any:
    """What a module's functions say: `m` is the module."""
    return page.evaluate(f"async () => {{ const m = await import('/static/{module}.js'); return {expression}; }}")


def line(name: str, *values: float | None, radius: float = 5, soft: bool = False) -> dict[str, Any]:
    return {"name": name, "values": list(values), "radius": radius, "soft": soft}


def test_lines_that_cannot_be_told_apart_get_lanes(page: Page) -> None:
    box = drawn(page, [line("a", 100, 102, 101), line("b", 103, 101, 104)])
    heights = box.locator("path.line").evaluate_all("(lines) => lines.map((one) => one.getBoundingClientRect().bottom)")
    assert heights[1] - heights[0] > 50
    texts = box.locator(".axes text[text-anchor=end]").all_text_contents()
    assert len(texts) > len(set(texts))  # one scale, written beside every lane
    box = drawn(page, [line("a", 100, 102, 101), line("b", 203, 201, 204)])
    texts = box.locator(".axes text[text-anchor=end]").all_text_contents()
    assert len(texts) == len(set(texts))


def test_an_axis_that_starts_above_zero_says_so_and_nothing_negative_is_cut(page: Page) -> None:
    box = drawn(page, [line("a", 1000, 1010, 1005)])
    expect(box.locator(".zigzag")).to_have_count(1)
    box = drawn(page, [line("a", 20, 2, -3)])
    expect(box.locator(".zigzag")).to_have_count(0)
    inside = """(band) => {
      const { y, height } = band.getBBox();
      return y >= 0 && y + height <= band.ownerSVGElement.clientHeight - 20;
    }"""
    assert box.locator("path.band").evaluate(inside)
    expect(box.locator(".axes .zero")).to_have_count(1)


def test_what_is_not_known_is_a_gap_and_no_news_is_hatched(page: Page) -> None:
    end = 1385856000 + 8 * 86400
    hatch = [{"from": end - 2 * 86400, "to": end, "words": "no news"}]
    box = drawn(page, [line("a", 10, 11, None, 12, 13, 14)], extent={"from": 0, "to": end}, hatch=hatch)
    expect(box.locator(".plot path.line")).to_have_count(2)
    expect(box.locator(".hatched text")).to_have_text("no news")
    drawn_fill = box.locator(".hatched rect").get_attribute("fill") or ""
    assert drawn_fill.startswith("url(#hatch")


def test_names_stand_at_the_ends_of_wide_charts_and_above_narrow_ones(page: Page) -> None:
    lines = [line("first", 100, 102, 101), line("second", 203, 201, 204)]
    box = drawn(page, lines, width=380)
    expect(box.locator(".ends .name")).to_have_text(["second", "first"])  # from above
    expect(box.locator(".legend")).to_be_hidden()
    box = drawn(page, lines, width=379)
    expect(box.locator(".ends")).to_have_count(0)
    expect(box.locator(".legend bdi")).to_have_text(["first", "second"])
    cut = """(texts) => texts.filter((one) => {
      const [box, all] = [one, one.ownerSVGElement].map((node) => node.getBoundingClientRect());
      return box.left < all.left - 1 || box.right > all.right + 1;
    }).length"""
    for width in (220, 379, 700, 1200):
        box = drawn(page, lines, width=width)
        assert box.locator(".plot text").evaluate_all(cut) == 0


def test_arrow_keys_read_a_chart_aloud_and_escape_goes_back(page: Page) -> None:
    box = drawn(page, [line("a", 100, 102, 101), line("b", 203, None, 204)], unit="min")
    plot = box.locator(".plot")
    expect(plot).to_have_attribute("role", "img")
    expect(plot).to_have_attribute("aria-label", "Drawn")
    plot.focus()
    page.keyboard.press("End")
    expect(box.locator(".tip")).to_contain_text("3 Dec")
    expect(box.get_by_role("status")).to_have_text("3 Dec: a 101 plus or minus 5 min; b 204 plus or minus 5 min")
    page.keyboard.press("ArrowLeft")
    expect(box.get_by_role("status")).to_have_text("2 Dec: a 102 plus or minus 5 min")
    page.keyboard.press("Escape")
    expect(box.locator(".tip")).to_be_hidden()
    assert page.evaluate("window.heard") == []
    page.keyboard.press("Escape")
    assert page.evaluate("window.heard") == ["back"]


def test_a_drag_looks_closer_and_a_double_click_goes_back(page: Page) -> None:
    box = drawn(page, [line("a", *range(10, 30))])
    place = box.locator(".plot").bounding_box()
    assert place is not None
    page.mouse.move(place["x"] + 200, place["y"] + 80)
    expect(box.locator(".tip")).to_be_visible()
    page.mouse.down()
    page.mouse.move(place["x"] + 400, place["y"] + 90, steps=3)
    expect(box.locator(".chosen")).to_be_visible()
    page.mouse.up()
    ((start, end),) = page.evaluate("window.heard")
    first, last = 1385856000 + 86400, 1385856000 + 20 * 86400
    assert first < start < end < last
    page.mouse.dblclick(place["x"] + 300, place["y"] + 80)
    assert page.evaluate("window.heard.at(-1)") == "back"


def test_a_touch_shows_a_moment(opened: Open, clinic: Clinic) -> None:
    page = opened(clinic.address, width=390, has_touch=True, is_mobile=True).page
    box = drawn(page, [line("a", 10, 20, 30)], width=340)
    place = box.locator(".plot").bounding_box()
    assert place is not None
    page.touchscreen.tap(place["x"] + place["width"] - 12, place["y"] + 60)
    expect(box.locator(".tip")).to_contain_text("30\u00a0±\u00a05")


def test_the_same_numbers_as_a_table(page: Page) -> None:
    drawn(page, [line("day", *range(10, 20), radius=9, soft=True), line("week", None, 15.25, radius=1.5)])
    page.evaluate("document.getElementById('box').append(window.chart.table())")
    tables = page.locator("#box table")
    expect(tables).to_have_count(2)
    expect(tables.nth(0).locator("caption")).to_have_text("Numbers, week")
    expect(tables.nth(0).locator("tbody td")).to_have_text(["15.3 ± 1.5", "\N{EN DASH}"])
    expect(tables.nth(1).locator("tbody th[scope=row]").first).to_have_text("10 Dec")
    expect(tables.nth(1).locator("tbody tr")).to_have_count(7)
    page.locator("#box").get_by_role("button", name="Show all").click()
    expect(tables.nth(1).locator("tbody tr")).to_have_count(10)


def test_places_have_ties_and_rows_swap_only_when_that_is_clear(page: Page) -> None:
    rows = """[100, 70, 68, 64, 20].map((value, i) => ({
      label: `${i}`, value, lower: value - 3, upper: value + 3,
    }))"""
    found = asked(page, "charts/places", f"m.withPlaces({rows}).map((row) => [row.place, row.tied])")
    assert found == [
        ["1", False],
        [TO.format(2, 3), True],
        [TO.format(2, 4), True],
        [TO.format(3, 4), False],
        ["5", False],
    ]
    made = asked(
        page,
        "charts/places",
        """(() => {
          const order = new m.SteadyOrder();
          const row = (value, i) => ({label: "abc"[i], value, lower: value - 3, upper: value + 3});
          const rows = (...values) => values.map(row);
          return [rows(10, 9, 1), rows(9, 10, 1), rows(9, 15, 1), rows(9, 15, 30)]
            .map((some) => order.order(some, "7 days").map((row) => row.label).join(""));
        })()""",
    )
    assert made == ["abc", "abc", "bac", "cba"]


def test_a_look_belongs_to_the_place_in_the_list(page: Page) -> None:
    query = "{name: 'q', labels: Array.from({length: 19}, (_, i) => `l${i}`)}"
    looks = asked(page, "charts/look", f"[0, 5, 6, 12, 18].map((i) => m.look({query}, `l${{i}}`).className)")
    assert looks == ["look-0 dash-0", "look-5 dash-0", "look-0 dash-1", "look-0 dash-2", "look-0 dash-0"]
    found = asked(page, "charts/look", "['b', 'a', 'b'].map((one) => m.look({name: 'f', labels: null}, one).colour)")
    assert found == [0, 1, 0]


def test_a_number_has_the_digits_that_its_error_leaves(page: Page) -> None:
    cases = {
        (159.2, 151.1, 167.3): "159 ± 8",
        (11.83, 11.23, 12.43): "11.8 ± 0.6",
        (6246, 6176, 6316): "6,246 ± 70",
        (49.81, 47.5, 52.1): "49.8 ± 2.3",
        (-1, -9, 7): "\N{MINUS SIGN}1 ± 8",
        (-0.2, -8.2, 7.8): "0 ± 8",
        (39, 35, 46): "39 (35 to 46)",
        (1234567, 1234400, 1234734): "1,234,567 ± 167",
    }
    shown = asked(page, "format", f"{[*map(list, cases)]}.map((one) => m.told(...one))")
    assert [text.replace("\u00a0", " ") for text in shown] == [*cases.values()]


def test_numbers_of_axes_and_times(page: Page) -> None:
    axes = asked(
        page,
        "format",
        "[[1000, 500], [10000, 5000], [1.2e6, 2e5], [0, 5], [0.5, 0.5], [-2000, 1000], [27.5, 2.5], "
        "[12500, 2500], [12025, 25]]"
        ".map((one) => m.axisNumber(...one))",
    )
    assert axes == ["1,000", "10k", "1.2M", "0", "0.5", "\N{MINUS SIGN}2,000", "27.5", "12.5k", "12,025"]
    times = asked(
        page,
        "format",
        """(m.setYear("2013-12-06T05:00:00Z"), [
          m.moment("2013-12-06T05:00:00Z"), m.moment("2014-01-01T05:00:00Z"), m.moment(1030),
          m.period("2013-12-05T05:00:00Z", "2013-12-06T05:00:00Z"),
          m.period("2013-11-29T05:00:00Z", "2013-12-06T05:00:00Z"),
          m.period("2013-12-05T23:00:00Z", "2013-12-06T05:00:00Z"),
        ])""",
    )
    assert times == [
        "6 Dec 05:00 UTC",
        "1 Jan 2014 05:00 UTC",
        "time 1,030",
        "5 Dec",
        "29 Nov to 5 Dec",
        "5 Dec 23:00 to 05:00",
    ]


def test_a_change_is_news_only_if_it_exceeds_its_error(page: Page) -> None:
    said = """((clear, change, before, beforeClear) => {
      const { mark, rest } = m.changeWords({ clear, change, before, beforeClear }, m.beforeWords("7 days"));
      return `${mark} ${rest}`.replaceAll("\\u00a0", " ");
    })"""
    cases = "[false, 12, 100, true], [true, -3.7, 100, true], [true, 35, 100, true], [true, 35, 2, false]"
    assert asked(page, "cards/words", f"[{cases}].map((one) => {said}(...one))") == [
        "≈ no clear change on the 7 days before",
        "▼ 3.7 % on the 7 days before",
        "▲ 35 % on the 7 days before",
        "▲ 35 on the 7 days before",
    ]


def test_bars_are_hollow_where_zero_cannot_be_told_apart(page: Page) -> None:
    page.evaluate(
        """async () => {
          const { BarList, isClear } = await import("/static/charts/hbar.js");
          const rows = [50, 7, -1, -20].map((value, i) => ({
            label: `${i}`, name: `n${i}`, value, lower: value - 8, upper: value + 8,
          }));
          const list = new BarList({ words: "Rows" });
          list.element.id = "rows";
          document.body.prepend(list.element);
          list.draw(rows.map((row) => ({ ...row, clear: isClear(row) })));
        }"""
    )
    hollow = page.locator("#rows .hbar").evaluate_all("(bars) => bars.map((bar) => bar.classList.contains('hollow'))")
    assert hollow == [False, True, True, False]
    zeros = page.locator("#rows .zero").evaluate_all("(lines) => lines.map((one) => one.getAttribute('x1'))")
    assert len(set(zeros)) == 1
    starts = page.locator("#rows .bar").evaluate_all("(bars) => bars.map((bar) => parseFloat(bar.getAttribute('x')))")
    zero = float(zeros[0].rstrip("%"))
    assert starts[3] < zero == starts[0]  # a negative number is drawn below zero, not cut
    whiskers = page.locator("#rows .whisker line:first-child")
    ends = whiskers.evaluate_all(
        "(lines) => lines.flatMap((one) => [parseFloat(one.getAttribute('x1')), parseFloat(one.getAttribute('x2'))])"
    )
    assert 0 <= min(ends) <= max(ends) <= 100


def test_means_of_too_few_are_not_shown(page: Page) -> None:
    """Half an interval must be below 15 % of what was declared; on a scale of factors, of its length there."""
    answer = """{ labels: null, window: { ticks: 1 }, tick: [1, 2, 3], start: ["", "", ""], end: ["", "", ""],
      stddev: [null, null, null], value: [[50, 50, 50]], lower: [[34, 36, 20]], upper: [[66, 64, 70]] }"""
    shown = f"""(query) => {{
      const view = {{ series: {{ q: {answer} }} }};
      return m.numbersOf({{ name: "q", differences: true, ...query }}, view).points(null).map((one) => one.value);
    }}"""
    linear, factors = ('{ view: "figure" }', '{ view: "figure", scale: "log" }')
    queries = (
        f"[{{ card: {linear}, range: [0, 100] }}, {{ card: {factors}, edges: [1, 10, 100] }}, {{ card: {linear} }}]"
    )
    assert asked(page, "cards/numbers", f"{queries}.map({shown})") == [[None, 50, None], [50, 50, 50], [50, 50, 50]]


def test_rows_of_cards_are_full(page: Page) -> None:
    laid = """(spans) => {
      const cards = spans.map((span, i) => ({ span, name: i, element: document.createElement("div") }));
      m.layOut(cards);
      return cards.map((card) => [card.name, Number(card.element.className.replace("span-", ""))]);
    }"""
    for spans in ([8, 8, 4, 4], [4, 4, 4, 8, 4], [4], [4, 4], [8], [4, 8, 4, 4, 4, 8, 8], [4, 4, 8, 4, 4]):
        placed = page.evaluate(
            f"async (spans) => {{ const m = await import('/static/cards/cards.js'); return ({laid})(spans); }}", spans
        )
        assert sorted(name for name, _ in placed) == [*range(len(spans))]
        used = 0
        for _, width in placed:
            assert used + width <= 12
            used = (used + width) % 12
        assert used == 0


def test_a_day_stands_in_its_middle_and_a_total_at_its_end(page: Page) -> None:
    answer = """((window) => m.pointsOf({
      window, tick: [1], start: ["2013-12-05T00:00:00Z"], end: ["2013-12-06T00:00:00Z"], stddev: [1],
      value: [[3]], lower: [[1]], upper: [[5]],
    })[0].x)"""
    noon, midnight = asked(page, "charts/points", f"[{answer}({{ ticks: 1 }}), {answer}(null)]")
    assert (noon, midnight) == (1386201600 + 43200, 1386201600 + 86400)


def test_what_was_found_later_has_no_place_and_says_since_when(page: Page) -> None:
    page.evaluate(
        """async () => {
          const { makeCard } = await import("/static/cards/cards.js");
          const { setYear } = await import("/static/format.js");
          setYear("2013-12-01T00:00:00Z");
          const look = { view: "ranking", values: "numbers", names: null, places: false, words: "Found" };
          const query = { name: "top", title: "Top", column: "to", labels: null, running: true, card: look };
          const card = makeCard([query], { queries: [query], clock: { tick_seconds: 86400 }, beta: 0.05 });
          card.element.id = "top";
          document.body.prepend(card.element);
          const row = (label, value, start = null) => ({ label, value, lower: value - 4, upper: value + 4, start });
          card.draw({
            window: { ticks: 7, words: "7 days" }, range: { words: "90 days" }, latest: null,
            listed: { top: {
              since: 10, tick: 100, start: "2013-01-11T00:00:00Z", end: "2013-04-11T00:00:00Z", beta: 0.1,
              per: { ticks: 1, words: "day" },
              rows: [row("a", 47), row("b", 46), row("c", 30), row("d", 50, "2013-03-17T00:00:00Z")],
            } },
          });
        }"""
    )
    card = page.locator("#top")
    expect(card.locator(".sub")).to_have_text("per day, over the 90 days shown")
    expect(card.locator("li .name")).to_have_text(["a", "b", "c", "d"])
    expect(card.locator("li .place")).to_have_text([TO.format(1, 2), TO.format(1, 2), "3", ""])
    expect(card.locator("li .since").last).to_have_text("since 17 Mar")
    expect(card.locator(".foot")).to_contain_text("Whiskers here hold 90 times in 100.")
