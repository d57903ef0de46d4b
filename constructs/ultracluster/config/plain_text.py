r"""Text from outside, so that it is shown as it is: no control character, nothing that cannot be seen.

A file, an answer of AWS or a line of a node's log may hold characters that a terminal obeys (ESC and what
follows it moves the cursor, colours, fills the clipboard), that turn the order of letters round (Unicode TR36
and CVE-2021-42574, "Trojan Source") or that take no room. Here each becomes an escape as Python writes it:
`\x1b`, `\u202e`. Everything that prints, draws or writes such text passes through `visible`.
"""

from __future__ import annotations

import re
import unicodedata

_UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, joiners, fillers, vowels unseen
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero width, line ends, directions
    "\u3164\ufeff\uffa0\ufff0-\uffff"
    "\ud800-\udfff"  # halves of pairs: no encoding takes them
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # tags: text that nobody sees
)
_HIDDEN = re.compile(f"[{_UNSEEN}]")
_NOT_IN_LINE = re.compile(f"[\t\n{_UNSEEN}]")
_BREAK = re.compile(r"[ \t]*[\r\n][\s]*")
TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""What turns the order of the letters round it."""
LONGEST = 200
"""Characters of a value that a sentence quotes."""


def visible(text: str) -> str:
    """The text with everything that would not be seen as an escape; lines and tabs stay."""
    return _HIDDEN.sub(_escape, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The same on one line, so that no part of it can pass for a line of ours."""
    return visible(_BREAK.sub(" ", text))


def clipped(text: str, most: int = LONGEST) -> str:
    """The text, or its beginning where it is long."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def unseen_in(text: str) -> str | None:
    """The first character that does not belong into one line of text; None without one."""
    found = _NOT_IN_LINE.search(text)
    return found[0] if found else None


def foreign_in(text: str) -> str | None:
    """The first character that is not ASCII, such as a Cyrillic letter that looks like a Latin one."""
    return next((one for one in text if not one.isascii()), None)


def named(character: str) -> str:
    """`U+0430 CYRILLIC SMALL LETTER A`."""
    control = (
        "a line break" if character in "\r\n" else "a tab" if character == "\t" else "a control character"
    )
    return f"U+{ord(character):04X} {unicodedata.name(character, control)}"


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
