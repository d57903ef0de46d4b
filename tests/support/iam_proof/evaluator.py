"""The evaluator's process: `@cloud-copilot/iam-simulate` behind `tests/iam_evaluator/evaluate.mjs`."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from needs import without_setup
from project import ROOT

FOLDER = ROOT / "tests" / "iam_evaluator"
PROGRAM = FOLDER / "evaluate.mjs"
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of AWS's API, with the names of all policies that have a say in it."""

    principal: str | None
    """ARN of the session or user, or name of a service; None is an unsigned call."""
    action: str
    resource: str
    account: str
    """Of the resource."""
    context: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    identity: Sequence[str] = ()
    boundary: Sequence[str] | None = None
    session: str | None = None
    resourcePolicy: str | None = None  # noqa: N815 (as evaluate.mjs names it)
    endpoint: str | None = None
    blockPublicAccess: bool = False  # noqa: N815


@dataclass(frozen=True, slots=True)
class Answer:
    result: str
    """`Allowed`, `ExplicitlyDenied`, `ImplicitlyDenied`, or `Error`: the question made no sense."""
    by: tuple[str, ...]
    """Kinds of policies that denied what others allow: identity, resource, vpce, pb, s3-bpa."""
    ignored: tuple[str, ...]
    """Keys of the context that the action does not have."""
    error: str | None

    @property
    def allowed(self) -> bool:
        return self.result == "Allowed"


def why_not_here() -> str | None:
    """What is missing on this machine; None where the evaluator can run."""
    if not (FOLDER / "node_modules").is_dir():
        return without_setup("the IAM evaluator")
    return None if shutil.which("node") else without_setup("node")


class Evaluator:
    """One process for as many batches as there are; a context manager."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["node", str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=600)

    def ask(self, policies: Mapping[str, Document], requests: Sequence[Request]) -> list[Answer]:
        """Answers in the order of the requests.

        Args:
            policies: documents by the names that requests use; those of earlier batches stay known.
            requests: what to ask.

        Raises:
            RuntimeError: the process ended.
        """
        assert self._process.stdin and self._process.stdout
        batch = {"policies": policies, "requests": [asdict(one) for one in requests]}
        self._process.stdin.write(json.dumps(batch) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the IAM evaluator ended: see its standard error above")
        return [
            Answer(one["result"], tuple(one["by"]), tuple(one["ignored"]), one["error"])
            for one in json.loads(line)["answers"]
        ]
