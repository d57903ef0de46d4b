"""Texts as cells of a Markdown table."""

from __future__ import annotations


def cell(text: str) -> str:
    """As it reads, with what stands between backticks as it is."""
    parts = " ".join(text.split()).split("`")
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts).replace("|", "\\|")


def code(text: str) -> str:
    """As code; of a text with a backtick between two of them."""
    marks = "``" if "`" in text else "`"
    space = " " if "`" in text else ""
    return f"{marks}{space}{' '.join(text.split())}{space}{marks}".replace("|", "\\|")
