"""A page as a browser shows it: on a telephone and on a desk, in the light and in the dark."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from browser import Browser

SCREENS = [(width, dark) for width in (360, 1440) for dark in (False, True)]
_JUDGE = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


def faults(
    browser: Browser, file: Path, *, least: int, site: Path | None = None, scrolled: str = ".picture"
) -> Iterator[str]:
    """What is hard to read, by screen; and what a page should not do. Its screenshots lie beside it, or in
    the folder that ULTRACLUSTER_SCREENSHOTS names.

    Args:
        least: texts that must have been judged on the wide screen.
        site: the folder that the page belongs to; it may load what lies there, and run scripts.
        scrolled: selects what scrolls by itself, and may be wider than the screen.
    """
    judge = f"{_JUDGE}({json.dumps(scrolled)})"
    folder = Path(os.environ.get("ULTRACLUSTER_SCREENSHOTS") or file.parent)
    for width, dark in SCREENS:
        name = f"{file.stem}-{width}-{'dark' if dark else 'light'}"
        browser.open(file, width, dark=dark)
        browser.screenshot(folder / f"{name}.png")
        browser.ask(judge)  # which opens what is folded
        browser.fit(width)
        found = browser.ask(judge)
        yield from (f"{name}: {one}" for one in found["faults"])
        yield from (f"{name}: the browser says {one}" for one in browser.complaints)
        own = f"{site.as_uri()}/" if site else file.as_uri()
        asked = [url for url in browser.requests if not url.startswith(("data:", own))]
        yield from (f"{name}: asks for {url}" for url in asked)
        if found["scripts"] and not site:
            yield f"{name}: has scripts"
        if width > 1000 and found["judged"] < least:
            yield f"{name}: only {found['judged']} texts were judged"
