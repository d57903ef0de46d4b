"""What the site is built from: docs/, and what it links to in the repository, as pages of one folder.

The Markdown of docs/ stays what a git host shows. A copy of it becomes the site: files outside docs/ that a
page names become pages below `repository/`, docs/rules.md becomes a page for each subject, and the start page
gets the menu.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tools.docs_site.links import Link, anchors_of, headings, line_of, rewritten
from tools.docs_site.navigation import START, Group, PageError, menu
from tools.docs_site.rule_pages import PAGE as RULES
from tools.docs_site.rule_pages import RulePages, split

REPOSITORY = "repository"
"""Folder of the site for what is outside docs/."""
PICTURES = (".svg", ".png")
LANGUAGES = {
    ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".py": "py", ".sh": "bash", ".toml": "toml",
    ".lock": "text", ".csv": "text", ".txt": "text",
}  # fmt: skip
MOST = 300_000
"""Characters of a file that is shown as a page."""


class Sources:
    """The copy, made once."""

    def __init__(self, root: Path, folder: Path, rows: Sequence[dict[str, Any]] | None = None) -> None:
        self._root = root.resolve()
        self._docs = self._root / "docs"
        self._folder = folder
        self._rows = rows
        self._wrong: list[str] = []
        self._waiting: list[Path] = []
        self._seen: set[Path] = set()
        self._rules = RulePages({}, {})

    def write(self) -> list[Group]:
        """Fill the folder.

        Raises:
            PageError: links that lead nowhere, or pages without a place in the menu.
        """
        if self._folder.exists():
            shutil.rmtree(self._folder)
        pages = sorted(self._docs.rglob("*.md"))
        names = [page.relative_to(self._docs).with_suffix("").as_posix() for page in pages]
        groups = menu(names, self._rows)
        rules = self._docs / f"{RULES}.md"
        if rules.is_file():
            self._rules = split(rules.read_text(encoding="utf-8"))
        self._waiting = [*pages, *self._in_menu(groups)]
        self._seen = set(self._waiting)
        while self._waiting:
            self._one(self._waiting.pop())
        if self._wrong:
            raise PageError("\n".join(sorted(self._wrong)))
        self._menu(groups)
        return groups

    def place(self, file: Path) -> str:
        """Where a file of the repository is in the site's sources."""
        if file.is_relative_to(self._docs):
            inside = file.relative_to(self._docs)
            if file.is_dir():
                inside /= "README.md" if (file / "README.md").is_file() else f"{START}.md"
            return inside.as_posix()
        inside = file.relative_to(self._root).as_posix()
        kept = file.suffix == ".md" or file.suffix in PICTURES
        return f"{REPOSITORY}/{inside}" if kept else f"{REPOSITORY}/{inside}.md"

    def _in_menu(self, groups: list[Group]) -> Iterator[Path]:
        for group in groups:
            for page, _ in group.pages:
                if page.startswith("../"):
                    yield self._root / f"{page.removeprefix('../')}.md"

    def _one(self, file: Path) -> None:
        if file.is_dir():
            self._put(self.place(file), self._listing(file))
        elif file.suffix in PICTURES:
            place = self._folder / self.place(file)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
        elif file.suffix != ".md":
            self._put(self.place(file), self._shown(file))
        elif file == self._docs / f"{RULES}.md":
            for name, text in self._rules.pages.items():
                self._put(f"{name}.md", self._linked(file, text, f"{name}.md"))
        else:
            text = file.read_text(encoding="utf-8")
            place = self.place(file)
            orphan = "" if file.is_relative_to(self._docs) else "---\norphan: true\n---\n\n"
            self._put(place, orphan + self._linked(file, text, place))

    def _linked(self, file: Path, text: str, place: str) -> str:
        """The text, with links that lead where things are in the site."""
        own = {f"{name}.md" for name in self._rules.pages}

        def target(link: Link) -> str:
            if link.elsewhere:
                return link.target
            if place in own and (self._folder / link.path).suffix == ".md" and f"{link.path}" in own:
                return link.target  # written by `split`
            found = (file.parent / link.path).resolve() if link.path else file
            if not found.exists() or not found.is_relative_to(self._root):
                self._wrong.append(f"{self._named(file, text, link)}: there is no {link.target}")
                return link.target
            if link.anchor and found.suffix == ".md" and link.anchor not in anchors_of(found):
                page = link.path or "this page"
                self._wrong.append(f"{self._named(file, text, link)}: no heading of {page} is #{link.anchor}")
            if found not in self._seen and not (found.is_dir() and found.is_relative_to(self._docs)):
                self._seen.add(found)
                self._waiting.append(found)
            there = self.place(found)
            if found == self._docs / f"{RULES}.md" and link.anchor in self._rules.homes:
                there = f"{self._rules.homes[link.anchor]}.md"
            if there == place:
                return f"#{link.anchor}" if link.anchor else link.target
            path = os.path.relpath(there, Path(place).parent)
            return f"{path}#{link.anchor}" if link.anchor and there.endswith(".md") else path

        return rewritten(text, target)

    def _named(self, file: Path, text: str, link: Link) -> str:
        return f"{file.relative_to(self._root)}:{line_of(text, link.start)}"

    def _shown(self, file: Path) -> str:
        """A text file as a page."""
        name = file.relative_to(self._root).as_posix()
        text = file.read_text(encoding="utf-8", errors="replace")
        more = ""
        if len(text) > MOST:
            text, more = text[:MOST], "\n\nThe rest is in the repository."
        fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`+", text))])
        language = LANGUAGES.get(file.suffix, "text")
        return _apart(f"# {name}\n\n{fence}{language}\n{text.rstrip()}\n{fence}{more}\n")

    def _listing(self, folder: Path) -> str:
        """A folder as a page: what is in it, each with a page of its own."""
        name = folder.relative_to(self._root).as_posix()
        rows = [f"# {name}/\n"]
        for inside in sorted(folder.iterdir()):
            text = inside.suffix in (*LANGUAGES, ".md") and not inside.name.startswith((".", "_"))
            if inside.name.startswith((".", "__")) or not (inside.is_dir() or text):
                continue
            if inside not in self._seen:
                self._seen.add(inside)
                self._waiting.append(inside)
            path = os.path.relpath(self.place(inside), Path(self.place(folder)).parent)
            rows.append(f"- [{inside.name}{'/' if inside.is_dir() else ''}]({path})")
        return _apart("\n".join(rows) + "\n")

    def _menu(self, groups: list[Group]) -> None:
        """Append the menu to the start page, and to the page of a folder what is in it."""
        trees: list[str] = []
        for group in groups:
            pages = [
                f"{title} <{self._target(page)}>" if title else self._target(page)
                for page, title in group.pages
            ]
            if group.folder:
                landing = self._landing(group)
                pages = [f"All {group.title.lower()} <{landing}>"]
            trees.append(_tree(pages, group.title))
            for page, _ in group.pages:
                if page.startswith("../"):
                    self._edit(
                        f"{self._target(page)}.md",
                        lambda text: text.removeprefix("---\norphan: true\n---\n\n"),
                    )
        start = self._folder / f"{START}.md"
        if not start.is_file():
            raise PageError("docs/index.md, the start page, is not there")
        self._edit(f"{START}.md", lambda text: text + "".join(trees))
        below = [name.removeprefix(f"{RULES}/") for name in self._rules.pages if name != RULES]
        if below:
            self._edit(f"{RULES}.md", lambda text: text + _tree([f"{RULES}/{name}" for name in below]))

    def _landing(self, group: Group) -> str:
        """The page that lists a folder's; its name."""
        folder = self._folder / group.folder
        inside = sorted(page.stem for page in folder.glob("*.md") if page.stem not in ("README", START))
        tree = _tree(inside)
        for name in ("README", START):
            if (folder / f"{name}.md").is_file():
                self._edit(f"{group.folder}/{name}.md", lambda text: text + tree)
                return f"{group.folder}/{name}"
        rows = (f"- [{_title(folder / f'{name}.md')}]({name}.md)" for name in inside)
        listed = "\n".join(rows)
        self._put(f"{group.folder}/{START}.md", f"# {group.title}\n\n{listed}\n{tree}")
        return f"{group.folder}/{START}"

    def _target(self, page: str) -> str:
        return f"{REPOSITORY}/{page.removeprefix('../')}" if page.startswith("../") else page

    def _edit(self, place: str, change: Callable[[str], str]) -> None:
        file = self._folder / place
        file.write_text(change(file.read_text(encoding="utf-8")), encoding="utf-8")

    def _put(self, place: str, text: str) -> None:
        file = self._folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _apart(text: str) -> str:
    """A page that stands in no menu, and that the search leaves out: it would find each word of each file."""
    return f"---\norphan: true\nnosearch: true\n---\n\n{text}"


def _tree(pages: list[str], caption: str = "") -> str:
    title = f":caption: {caption}\n" if caption else ""
    return "\n\n```{toctree}\n:hidden:\n:titlesonly:\n" + title + "\n" + "\n".join(pages) + "\n```\n"


def _title(file: Path) -> str:
    return next((words for _, words, _ in headings(file.read_text(encoding="utf-8"))), file.stem)
