"""Environments that somebody broke: data with parts exchanged, text with bytes changed."""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any

from hypothesis import strategies as st
from project import ENVIRONMENTS, ROOT

from ultracluster.config.environment import Environment
from ultracluster.config.schema import PUBLISHED
from ultracluster.config.source import read

HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63 - 1, -(2**63), 0.5, 1e300, "", " ", "\n", "a\nb: c",
    "a" * 300, "x" * 20_000, "\x1b[2J", "\u202e", "\u200b", "\u0430", "\u0661", "60\nProlog=/x",
    "60 Prolog=/x", "null", "../../../etc/passwd", "/dev/zero", "./a\0b.lock", "./" + "n" * 300 + ".lock",
    "${Token[TOKEN.1]}", "{{x}}", "9" * 400 + " TiB", "1e999 GiB", "1.2.3 TiB", "10.0.0.0/0", "10.0.0.0/33",
    "0.0.0.0/8", "arn:aws:iam::1:x", "arn:aws:kms:us-east-1:111122223333:key/a", "p5.48xlarge", "m5.large",
    "p99.metal", "us-east-1", "mars-1", "use1-az6", "2026.11", "none", "eks", "pcs", "compute", "kueue", [],
    {}, [[]], [None], [{}], {"": 1}, {"a": {}}, ["a"] * 50, {f"k{n}": n for n in range(50)},
    [[[[[["deep"]]]]]], {"kind": "spot"}, {"kind": "existing"},
    {"kind": "capacity-block", "id": "cr-01234567"}, {"deployment": "scratch-2", "capacity_gib": 1200},
)  # fmt: skip
"""Values for any place of a file."""

SNIPPETS = (
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b]52;c;eA==\x07", b"\t", b"\n", b"\r", b": ", b"- ", b"[",
    b"]", b"{", b"}", b"&a ", b"*a", b"<<: ", b"<<: *a\n", b"!!int ", b"!!python/object:os.system ", b"!<",
    b"%YAML 1.1\n", b"---\n", b"...\n", b"? ", b"|\n", b">-\n", b"'", b'"', b"\\", b'"\\e"', b'"\\x00"',
    b"#", b"@", b"`", b"${X}", b".nan", b".inf", b"1e400", b"0x", b"-0x10", b"0o8", b"9" * 5000,
    b"\xe2\x80\xae", b"\xc2\x85", b"\xd0\xb0", b"\xe2\x80\xa8", b"extends: ../../etc/passwd\n",
    b"extends: fuzz.yaml\n", b"[" * 500, b"{a: " * 100, b"a: &a [*a, *a]\n", b"x" * 9000, b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80", b"~", b"null", b"yes", b"1_000", b"1:30:00", b"2026-11-22", b"=",
)  # fmt: skip
"""Bytes that mean something to YAML, to a terminal or to Python."""


@cache
def shipped(name: str) -> bytes:
    """The text of a shipped environment."""
    return (ROOT / "environments" / f"{name}.yaml").read_bytes()


@cache
def data_of(name: str) -> dict[str, Any]:
    """What a shipped environment says."""
    return read(ROOT / "environments" / f"{name}.yaml").data


@cache
def _fields() -> tuple[str, ...]:
    """Every key that a file may have anywhere."""
    schema = json.loads(PUBLISHED.read_text())
    models = [schema, *schema["$defs"].values()]
    return tuple(sorted({name for one in models for name in one.get("properties", {})}))


@cache
def _values() -> tuple[Any, ...]:
    """Every word that the schema offers, and what its examples say."""
    found: set[str] = set()
    pending: list[Any] = [json.loads(PUBLISHED.read_text())]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            found |= {str(part["const"])} if "const" in part else set()
            found |= {str(one) for key in ("enum", "examples") for one in part.get(key, [])[:30]}
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    return tuple(sorted(found))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of the data but its top."""
    here = [path] if path else []
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return here + [place for key, part in parts for place in places(part, (*path, key))]


def at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


@st.composite
def broken_data(draw: st.DrawFn) -> dict[str, Any]:
    """A shipped environment with one to four places exchanged for what does not belong there."""
    data = copy.deepcopy(data_of(draw(st.sampled_from(ENVIRONMENTS))))
    for _ in range(draw(st.integers(1, 4))):
        *above, last = draw(st.sampled_from(places(data)))
        holder = at(data, tuple(above))
        match draw(st.integers(0, 6)):
            case 0:
                del holder[last]
            case 1 | 2:
                holder[last] = copy.deepcopy(draw(st.sampled_from(HOSTILE)))
            case 3:
                holder[last] = draw(st.sampled_from(_values()))
            case 4:  # a part of this or another environment
                other = data_of(draw(st.sampled_from(ENVIRONMENTS)))
                holder[last] = copy.deepcopy(at(other, draw(st.sampled_from(places(other)))))
            case 5 if isinstance(holder, dict):
                holder[draw(st.sampled_from(_fields()))] = copy.deepcopy(
                    draw(st.sampled_from(HOSTILE + _values()))
                )
            case _ if isinstance(holder, dict):
                holder[str(draw(st.sampled_from(HOSTILE)))[:50]] = holder[last]
            case _:
                holder.append(copy.deepcopy(holder[last]))
    known = [key for key in data if key in Environment.model_fields]
    return data if known or not data else {"name": "x", **data}


@st.composite
def broken_text(draw: st.DrawFn) -> bytes:
    """The bytes of a shipped environment with one to five of them changed, taken away, repeated or added."""
    text = bytearray(shipped(draw(st.sampled_from(ENVIRONMENTS))))
    for _ in range(draw(st.integers(1, 5))):
        place = draw(st.integers(0, len(text)))
        match draw(st.integers(0, 4)):
            case 0 | 1:
                text[place:place] = draw(st.sampled_from(SNIPPETS))
            case 2:
                text[place : place + 1] = bytes([draw(st.integers(0, 255))])
            case 3:
                del text[place : place + draw(st.integers(1, 40))]
            case _:
                text[place:place] = text[place : place + draw(st.integers(1, 200))]
    return bytes(text)
