"""An account whose every answer is hostile: of the shape that the SDK expects, with texts that attack.

A node's root, a colleague with tags, or whoever names a resource decides what such answers hold.
"""

from __future__ import annotations

import io
import random
from datetime import UTC, datetime
from typing import Any

from hyperpod_service import account

from ultracluster.account.aws import Account

ATTACKS = (
    "\x1b]52;c;ZXZpbA==\x07",  # fills the clipboard
    "\x1b[2J\x1b[1;1Hnothing wrong found",  # begins the screen again
    "\x1b[8mhidden",
    "\x9b31m",
    "safe\rnothing wrong found",
    "user\u202egnp.exe",
    "zero\u200bwidth",
    "two\nFORGED nothing wrong found\r\nFORGED\n::error::forged",
    "##[error]forged",
    "<img src=x onerror=alert(1)>![x](https://evil.example/x)[y](https://evil.example)",
    "[bold red]markup[/bold red] [link=https://evil.example]x[/link] :skull:",
    "[/nothing] {braces} %s $(id) `id`",
    "\ud800half",
    "x" * 5000,
    "",
    "::stop-commands::token",
)


WRITTEN = 1.0
"""Share of the members without parts that are there. AWS leaves out some where its model lets it; that is the
subject of each reader's own tests."""


class _Reply:
    status_code = 200
    headers: dict[str, str] = {}


def hostile_account(seed: int, region: str = "us-west-2") -> Account:
    """Answers everything; the same seed gives the same answers."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    made = account(region)

    def respond(model: Any, **_: Any) -> tuple[Any, dict[str, Any]]:
        if chance.random() < 0.1:
            error = {"Code": text(chance), "Message": text(chance)}
            bad = _Reply()
            bad.status_code = 400
            return bad, {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 400}}
        parsed = value(model.output_shape, chance, 0) if model.output_shape else {}
        return _Reply(), {**parsed, "ResponseMetadata": {"HTTPStatusCode": 200}}

    made._session._session.register("before-call", respond)
    return made


def text(chance: random.Random) -> str:
    """One or two attacks."""
    return "".join(chance.sample(ATTACKS, chance.choice((1, 1, 2))))


NODE = "i-0123456789abcdef0"


def value(shape: Any, chance: random.Random, depth: int) -> Any:
    """A value of a shape of the API."""
    if shape.name in ("ClusterNodeId", "ClusterNodeLogicalId", "InstanceId") and chance.random() < 0.7:
        return NODE
    match shape.type_name:
        case "structure":
            return {
                name: value(member, chance, depth + 1)
                for name, member in shape.members.items()
                if "token" not in name.lower()
                and "marker" not in name.lower()
                # AWS writes lists and structures always, and leaves out what has no value
                and (member.type_name in ("list", "structure", "map") or chance.random() < WRITTEN)
                and depth < 7
            }
        case "list":
            return [value(shape.member, chance, depth + 1) for _ in range(chance.choice((0, 1, 1, 2)))]
        case "map":
            return {value(shape.key, chance, depth): value(shape.value, chance, depth + 1)}
        case "string":
            return chance.choice(shape.enum) if shape.enum and chance.random() < 0.8 else text(chance)
        case "boolean":
            return chance.random() < 0.5
        case "integer" | "long":
            return chance.choice((0, 1, 2, 7, 2**31))
        case "float" | "double":
            return chance.choice((0.0, 0.5, 1e300))
        case "timestamp":
            return datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
        case _:
            return io.BytesIO(b"\x1b[2J") if shape.serialization.get("streaming") else b"\x1b[2J"
