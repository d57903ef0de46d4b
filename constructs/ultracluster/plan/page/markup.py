"""Elements of HTML from plain calls, and the sheet that every page is written on.

    tag("p", "cost: ", figure("cost.per_month", 723000.0, "723,000"), class_="lead")

Text from outside is escaped and shown as it is; no page has a script.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias, cast
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ultracluster.config.plain_text import visible
from ultracluster.version import __version__

Child: TypeAlias = "Element | str | Iterable[Child] | None"
_STYLE = Path(__file__).with_name("look.css")
_NOTHING_FROM_ELSEWHERE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def tag(name: str, /, *children: Child, **attributes: str | float | bool) -> Element:
    """An element; `class_` is the attribute `class`, `data_of` is `data-of`; None is no child."""
    given = {
        key.rstrip("_").replace("_", "-"): "" if value is True else visible(str(value))
        for key, value in attributes.items()
        if value is not False
    }
    element = Element(name, given)
    for child in children:
        _append(element, child)
    return element


def _append(element: Element, child: Child) -> None:
    if child is None:
        return
    if isinstance(child, Element):
        element.append(cast("Element", child))
    elif not isinstance(child, str):
        for one in child:
            _append(element, one)
    elif len(element):
        element[-1].tail = (element[-1].tail or "") + visible(child)
    else:
        element.text = (element.text or "") + visible(child)


def figure(of: str, value: float | None, text: str) -> Element:
    """A number that `--json` has, too.

    Args:
        of: its place there, as `cost.per_month`.
        value: None is unknown.
    """
    if value is None:
        return tag("span", text, data_unknown=of)
    return tag("data", text, value=f"{value:.12g}", data_of=of)


def words(text: str) -> list[Element | str]:
    """A sentence in which what stands between backticks is code."""
    return [tag("code", part) if place % 2 else part for place, part in enumerate(text.split("`"))]


def pill(level: str, text: str) -> Element:
    """A word on a coloured ground: `good`, `care`, `bad` or `quiet`."""
    return tag("span", text, class_=f"pill {level}")


def section(title: str, *children: Child, lead: str = "") -> Element:
    """A part of the page with its heading."""
    name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    said = tag("p", words(lead), class_="lead") if lead else None
    return tag("section", tag("h2", title, id=name), said, *children, aria_labelledby=name)


def table(heads: Iterable[str], rows: Iterable[Iterable[Child]]) -> Element:
    """Rows that become cards on a narrow screen, each cell with its heading."""
    names = list(heads)
    body = [
        tag(
            "tr", [tag("td", tag("div", cell), data_head=name) for name, cell in zip(names, row, strict=True)]
        )
        for row in rows
    ]
    head = tag("thead", tag("tr", [tag("th", name, scope="col") for name in names]))
    return tag("table", head, tag("tbody", body), class_="rows")


def folded(title: str, *children: Child) -> Element:
    """What opens when its title is clicked; printed open."""
    return tag("details", tag("summary", title), tag("div", *children))


def tiles(*ones: tuple[str, Child, str]) -> Element:
    """Large figures side by side: what it is, the figure, and a line below."""
    made = [
        tag("div", tag("dt", name), tag("dd", tag("strong", value), tag("span", below, class_="dim")))
        for name, value, below in ones
    ]
    return tag("dl", made, class_="tiles")


def inline_svg(svg: str) -> Element:
    """A drawing as a part of the page."""
    root = ElementTree.fromstring(svg)  # noqa: S314  # we drew it
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    return root


def sheet(kind: str, title: str, below: str, *children: Child) -> str:
    """A whole file.

    Args:
        kind: `plan` or `diff`.
        below: what stands under the title.
    """
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", http_equiv="Content-Security-Policy", content=_NOTHING_FROM_ELSEWHERE),
        tag("meta", name="generator", content=f"ultracluster {__version__}"),
        tag("title", f"{title}: {kind}"),
        tag("style", _STYLE.read_text(encoding="utf-8")),
    )
    header = tag("header", tag("p", kind, class_="kind"), tag("h1", title), tag("p", below, class_="below"))
    footer = tag("footer", tag("p", f"Written by ultracluster {__version__}. Nothing was deployed."))
    page = tag("html", head, tag("body", header, tag("main", *children), footer), lang="en")
    return "<!DOCTYPE html>\n" + ElementTree.tostring(page, encoding="unicode", method="html") + "\n"


def signature() -> Element:
    """Lines for whoever decides."""
    lines = [tag("div", tag("span", name)) for name in ("Decision", "Name", "Date")]
    return section("Sign-off", tag("div", lines, class_="sign"))
