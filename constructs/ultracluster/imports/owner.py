"""Whose a file is: account and Region by the ARNs and addresses in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

from ultracluster.imports.ledger import Ledger

_ARN = re.compile(r"^arn:aws[a-z-]*:[a-z0-9-]+:([a-z0-9-]*):([0-9]{12}):")
_DNS = re.compile(r"^fs-[0-9a-z]+\.fsx\.([a-z0-9-]+)\.")


def owner(data: object) -> tuple[str, str]:
    """Account and Region; empty where nothing in the file has one, or where it has several."""
    matches = [match for text in _texts(data) if (match := _ARN.match(text))]
    regions = {match[1] for match in matches if match[1]}
    regions |= {match[1] for text in _texts(data) if (match := _DNS.match(text))}
    return _only({match[2] for match in matches}), _only(regions)


def of_account(ledger: Ledger, account: str, whose: str = "by the ARNs in the file") -> None:
    """A row that says where the account comes from."""
    if account:
        ledger.assumed("account", f"{account}, {whose}", "remove it for another account")


def _only(found: set[str]) -> str:
    return found.pop() if len(found) == 1 else ""


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in cast("Mapping[object, object]", value).values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            yield from _texts(one)
