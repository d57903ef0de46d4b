"""Text without secrets and without names of people, for somebody outside.

    redaction = Redaction(key, ["alice"])
    redaction.learn(text)                  # names that only the text has
    redaction.text("alice: token=abc")     # "user-1f0c9a2b: token=[removed: named]"

Whatever looks like a secret is removed: a random text that was none is a smaller loss. Shapes are data
(`secret_shapes.json`). They are searched in the text as it is, with its escapes decoded, and with its lines
joined, so that neither an encoding nor the end of a line hides half a secret.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any, NamedTuple, cast

from ultracluster.catalog.node_accounts import taken_names

_LINE_END = re.compile(
    r"\\?\r?\n[ \t]*"
    r"(?:\d{4}-\d\d-\d\d[T ][\d:.,]+\S*[ \t]+|[A-Z][a-z]{2}[ \t]+\d+ \d\d:\d\d:\d\d[ \t]+)?"
    r"(?:[\w.-]+ [\w./-]+(?:\[\d+\])?: )?"
)
"""The end of a line, and what a journal writes in front of the next one."""
_ESCAPE = re.compile(
    r"""\\u00([0-9A-Fa-f]{2})|%([0-9A-Fa-f]{2})|\\x([0-9A-Fa-f]{2})|&#x([0-9A-Fa-f]{2});|&#(\d{2,3});"""
    r"""|\\([nrt"'/\\])|(=\r?\n)"""
)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}
_UNSEEN = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f"
    r"\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)
"""Colours and characters that nobody sees: they may stand inside a secret."""
_MIXED = re.compile(r"[A-Za-z0-9_-]{20,}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")
_SHORT_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{15,}={0,2}")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:[0-9a-f]{32,}|[0-9A-F]{32,})(?![0-9A-Za-z])")
_LOWER = re.compile(r"(?<![0-9A-Za-z])[a-z0-9]{24,}(?![0-9A-Za-z])")
_PUBLIC = re.compile(
    r"(?:(?:[A-Za-z]{2,8}-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # a GPU, a volume
    r"|[a-z]+(?:-[a-z]+)*-[0-9a-f]{8,17})"  # an id of a resource
)
_HASH = re.compile(r"[0-9A-F]{8}$")
"""Suffix that the CDK writes behind a logical id."""
_DIGEST = "sha256:"
_NO_VALUE = ("null", "none", "true", "false", "(null)")
_URL_SAFE = str.maketrans("-_", "+/")
_PAIRS = ("name", "value")
_SHORTEST_NAME = 2
_NAME = r"(?P<name>[A-Za-z_][\w.+-]*[\w-])"
_NAMES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?i:/(?:home|users)/|\\users\\+){_NAME}",
        rf"\b(?:UserId|UserName|User|USER|LOGNAME|SUDO_USER|user|username|login|owner)\\?[\"']?\s?[=:]\s?\\?[\"']?{_NAME}",
        rf"\b[ug]id=\d+\({_NAME}\)",
        rf"\bfor (?:invalid )?user {_NAME}(?=\s*(?:\(|from|by|$))",
        rf"\bfor {_NAME} from \d",
        rf"\bsudo: +{_NAME} :",
        rf":user/(?:[\w.-]+/)*{_NAME}",
        rf":assumed-role/[\w+=,.@-]+/{_NAME}",
    )
)
_MAIL = re.compile(r"(?P<name>[A-Za-z0-9][\w.+-]{0,63})@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+")
_NO_PERSON = re.compile(
    r"(?i)i-[0-9a-f]+|aws[\w-]*|botocore.*|ultracluster.*|systemd.*|sshd|_.*|sagemaker.*|hyperpod.*|system|default"
    r"|none|null|true|false|unknown|user|users|shared|ssm-.*|codebuild.*|i-\w+|\d+"
)


class _Shape(NamedTuple):
    id: str
    pattern: re.Pattern[str]
    line: bool
    """True where its pattern ends with a line: without ends of lines it would have no end."""


class _Span(NamedTuple):
    start: int
    end: int
    kind: str


class _View(NamedTuple):
    """A text, and where in the original each of its characters is."""

    text: str
    starts: array[int]
    ends: array[int]


class Redaction:
    """Removes secrets, and replaces names of people by pseudonyms.

    Attributes:
        removed: how many of each kind were removed.
    """

    def __init__(self, key: bytes, names: Iterable[str] = ()) -> None:
        """Nothing is read yet.

        Args:
            key: whoever has it can find out whose pseudonym is whose; the same key gives the same pseudonyms.
            names: of people, that are known.
        """
        self._key = key
        self._names = {
            name.lower() for name in names if len(name) >= _SHORTEST_NAME and name not in taken_names()
        }
        self._pattern: re.Pattern[str] | None = None
        self._seen: set[str] = set()
        self.removed: Counter[str] = Counter()

    @property
    def pseudonyms(self) -> dict[str, str]:
        """Names by the pseudonym that the texts have for them: to be kept by who has the texts' originals."""
        return {self._pseudonym(name): name for name in sorted(self._seen)}

    def learn(self, text: str) -> None:
        """Note the names of people that a text has: of homes, of `user=`, of IAM, of mail."""
        for view in _decoded(_View(*_plain(_UNSEEN.sub("", text)))):
            found = [match["name"] for pattern in _NAMES for match in pattern.finditer(view.text)]
            found += [match["name"] for match in _MAIL.finditer(view.text)]
            for name in found:
                known = len(name) <= _SHORTEST_NAME or name.lower() in taken_names()
                if not known and not _NO_PERSON.fullmatch(name):
                    self._names.add(name.lower())
        self._pattern = None

    def text(self, text: str) -> str:
        """The text without secrets and names."""
        shown = _UNSEEN.sub("", text)
        clean = _replaced(shown, _merged(_secrets(shown)), self._remove)
        return _replaced(clean, _merged(self._people(clean)), self._rename)

    def value(self, value: Any) -> Any:
        """A value of JSON without secrets and names; whatever is under the name of a secret is removed."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.value(one) for one in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        members = cast("dict[Any, Any]", value)
        pair = all(isinstance(members.get(key), str) for key in _PAIRS)  # an environment variable, a tag
        clean: dict[str, Any] = {}
        for key, one in members.items():
            named = _is_named(str(key)) or (pair and key == "value" and _is_named(members["name"]))
            secret = members.get("kind") == "Secret" and key in ("data", "stringData")
            if (named or secret) and one not in (None, "", True, False):
                clean[self.text(str(key))] = self._remove("named", "")
            else:
                clean[self.text(str(key))] = self.value(one)
        return clean

    def _people(self, text: str) -> Iterator[_Span]:
        if self._pattern is None:
            longest = sorted(self._names, key=lambda name: (-len(name), name))
            either = "|".join(map(re.escape, longest)) or "(?!)"
            self._pattern = re.compile(rf"(?<![A-Za-z0-9])(?:{either})(?![A-Za-z0-9])", re.IGNORECASE)
        for view in _decoded(_View(*_plain(text))):
            for match in _MAIL.finditer(view.text):
                yield _Span(*_place(view, *match.span()), match["name"].lower())
            for match in self._pattern.finditer(view.text):
                yield _Span(*_place(view, *match.span()), match[0].lower())

    def _remove(self, kind: str, _: str) -> str:
        self.removed[kind] += 1
        return f"[removed: {kind}]"

    def _rename(self, name: str, _: str) -> str:
        self._seen.add(name)
        return self._pseudonym(name)

    def _pseudonym(self, name: str) -> str:
        return f"user-{hmac.new(self._key, name.encode(), hashlib.sha256).hexdigest()[:8]}"


def _secrets(text: str) -> Iterator[_Span]:
    for view in _decoded(_View(*_plain(text))):
        for one in (view, _joined(view)):
            for start, end, kind in _found(one.text, joined=one is not view):
                yield _Span(*_place(one, start, end), kind)


def _found(text: str, *, joined: bool) -> Iterator[tuple[int, int, str]]:
    shapes, named = _shapes()
    for shape in shapes:
        if joined and shape.line:
            continue
        for match in shape.pattern.finditer(text):
            group = "secret" if "secret" in shape.pattern.groupindex else 0
            yield match.start(group), match.end(group), shape.id
    for match in named.finditer(text):
        if _is_named(match["key"]) and not _harmless(match["value"]):
            yield match.start("value"), match.end("value"), "named"
    for pattern, kind, judge in _RANDOM:
        for match in pattern.finditer(text):
            if judge(match[0]) and not text[: match.start()].endswith(_DIGEST):
                yield match.start(), match.end(), kind


def _harmless(value: str) -> bool:
    word = value.strip("\"' ,;")
    return (
        not word or word.startswith("[removed") or word.lower() in ("null", "none", "true", "false", "(null)")
    )


def _is_named(key: str) -> bool:
    words, harmless = _key_words()
    return bool(words.search(key)) and not harmless.fullmatch(key)


@cache
def _document() -> dict[str, Any]:
    return json.loads(
        resources.files("ultracluster.account.doctor").joinpath("secret_shapes.json").read_text("utf-8")
    )


@cache
def _key_words() -> tuple[re.Pattern[str], re.Pattern[str]]:
    document = _document()
    return (
        re.compile(document["key_words"], re.IGNORECASE),
        re.compile("|".join(document["not_secret"]), re.IGNORECASE),
    )


@cache
def _shapes() -> tuple[list[_Shape], re.Pattern[str]]:
    """Shapes, and a name of a secret with its value behind it."""
    document = _document()
    shapes = [
        _Shape(row["id"], re.compile(row["pattern"], re.DOTALL), row.get("line", False))
        for row in document["shapes"]
    ]
    named = re.compile(
        rf"""(?P<key>(?:{document["key_words"]})[\w.-]{{0,60}})[\\"']*"""
        r"""(?:\s*(?:=>|[:=])\s*|[ \t]+is[ \t]+"""
        r"""|(?:(?<=password)|(?<=passphrase))[ \t]+(?=["']|\S*[0-9!#$%^&*]))"""
        r"""(?P<value>\\?"(?:[^"\\]|\\.)*\\?"|'[^']*'|\|?[-+]?\s*[^\s"',;&)}\]]+)""",
        re.IGNORECASE,
    )
    return shapes, named


def _decoded(view: _View) -> Iterator[_View]:
    """The text, and what it is with its escapes decoded, up to three times."""
    yield view
    for _ in range(3):
        decoded = _derived(view, _ESCAPE, _letter)
        if decoded.text == view.text:
            return
        view = decoded
        yield view


def _letter(match: re.Match[str]) -> str:
    *codes, decimal, letter, soft = match.groups()
    if soft:
        return ""
    if letter:
        return _LETTERS.get(letter, letter)
    return chr(int(decimal) if decimal else int(next(code for code in codes if code), 16))


def _joined(view: _View) -> _View:
    return _derived(view, _LINE_END, lambda match: "")


def _plain(text: str) -> tuple[str, array[int], array[int]]:
    return text, array("l", range(len(text))), array("l", range(1, len(text) + 1))


def _derived(view: _View, pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str]) -> _View:
    parts: list[str] = []
    starts, ends = array("l"), array("l")
    at = 0
    for match in pattern.finditer(view.text):
        begin, end = match.span()
        text = replace(match)
        parts += [view.text[at:begin], text]
        starts += view.starts[at:begin] + array("l", [view.starts[begin]] * len(text))
        ends += view.ends[at:begin] + array("l", [view.ends[end - 1]] * len(text))
        at = end
    parts.append(view.text[at:])
    return _View("".join(parts), starts + view.starts[at:], ends + view.ends[at:])


def _place(view: _View, start: int, end: int) -> tuple[int, int]:
    """Place of a part of a view in the original; nothing of an empty one."""
    return (view.starts[start], view.ends[end - 1]) if end > start else (0, 0)


def _merged(spans: Iterable[_Span]) -> list[_Span]:
    merged: list[_Span] = []
    for span in sorted(spans, key=lambda one: (one.start, -one.end)):
        if span.end <= span.start:
            continue
        if merged and span.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return merged


def _replaced(text: str, spans: list[_Span], replacement: Callable[[str, str], str]) -> str:
    parts: list[str] = []
    at = 0
    for span in spans:
        parts += [text[at : span.start], replacement(span.kind, text[span.start : span.end])]
        at = span.end
    return "".join([*parts, text[at:]])


def _changes(text: str) -> float:
    """Share of places where the kind of letter changes: in words seldom, in random text mostly."""
    kinds = ["0" if one.isdigit() else "A" if one.isupper() else "a" for one in text]
    return sum(one != other for one, other in pairwise(kinds)) / max(1, len(kinds) - 1)


def _is_mixed(word: str) -> bool:
    """Return whether upper case, lower case and digits are mixed as nobody writes them."""
    if _PUBLIC.fullmatch(word):
        return False
    letters = re.sub("[^A-Za-z0-9]", "", _HASH.sub("", word))
    if not (re.search("[a-z]", letters) and re.search("[A-Z]", letters) and re.search("[0-9]", letters)):
        return len(letters) >= 32 and _changes(letters) >= 0.4
    return len(letters) >= 16 and _changes(letters) >= (0.3 if len(letters) >= 32 else 0.42)


def _is_base64(word: str) -> bool:
    letters = re.sub("[^A-Za-z0-9]", "", _HASH.sub("", word))
    return _changes(letters) >= 0.3


def _is_lower(word: str) -> bool:
    return _changes(word) >= 0.2 and sum(one.isdigit() for one in word) >= 3


def _is_hex(word: str) -> bool:
    return not word.isdigit() and len(set(word)) > 4


def _holds_text(word: str) -> bool:
    """Return whether it is the base64 of a readable text."""
    try:
        bare = word.rstrip("=").translate(_URL_SAFE)
        text = base64.b64decode(bare + "=" * (-len(bare) % 4)).decode("ascii")
    except (binascii.Error, ValueError):
        return False
    return len(text) >= 10 and all(" " <= one <= "~" or one in "\r\n\t" for one in text)


_RANDOM: tuple[tuple[re.Pattern[str], str, Callable[[str], bool]], ...] = (
    (_BASE64, "random", _is_base64),
    (_MIXED, "random", _is_mixed),
    (_LOWER, "random", _is_lower),
    (_HEX, "random", _is_hex),
    (_SHORT_BASE64, "encoded", _holds_text),
)
