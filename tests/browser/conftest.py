"""A browser, and pages that notice whatever the browser complains about."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from clinic_service import Clinic
    from opened_page import Open, Opened
    from playwright.sync_api import Browser

DRUNK = ["tea", "<img src=x>"]
_HERE = Path(__file__).resolve().parent
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Refused styles and scripts are events of the document. Rows that move are animated by Element.animate: it is counted.
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
});
window.animated = 0;
const animate = Element.prototype.animate;
Element.prototype.animate = function (...given) { window.animated += 1; return animate.apply(this, given); };
"""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """These tests need a browser. They run when they are asked for by their place, and fail where there is none."""
    asked = (config.invocation_params.dir / argument.split("::")[0] for argument in config.args)
    return None if any(place.resolve().is_relative_to(_HERE) for place in asked) else True


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=20_000)  # a machine that does other things as well is no reason to fail
    executable = os.environ.get("EVERTALLY_CHROMIUM", "/usr/bin/chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=_FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Open]:
    """Opens pages, each in a context of its own."""
    from opened_page import Opened

    contexts = []

    def open_page(address: str, width: int = 1280, height: int = 900, **options: Any) -> Opened:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(15_000)
        context.add_init_script(_WATCH)
        contexts.append(context)
        page = context.new_page()
        made = Opened(page)
        page.on("console", lambda message: made.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: made.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (made.complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: made.addresses.append(request.url))
        page.goto(address)
        return made

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A stream with a query of every kind, forty ticks old. Tests may release more ticks."""
    from clinic_service import ALL_KINDS, WARDS, Clinic, visit

    clinic = Clinic(tmp_path_factory.mktemp("gallery"), ALL_KINDS)
    for tick in range(40):
        leading, copies = ("south", 20) if tick < 25 else ("west", 100)
        come = tick % 8 < 5
        others = [(5 + tick % 7, visit(ward, "coffee", room=room, comes=come)) for room, ward in enumerate(WARDS)]
        clinic.release((copies, visit(leading, "tea", room=tick, minutes=20 + tick)), *others)
    yield clinic
    clinic.stop()


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """Statistics of users, three weeks and a day old. 200 came in the first week, 100 in the second, none after."""
    from clinic_service import DAILY, PEOPLE, WARDS, Clinic

    stream = 'unit = "user"\nuser_column = "who"'
    clinic = Clinic(tmp_path_factory.mktemp("people"), PEOPLE, horizon=64, clock=DAILY, stream=stream)
    for day in range(22):
        # Each week fewer of them come, and only on some of its days.
        here = range(60 * (day // 7), 200 if day < 7 else 300, 1 + day % 7)
        clinic.release(
            *((1, {"who": n, "ward": WARDS[n % 4] if day % 2 == 0 else "north", "drink": DRUNK[n % 2]}) for n in here)
        )
    yield clinic
    clinic.stop()


@pytest.fixture(scope="session")
def days(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """Sixty days of visits with words for readers: west has twice as many as north, room 7 most. Nothing is added."""
    from clinic_service import DAILY, IN_WORDS, WORDED, Clinic, visit

    clinic = Clinic(
        tmp_path_factory.mktemp("days"), WORDED, horizon=400, clock=DAILY, stream=IN_WORDS, epsilon=2.0, public=True
    )
    for day in range(60):
        clinic.release((60, visit("north", room=7)), (120, visit("west", "coffee", room=day)), (30, visit("south")))
    yield clinic
    clinic.stop()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., Clinic]]:
    """Starts streams of a test's own: served(queries, horizon=3)."""
    from clinic_service import Clinic

    started = []

    def start(*arguments: Any, **options: Any) -> Clinic:
        started.append(Clinic(tmp_path, *arguments, **options))
        return started[-1]

    yield start
    for clinic in started:
        clinic.stop()
