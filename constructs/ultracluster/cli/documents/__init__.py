"""Every document that `--json` prints: its number, the commands that print it, and its type.

A key that is removed, renamed or given another type makes a new number; new keys do not. The schemas in
`../schemas/` are written from the types by `make generate`.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

SCHEMAS = Path(__file__).parents[1] / "schemas"
"""The published JSON Schemas."""


class Document(NamedTuple):
    """One kind of document."""

    number: int
    commands: tuple[str, ...]
    what: str
    type: str
    """`module:name`, below `ultracluster`."""


_NODES = tuple(f"nodes {name}" for name in ("reboot", "replace", "delete", "health-check", "add"))

DOCUMENTS: dict[str, Document] = {
    "acceptance": Document(
        1, ("acceptance",), "The verdict on logs of nccl-tests", "acceptance.report:Report"
    ),
    "bundle": Document(
        1, ("doctor",), "What `doctor --bundle` wrote for AWS Support", "cli.documents.cluster:BundleDocument"
    ),
    "capacity": Document(
        1, ("capacity search",), "Offers of capacity", "cli.documents.cluster:CapacitySearch"
    ),
    "choose": Document(1, ("choose",), "Orchestrators by rank", "cli.documents.figures:Choice"),
    "connect": Document(1, ("connect",), "How a shell on a node is opened", "account.sessions:Session"),
    "cost": Document(1, ("cost",), "An estimate; null is unknown, never 0", "cli.documents.figures:Cost"),
    "diff": Document(1, ("diff",), "The blast radius of a change", "cli.documents.change:Diff"),
    "doctor": Document(1, ("doctor",), "What is wrong with a cluster", "cli.documents.cluster:Examined"),
    "environments": Document(
        1, ("list",), "Environments of a folder and of an account", "cli.documents.cluster:EnvironmentList"
    ),
    "error": Document(
        1, (), "Why a command was refused; any command prints it", "cli.documents.checks:Refusal"
    ),
    "image": Document(1, ("software show",), "What an image brings", "cli.documents.software:ImageDocument"),
    "images": Document(1, ("software show",), "Known machine images", "cli.documents.software:ImageList"),
    "job": Document(1, ("job submit",), "A job that was submitted", "cli.documents.jobs:JobDocument"),
    "job-plan": Document(
        1, ("job submit",), "What `job submit --dry-run` would send", "cli.documents.jobs:JobPlan"
    ),
    "jobs": Document(1, ("job list",), "Jobs of a scheduler", "cli.documents.jobs:JobList"),
    "move": Document(1, ("move",), "A plan of a move", "cli.documents.moves:MovePlan"),
    "import": Document(
        1, ("import",), "An environment made of another tool's file", "cli.documents.imports:Import"
    ),
    "node": Document(1, ("nodes list",), "A node in AWS's words", "cli.documents.cluster:NodeDocument"),
    "nodes": Document(1, ("nodes list",), "The nodes of an environment", "cli.documents.cluster:NodeList"),
    "observability": Document(
        1,
        ("apply",),
        "What was put into Grafana, and of HyperPod's extension",
        "cli.documents.observability:ObservabilityApplied",
    ),
    "outcomes": Document(
        1,
        (*_NODES, "software update", "nodes list"),
        "What came of a request for nodes or groups",
        "cli.documents.cluster:OutcomeList",
    ),
    "permissions": Document(
        1, ("permissions",), "IAM actions that the command needs", "cli.documents.software:Permissions"
    ),
    "placement": Document(
        1,
        ("job why",),
        "How far apart the nodes of a job are",
        "cli.documents.cluster:PlacementDocument",
    ),
    "plan": Document(1, ("plan",), "What an environment is made of", "plan.environment_plan:Plan"),
    "preflight": Document(
        1, ("preflight",), "Whether an account can deploy it", "cli.documents.checks:Preflight"
    ),
    "prices": Document(1, ("cost",), "Prices of AWS", "cli.documents.figures:PriceUpdate"),
    "purchase": Document(1, ("capacity buy",), "What was bought", "cli.documents.cluster:Purchase"),
    "release": Document(
        2, ("software show",), "A software release", "cli.documents.software:ReleaseDocument"
    ),
    "release-check": Document(
        1, ("software show",), "Whether a release's parts fit", "cli.documents.software:ReleaseCheck"
    ),
    "releases": Document(
        1, ("software show",), "The releases of this package", "cli.documents.software:ReleaseList"
    ),
    "rules": Document(1, ("rules",), "Rules with examples", "cli.documents.checks:RuleList"),
    "status": Document(
        1, ("status",), "How a deployed environment is", "cli.documents.cluster:StatusDocument"
    ),
    "teams": Document(1, ("apply",), "Teams as accounts of Slurm", "cli.documents.people:Teams"),
    "usage": Document(1, ("cost",), "Node-hours and money by user, team or job", "plan.usage:Usage"),
    "user-token": Document(1, ("users",), "A token of Slurm's REST API", "cli.documents.people:UserToken"),
    "users": Document(1, ("apply", "users"), "People's accounts on the nodes", "cli.documents.people:Users"),
    "validate": Document(
        1, ("validate",), "Findings in environment files", "cli.documents.checks:Validation"
    ),
    "wait": Document(1, ("wait",), "How a wait for nodes ended", "cli.documents.cluster:Waited"),
}


def schema_id(name: str) -> str:
    """`ultracluster.plan/1`."""
    return f"ultracluster.{name}/{DOCUMENTS[name].number}"


def schema_file(name: str) -> Path:
    """Where the schema of a document lies."""
    return SCHEMAS / f"{name}.json"
