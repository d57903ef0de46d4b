"""A blast radius as a drawing: a dot for each resource on the ring of its verdict, the worst inside."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final
from xml.etree import ElementTree

from ultracluster.change.changes import Verdict
from ultracluster.config.plain_text import visible

SIZE: Final = 320
_MIDDLE = SIZE / 2
_INNER, _SPAN = 16.0, 133.0
_DOT = 5.5
_COLORS: Final = {
    Verdict.NO_OP: "#8a97a3",
    Verdict.IN_PLACE: "#2f9c5c",
    Verdict.ROLLING: "#d9a01e",
    Verdict.SCALE_TO_ZERO: "#d9861e",
    Verdict.AT_RISK: "#d96a1e",
    Verdict.NOT_KNOWN: "#8a5fbf",
    Verdict.REPLACED: "#e0603a",
    Verdict.REFUSED: "#a04fb8",
    Verdict.DATA_AT_RISK: "#d9304f",
    Verdict.DATA_LOSS: "#c0102f",
}


def rings(resources: Mapping[str, Verdict], title: str) -> str:
    """The drawing as SVG; what a ring has no room for is left to the counts beside it.

    Args:
        resources: the worst verdict of each.
    """
    root = ElementTree.Element(
        "svg", {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {SIZE} {SIZE}", "role": "img"}
    )
    ElementTree.SubElement(root, "title").text = visible(f"blast radius of {title}")
    for verdict in Verdict:
        ElementTree.SubElement(root, "circle", _circle(_MIDDLE, _MIDDLE, radius(verdict)) | {"class": "ring"})
    for verdict in Verdict:
        names = [name for name, resource in resources.items() if resource is verdict]
        for name, (x, y) in zip(names, places(verdict, len(names)), strict=False):
            dot = ElementTree.SubElement(
                root, "circle", _circle(x, y, _DOT) | {"fill": _COLORS[verdict], "class": "dot"}
            )
            ElementTree.SubElement(dot, "title").text = visible(f"{name}: {verdict}")
    return ElementTree.tostring(root, encoding="unicode")


def radius(verdict: Verdict) -> float:
    """Of its ring: the worse, the smaller."""
    return _INNER + _SPAN * (1 - verdict.rank / (len(Verdict) - 1))


def places(verdict: Verdict, count: int) -> list[tuple[float, float]]:
    """Where dots stand on a ring, evenly; as many as do not touch."""
    ring = radius(verdict)
    shown = min(count, int(2 * math.pi * ring / (2 * _DOT + 2)))
    if shown == 1 and verdict is Verdict.DATA_LOSS:
        return [(_MIDDLE, _MIDDLE)]
    turns = [2 * math.pi * (number / shown + 0.07 * verdict.rank) for number in range(shown)]
    return [(_MIDDLE + ring * math.sin(turn), _MIDDLE - ring * math.cos(turn)) for turn in turns]


def _circle(x: float, y: float, size: float) -> dict[str, str]:
    return {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": f"{size:.1f}"}
