"""A tutorial in the parts that a test runs: docs/tutorials/README.md says what a page may hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from project import ROOT
from sybil import Document
from sybil.parsers.markdown.lexers import DirectiveInHTMLCommentLexer, RawFencedCodeBlockLexer

FOLDER = ROOT / "docs" / "tutorials"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.name != "README.md")
NEEDS = {
    "account": ("an account",),
    "cluster": ("a cluster", "an account"),
    "network": ("the internet",),
    "twin": ("root",),
}
"""What a block that is no process of its own may need, and the words of its heading that say so to people."""
SHELLS = ("console", "sh", "bash")
SHOWN = ("text", "mermaid")
FENCES = RawFencedCodeBlockLexer(re.compile(r"(?P<info>[^\n]*)\n"))
MARKS = DirectiveInHTMLCommentLexer("needs")
MARK = re.compile(r"(?P<what>\w+)(?:, answered by (?P<answers>\w+))?")
FILE = re.compile(r"(?:#|//|<!--) (?P<path>[\w./-]+\.\w+)(?: -->)?\n")


class PageError(Exception):
    """What is wrong with a page, and where."""


@dataclass(frozen=True)
class Step:
    """One command, and what is expected of it.

    Attributes:
        output: lines; None where nothing is compared.
    """

    line: int
    command: str
    output: tuple[str, ...] | None


@dataclass(frozen=True)
class Block:
    """Steps that share a mark, or a file that the page writes.

    Attributes:
        needs: a key of `NEEDS`; empty where it runs anywhere.
        answers: the stand-in that answers in place of it; of a twin, the test that compares what it prints.
        file: path and content.
    """

    line: int
    steps: tuple[Step, ...] = ()
    needs: str = ""
    answers: str = ""
    file: tuple[str, str] | None = None


@dataclass
class Page:
    """A tutorial."""

    path: Path
    text: str
    blocks: list[Block] = field(default_factory=list[Block])

    @property
    def changes_the_package(self) -> bool:
        """Whether it runs in a copy of the whole package, which it may change."""
        return "<!-- changes the package -->" in self.text


def read(path: Path) -> Page:
    """The parts of a page.

    Raises:
        PageError: a block is neither run, nor a file, nor marked; or its heading does not say what it needs.
    """
    document = Document(path.read_text(encoding="utf-8"), str(path))
    page = Page(path, document.text, list(_blocks(document)))
    if not any(block.steps and (not block.needs or block.answers) for block in page.blocks):
        raise PageError(f"{path.name}: no block of it runs")
    return page


def _blocks(document: Document) -> Iterator[Block]:
    regions = sorted([*FENCES(document), *MARKS(document)], key=lambda region: region.start)
    needs = answers = ""
    marked = 0
    prose = document.text
    for block in FENCES(document):  # a comment in a block is no heading
        prose = prose[: block.start] + " " * (block.end - block.start) + prose[block.end :]
    for region in regions:
        line = document.text.count("\n", 0, region.start) + 1
        where = f"{Path(document.path).name}:{line}"
        if "info" not in region.lexemes:
            found = MARK.fullmatch(region.lexemes["arguments"].strip())
            if not found or found["what"] not in NEEDS:
                raise PageError(f"{where}: a mark is `needs: {'|'.join(NEEDS)}`, then `, answered by NAME`")
            needs, answers, marked = found["what"], found["answers"] or "", region.end
            heading = _heading(prose[: region.start])
            if not any(f"needs {words}" in heading for words in NEEDS[needs]):
                raise PageError(f"{where}: its heading does not say that it needs {NEEDS[needs][0]}")
            continue
        if needs and document.text[marked : region.start].strip(" \n->"):
            raise PageError(f"{where}: a mark stands right above its block")
        yield _block(
            where, line, region.lexemes["info"].strip(), str(region.lexemes["source"]), needs, answers
        )
        needs = answers = ""
    if needs:
        raise PageError(f"{Path(document.path).name}: the last mark has no block")


def _block(where: str, line: int, info: str, source: str, needs: str, answers: str) -> Block:
    if found := FILE.match(source):
        path = PurePosixPath(found["path"])
        if path.is_absolute() or ".." in path.parts:
            raise PageError(f"{where}: {path} leaves the folder of the page")
        return Block(line, file=(str(path), source))
    if info == "console":
        steps = tuple(_session(where, line, source))
        if needs == "twin" and answers:
            test = ROOT / "tests" / "slurm_twin" / f"{answers}.py"
            if not test.is_file() or where.partition(":")[0] not in test.read_text(encoding="utf-8"):
                raise PageError(f"{where}: {answers} of tests/slurm_twin does not read this page")
        if needs and not answers and any(step.output for step in steps):
            raise PageError(f"{where}: output that nothing has printed: name what answers, or show none")
        return Block(line, steps, needs, answers)
    if info in SHELLS:
        return Block(line, (Step(line + 1, source, None),), needs, answers)
    if info in SHOWN:
        return Block(line)
    raise PageError(
        f"{where}: a block of {info or 'nothing'} is no commands, no file (name it in its first line)"
    )


def _session(where: str, line: int, source: str) -> Iterator[Step]:
    started: tuple[int, str] | None = None
    output: list[str] = []
    open_ended = False
    for number, text in enumerate(source.splitlines(), start=line + 1):
        if open_ended and started:
            started = (started[0], f"{started[1]}\n{text}")
        elif text.startswith("$ "):
            if started:
                yield Step(*started, tuple(output))
            started, output = (number, text.removeprefix("$ ")), []
        elif started:
            output.append(text)
            continue
        else:
            raise PageError(f"{where}: a session begins with `$ `")
        open_ended = text.endswith("\\")
    if started:
        yield Step(*started, tuple(output))


def _heading(above: str) -> str:
    found = re.findall(r"^#+ (.*)$", above, re.MULTILINE)
    return found[-1] if found else ""


def differs(expected: tuple[str, ...], printed: str) -> str:
    """How output differs from what a page shows; empty where it does not.

    A line `...` stands for any lines, also none, and `...` within a line for any text of it. Spaces at the
    end of a line, and empty lines at the start and the end, do not count.
    """
    got = [line.rstrip() for line in printed.strip("\n").rstrip().splitlines()]
    wanted = [line.rstrip() for line in expected]
    while wanted and not wanted[-1]:
        wanted.pop()
    place, free = 0, False
    for line in wanted:
        if line.strip() == "...":
            free = True
            continue
        pattern = re.compile(".*?".join(re.escape(part) for part in line.split("...")))
        rest = range(place, len(got)) if free else range(place, min(place + 1, len(got)))
        found = next((number for number in rest if pattern.fullmatch(got[number])), None)
        if found is None:
            near = "\n".join(got[place : None if free else place + 1])
            return f"expected: {line}\nprinted:  {near or '(nothing more)'}\n\nall of it:\n{printed}"
        place, free = found + 1, False
    if not free and place < len(got):
        return f"printed beyond what the page shows: {got[place]}\n\nall of it:\n{printed}"
    return ""
