"""A page of SVG that knows where each of its texts is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from xml.etree import ElementTree

from ultracluster.config.plain_text import visible
from ultracluster.plan.picture_icons import icon

FONT = "Arial, Helvetica, 'DejaVu Sans', sans-serif"
INK = "#1b2430"
DIM = "#56616e"

_CLASS = "ultracluster"
_DARK: dict[str, dict[str, str]] = {
    "fill": {
        "#ffffff": "#161e26", INK: "#e7edf3", DIM: "#a3b1be",
        "#f1fafa": "#10242a", "#fffaf4": "#261e17", "#f6f9ee": "#1a2114",
        "#00807f": "#4cc9c6", "#7a3ee0": "#bd9df7", "#106fa6": "#6cbcf0", "#b04f00": "#f0a060",
        "#567309": "#b3d35c",
    },
    "stroke": {
        DIM: "#8594a2", "#c9d1da": "#35424f",
        "#00807f": "#2f9c99", "#7a3ee0": "#8f65dc", "#106fa6": "#3f8dc0", "#b04f00": "#c27638",
        "#567309": "#86a335",
    },
}  # fmt: skip
"""What colours of a picture become for a reader who has asked for dark pages; symbols keep theirs."""

# Advance widths in em of DejaVu Sans, the widest of those fonts, rounded up.
_NARROW, _SLIM, _WIDE = frozenset("iljI.,:;|!'"), frozenset('ft()[]/ -r"\\'), frozenset("mwMW@%")


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels; y grows downwards."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    def overlaps(self, other: Box) -> bool:
        """Whether the two share more than an edge."""
        return (
            self.x < other.right and other.x < self.right and self.y < other.bottom and other.y < self.bottom
        )

    def holds(self, other: Box) -> bool:
        """Whether the other lies within."""
        return (
            self.x <= other.x
            and self.y <= other.y
            and other.right <= self.right
            and other.bottom <= self.bottom
        )


@dataclass(frozen=True, slots=True)
class Label:
    """A text and the most room that it takes."""

    text: str
    box: Box


class Canvas:
    """Shapes and texts in the order in which they are drawn."""

    def __init__(self, width: int, *, icons: Callable[[str], str] = icon) -> None:
        """An empty page.

        Args:
            width: in pixels.
            icons: a symbol by its name, as a `data:` URI or an element of SVG.
        """
        self.width = width
        self.labels: list[Label] = []
        """Every text of the page."""
        self.shapes: list[Box] = []
        """Every card of the page."""
        self._icons = icons
        self._used: list[str] = []
        self._body = ElementTree.Element("g")

    def text(
        self, x: float, y: float, text: str, *, size: int = 13, bold: bool = False, color: str = INK
    ) -> None:
        """A line of text that begins at x and stands on y."""
        text = visible(text)
        element = ElementTree.SubElement(
            self._body,
            "text",
            {"x": _n(x), "y": _n(y), "font-size": str(size), "fill": color}
            | ({"font-weight": "bold"} if bold else {}),
        )
        element.text = text
        self.labels.append(Label(text, Box(x, y - size, text_width(text, size, bold), size * 1.25)))

    def frame(self, box: Box, title: str, color: str, *, fill: str = "none", dashed: bool = False) -> None:
        """A border with its title in the upper left corner."""
        self._rectangle(box, stroke=color, fill=fill, dashed=dashed)
        self.text(box.x + 12, box.y + 20, title, size=13, bold=True, color=color)

    def card(self, box: Box, symbol: str, lines: list[str], *, color: str = "#c9d1da") -> None:
        """A white box with an icon and lines of text, the first in bold."""
        self._rectangle(box, stroke=color, fill="#ffffff", dashed=False)
        self.shapes.append(box)
        self.picture(box.x + 10, box.y + 10, symbol)
        for number, line in enumerate(lines):
            self.text(
                box.x + ICON + 20,
                box.y + 23 + LINE * number,
                line,
                size=14 if number == 0 else 12,
                bold=number == 0,
                color=INK if number == 0 else DIM,
            )

    def picture(self, x: float, y: float, symbol: str) -> None:
        """An icon with its upper left corner at x and y."""
        if symbol not in self._used:
            self._used.append(symbol)
        ElementTree.SubElement(self._body, "use", {"href": f"#{symbol}", "x": _n(x), "y": _n(y)})

    def line(self, points: list[tuple[float, float]], color: str, *, ends: str = "") -> None:
        """A line through points; `ends` is `end` or `both` for arrow heads."""
        attributes = {
            "points": " ".join(f"{_n(x)},{_n(y)}" for x, y in points),
            "fill": "none",
            "stroke": color,
            "stroke-width": "2",
        }
        if ends:
            attributes["marker-end"] = "url(#arrow)"
        if ends == "both":
            attributes["marker-start"] = "url(#arrow)"
        ElementTree.SubElement(self._body, "polyline", attributes)

    def square(self, box: Box, color: str, *, filled: bool) -> None:
        """A small box."""
        self._rectangle(box, stroke=color, fill=color if filled else "#ffffff", dashed=False, radius=2)

    def put_below(self, other: Canvas) -> None:
        """Draw everything of another page before what is here."""
        self._body.insert(0, other._body)
        self.labels = other.labels + self.labels

    def svg(self, height: float, title: str) -> str:
        """The page as SVG; the same for the same calls."""
        size = {"width": str(self.width), "height": _n(height), "viewBox": f"0 0 {self.width} {_n(height)}"}
        names = {"xmlns": "http://www.w3.org/2000/svg", "font-family": FONT, "role": "img"}
        root = ElementTree.Element("svg", names | {"class": _CLASS} | size)
        ElementTree.SubElement(root, "title").text = visible(title)
        ElementTree.SubElement(root, "style").text = _style()
        definitions = ElementTree.SubElement(root, "defs")
        for name in self._used:
            definitions.append(_definition(name, self._icons(name)))
        arrow = ElementTree.SubElement(
            definitions,
            "marker",
            {
                "id": "arrow",
                "viewBox": "0 0 10 10",
                "refX": "9",
                "refY": "5",
                "markerWidth": "6",
                "markerHeight": "6",
                "orient": "auto-start-reverse",
            },
        )
        ElementTree.SubElement(arrow, "path", {"d": "M0,0 L10,5 L0,10 z", "fill": DIM})
        ElementTree.SubElement(
            root, "rect", {"width": str(self.width), "height": _n(height), "fill": "#ffffff"}
        )
        root.append(self._body)
        ElementTree.indent(root)
        return ElementTree.tostring(root, encoding="unicode") + "\n"

    def _rectangle(self, box: Box, *, stroke: str, fill: str, dashed: bool, radius: int = 4) -> None:
        attributes = {
            "x": _n(box.x),
            "y": _n(box.y),
            "width": _n(box.width),
            "height": _n(box.height),
            "rx": str(radius),
            "fill": fill,
            "stroke": stroke,
            "stroke-width": "1.5",
        }
        if dashed:
            attributes["stroke-dasharray"] = "7 4"
        ElementTree.SubElement(self._body, "rect", attributes)


ICON = 44
"""Width and height of an icon in pixels."""
LINE = 18
"""Height of a line of a card in pixels."""


def _style() -> str:
    """The dark colours: of this drawing alone, also within a page, and never on paper."""
    rules = "".join(
        f'.{_CLASS} [{attribute}="{light}"]{{{attribute}:{dark}}}'
        for attribute, colors in _DARK.items()
        for light, dark in colors.items()
    )
    return f"@media screen and (prefers-color-scheme:dark){{{rules}}}"


def _definition(name: str, drawn: str) -> ElementTree.Element:
    """A symbol that the page uses by its name."""
    if drawn.startswith("<"):
        element = ElementTree.fromstring(drawn)  # noqa: S314  # our own
        element.set("id", name)
        return element
    return ElementTree.Element("image", {"id": name, "width": str(ICON), "height": str(ICON), "href": drawn})


def card_height(lines: list[str]) -> float:
    """Height of a card with so many lines."""
    return max(ICON + 20, 14 + LINE * len(lines) + 4)


def text_width(text: str, size: int, bold: bool = False) -> float:
    """The most pixels that a text takes in any of the fonts."""
    return sum(map(_em, text)) * size * (1.12 if bold else 1)


def wrap(text: str, width: float, size: int = 12) -> list[str]:
    """A text in lines that fit, broken at spaces; a word that fits nowhere loses its middle."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(shorten(word, width, size))
    return lines


def shorten(text: str, width: float, size: int, *, bold: bool = False) -> str:
    """A text that fits, its middle left out where it would not."""
    if text_width(text, size, bold) <= width:
        return text
    keep = len(text)
    while keep > 4 and text_width(f"{text[: keep - keep // 2]}…{text[-(keep // 2) :]}", size, bold) > width:
        keep -= 1
    return f"{text[: keep - keep // 2]}…{text[-(keep // 2) :]}"


def _em(character: str) -> float:
    if character in _NARROW:
        return 0.34
    if character in _SLIM:
        return 0.42
    if character in _WIDE:
        return 1.0
    return 0.72 if character.isupper() or not character.isascii() else 0.645


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
