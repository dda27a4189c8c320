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
