"""Our own symbols: one for each of AWS's icons, drawn by something that we did not write."""

from __future__ import annotations

import base64
from xml.etree import ElementTree

import pytest
import resvg_py

from ultracluster.plan.picture_icons import ICONS
from ultracluster.plan.picture_symbols import SYMBOLS, symbol


def test_there_is_one_for_each_icon() -> None:
    assert SYMBOLS.keys() == ICONS.keys()
    assert len({symbol(name) for name in SYMBOLS}) == len(SYMBOLS)


@pytest.mark.parametrize("name", SYMBOLS)
def test_it_is_a_drawing_of_its_own(name: str) -> None:
    kind, _, data = symbol(name).partition(",")
    svg = base64.b64decode(data).decode()
    root = ElementTree.XML(svg)

    assert kind == "data:image/svg+xml;base64"
    tile = svg.replace(SYMBOLS[name][1], "")
    assert resvg_py.svg_to_bytes(svg_string=svg) != resvg_py.svg_to_bytes(svg_string=tile)
    assert (root.get("width"), root.get("height")) == ("44", "44")
