"""What the site needs besides Sphinx: diagrams without a network, git hosts' anchors, names to search."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish
from sphinx.transforms import SphinxTransform

_CODE = re.compile(r"([A-Z]{3,4}\d{3}):")
_NAMED = re.compile(r"^(?:([A-Z]{3,4}\d{3}):|ultracluster (\S+(?: \S+)*)$)")
"""Headings that the search finds by a part of them: rules by their code, commands without the first word."""


class Mermaid(nodes.General, nodes.Element):
    """A diagram; its text is drawn in the browser, by a script that lies in the site."""


class Diagram(Directive):
    """A block of Mermaid."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        text = "\n".join(self.content)
        return [Mermaid(text, text=text)]


class Names(SphinxTransform):
    """Anchors as git hosts make them, and an entry of the index for what is looked up by its name."""

    default_priority = 700  # before the index is gathered

    def apply(self, **_: Any) -> None:
        for section in self.document.findall(nodes.section):
            title = section[0].astext()
            code = _CODE.match(title)
            for name in (section.get("slug"), code[1] if code else None):
                if name and name not in self.document.ids:
                    section["ids"].append(name)
                    self.document.ids[name] = section
            if found := _NAMED.match(title):
                # the search takes an entry of which it was given half: a code, and not a set of rules
                words = f"rule {found[1]}" if found[1] else found[2]
                entry = ("single", words, section["ids"][0], "main", None)
                section.insert(1, addnodes.index(entries=[entry]))


class English(SearchEnglish):
    """Computes the stem of each word once: pages have most of their words in common."""

    def init(self, options: dict[str, str]) -> None:
        super().init(options)
        self.stem = cache(self.stem)


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.add_directive("mermaid", Diagram)
    app.add_node(Mermaid, html=(_draw, None))
    app.add_transform(Names)
    app.add_search_language(English)
    app.connect("html-page-context", _fold_menu, priority=400)  # before the theme writes it
    app.connect("html-page-context", _share_menu, priority=600)  # after it
    app.connect("html-page-context", _add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _draw(writer: Any, node: Mermaid) -> None:
    text = writer.encode(node["text"])
    writer.body.append(f'<div class="diagram"><pre class="mermaid">{text}</pre></div>\n')
    raise nodes.SkipNode


def _fold_menu(app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """Pages of a folder stand in the menu of that folder only: two hundred on each take two minutes."""
    whole = context["toctree"]
    context["toctree"] = lambda **wanted: "" if _shared(app, page) else whole(**(wanted | {"collapse": True}))


def _share_menu(app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """Keep the theme's menu for the pages beside this one; a third of the time of the build."""
    if shared := _shared(app, page):
        context["furo_navigation_tree"] = shared
        return
    before, entry, after = _split(_CURRENT, context["furo_navigation_tree"])
    if entry and _OPEN in before:
        above, _, beside = before.rpartition(_OPEN)
        plain = rf'<li class="\1"><a class="reference internal" href="{_name(page)}">'
        _menus[_place(app, page)] = f"{above}<ul>{beside}{_CURRENT.sub(plain, entry)}{after}"


_OPEN = '<ul class="current">'
_CURRENT = re.compile(
    r'<li class="(toctree-l\d) current current-page"><a class="current reference internal" href="#">'
)
"""The list of a page in its own menu, and its entry there."""
_menus: dict[tuple[str, ...], str] = {}
"""By folder and the pages above: the menu of a page there that has none below it, without its marks."""


def _shared(app: Sphinx, page: str) -> str:
    """The menu that a page beside this one had, with the marks of this page; empty where there is none."""
    if app.env.toctree_includes.get(page):
        return ""
    plain = re.compile(
        rf'<li class="(toctree-l\d)"><a class="reference internal" href="{re.escape(_name(page))}">'
    )
    before, entry, after = _split(plain, _menus.get(_place(app, page), ""))
    marked = r'<li class="\1 current current-page"><a class="current reference internal" href="#">'
    above, _, beside = before.rpartition("<ul>")
    return f"{above}{_OPEN}{beside}{plain.sub(marked, entry)}{after}" if entry else ""


def _split(entry: re.Pattern[str], menu: str) -> tuple[str, str, str]:
    """Parts of a menu: before an entry that is there once, the entry, and the rest; else empty texts."""
    found = list(entry.finditer(menu))
    if len(found) != 1:
        return "", "", ""
    return menu[: found[0].start()], found[0][0], menu[found[0].end() :]


def _name(page: str) -> str:
    return f"{page.rpartition('/')[2]}.html"


def _place(app: Sphinx, page: str) -> tuple[str, ...]:
    above = sorted(one for one, below in app.env.toctree_includes.items() if page in below)
    return (page.rpartition("/")[0], *above)


def _add_scripts(app: Sphinx, _page: str, _template: str, _context: Any, tree: nodes.document | None) -> None:
    if tree is not None and next(tree.findall(Mermaid), None) is not None:
        app.add_js_file("mermaid.tiny.js")
        app.add_js_file("diagrams.js")
