"""One style: the colours are those of the page, lines can be read, and every picture of the product uses them."""

from __future__ import annotations

import re
import sys
from itertools import combinations

import pytest

from evertally.errors import ConfigurationError
from evertally.pictures import LINES, empty_figure, in_style, look, styled
from evertally.pictures.style import BAND, COLOURS
from printed import ROOT

CSS = (ROOT / "src/evertally/service/dashboard/colours.css").read_text()


def tokens() -> dict[str, str]:
    """Those of the light page."""
    light = re.search(r":root \{(.*?)\}", CSS, flags=re.S)
    assert light
    return dict(re.findall(r"--([\w-]+): ([^;]+);", light[1]))


def test_the_colours_are_those_of_the_page() -> None:
    page = tokens()
    assert {name: page.get(name) for name in COLOURS} == COLOURS
    assert float(page["band"]) == BAND


def brightness(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colour", [*LINES, COLOURS["quiet"], COLOURS["ink"]])
def test_lines_and_words_can_be_read(colour: str) -> None:
    assert 1.05 / (brightness(colour) + 0.05) >= 4.5


def test_eighteen_looks() -> None:
    looks = [tuple(look(place).values()) for place in range(18)]
    assert all(one != other for one, other in combinations(looks, 2))
    assert look(18) == look(0)


def test_no_picture_has_a_style_of_its_own() -> None:
    """Whoever draws does so through the room of pictures: no colours, no figures from elsewhere."""
    sources = [*ROOT.glob("src/**/*.py"), *ROOT.glob("examples/*.py")]
    drawing = [path for path in sources if "matplotlib" in path.read_text() and "pictures" not in path.parts]
    assert [path.name for path in drawing if re.search(r"import .*matplotlib|from matplotlib", path.read_text())] == []
    colours = r"""color\w*=["'](?:#|C\d|tab:|black|grey|gray|red|blue|green)"""
    assert [path.name for path in sources if re.search(colours, path.read_text())] == []


def test_a_style_is_over_when_the_picture_is() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)

    @in_style
    def draw() -> str:
        figure = empty_figure(4, 3)
        axes = figure.subplots()
        (line,) = axes.plot([1, 2])
        assert not axes.spines["top"].get_visible()
        return str(line.get_color())

    assert draw() == LINES[0]
    assert dict(matplotlib.rcParams) == before


def test_without_matplotlib_there_is_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for make in (styled, lambda: empty_figure(4, 3)):
        with pytest.raises(ConfigurationError, match=r"pip install 'evertally\[plot\]'"):
            make()
