"""Calls of AWS's API that scripts make, read from their text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from botocore.loaders import Loader

from iam_proof.names import NODES
from iam_proof.world import World

OPTIONS = r"(?:--?[\w-]+(?:[= ][^\s-]\S*)?\s+)*"
WORD = "([a-z][a-z0-9-]+)"
CALL = re.compile(rf"(?<![\w.-])aws\s+{OPTIONS}{WORD}\s+{WORD}((?:\s+--?[\w-]+)*)")
"""`aws [option]... service command [option]...`, without quotes and commas: lists of arguments, too."""
SDK = re.compile(r"\bboto3\b|\bbotocore\b|--aws-sigv4\b")
"""Other ways to call, which this does not read."""
COMMANDS = {
    ("s3", "cp"): ["s3:GetObject"],
    ("s3", "cp", "--recursive"): ["s3:GetObject", "s3:ListBucket"],
}
"""Actions of a command, where its name does not say them. What nodes copy is copied from S3."""


def actions_in(text: str) -> set[str]:
    """IAM actions of the commands of the AWS CLI in a script.

    Raises:
        LookupError: a command of the CLI that is made of several calls, and is not among `COMMANDS`.
    """
    found: set[str] = set()
    for service, command, options in CALL.findall(re.sub(r"""["',]""", " ", text)):
        flags = tuple(one for one in ("--recursive",) if one in options.split())
        if (service, command, *flags) in COMMANDS:
            found |= set(COMMANDS[service, command, *flags])
        elif service == "s3":
            raise LookupError(f"aws s3 {command}: name its actions in {Path(__file__).name}")
        elif service in _services():
            found.add(f"{service}:{''.join(word.capitalize() for word in command.split('-'))}")
    return found


@cache
def _services() -> frozenset[str]:
    return frozenset(Loader().list_available_services("service-2"))


def scripts(folder: Path) -> Iterator[tuple[str, str]]:
    """(name, text without comments) of what runs on nodes."""
    for file in sorted(folder.rglob("*")):
        if file.suffix in (".sh", ".py", ".sbatch", ".service"):
            text = file.read_text(encoding="utf-8")
            yield str(file.relative_to(folder)), re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)


def user_data(world: World) -> Iterator[tuple[str, str]]:
    """(logical id, text) of what templates give nodes to run."""
    for logical, mine in world.each(*NODES):
        yield logical, json.dumps(mine).replace("\\n", "\n")
