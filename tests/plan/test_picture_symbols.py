"""Our own symbols: one for each of AWS's icons, drawn by something that we did not write."""

from __future__ import annotations

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
    page = '<svg xmlns="http://www.w3.org/2000/svg" width="44" height="44">{}</svg>'
    tile = symbol(name).replace(SYMBOLS[name][1], "")

    assert ElementTree.XML(symbol(name)).tag == "g"
    drawn, empty = (resvg_py.svg_to_bytes(svg_string=page.format(one)) for one in (symbol(name), tile))
    assert drawn != empty
