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
    app.connect("html-page-context", _add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _draw(writer: Any, node: Mermaid) -> None:
    text = writer.encode(node["text"])
    writer.body.append(f'<div class="diagram"><pre class="mermaid">{text}</pre></div>\n')
    raise nodes.SkipNode


def _fold_menu(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """Pages of a folder stand in the menu of that folder only: two hundred on each take two minutes."""
    whole = context["toctree"]
    context["toctree"] = lambda **wanted: whole(**(wanted | {"collapse": True}))


def _add_scripts(app: Sphinx, _page: str, _template: str, _context: Any, tree: nodes.document | None) -> None:
    if tree is not None and next(tree.findall(Mermaid), None) is not None:
        app.add_js_file("mermaid.tiny.js")
        app.add_js_file("diagrams.js")
