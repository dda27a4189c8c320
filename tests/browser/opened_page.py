"""A page with everything that went wrong in it, and every address that it asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from playwright.sync_api import Page


@dataclass
class Opened:
    page: Page
    complaints: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)


Open = Callable[..., Opened]  # opened(address, width=390, color_scheme="dark", ...)


def scrolled(page: Page) -> None:
    """Goes down the page once, as a reader does: cards are drawn when they come near."""
    page.evaluate(
        """async () => {
          for (let y = 0; y < document.documentElement.scrollHeight; y += 700) {
            scrollTo(0, y);
            await new Promise((resolve) => setTimeout(resolve, 60));
          }
          scrollTo(0, 0);
        }"""
    )
