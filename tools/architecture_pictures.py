"""Pictures of the architecture, drawn from the code: stacks, network, a node's first boot, layers."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from ultracluster.config.environment import STACK_PARTS, StackPart
from ultracluster.lifecycle.selection import steps_of
from ultracluster.model.stack_guards import GUARDED_PARTS
from ultracluster.network.admission import LUSTRE
from ultracluster.plan.picture_canvas import DIM, Box, Canvas, card_height, text_width, wrap
from ultracluster.plan.picture_symbols import symbol
from ultracluster.scripts_folder import scripts_folder
from ultracluster.stacks.environment import WAITS_FOR

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 1200
_GREEN, _TEAL, _PURPLE, _BLUE, _ORANGE, _EDGE = (
    "#567309",
    "#00807f",
    "#7a3ee0",
    "#106fa6",
    "#b04f00",
    "#c9d1da",
)
_PALE_GREEN, _PALE_TEAL, _PALE_ORANGE = "#f6f9ee", "#f1fafa", "#fffaf4"

HOLDS: dict[StackPart, tuple[str, str]] = {
    "foundation": ("closed", "key; log group of a Kubernetes control plane"),
    "observability": ("slurm", "workspace of metrics, alerts, Grafana"),
    "network": ("endpoint", "VPC, subnets, the nodes' security group"),
    "egress": ("nat", "NAT gateway, VPC endpoints, flow logs"),
    "buckets": ("s3", "buckets; the role that uploads scripts"),
    "storage": ("lustre", "Lustre, OpenZFS, accounting database"),
    "repositories": ("s3", "data repository associations"),
    "control-plane": ("eks", "EKS, its first add-ons, admins"),
    "protection": ("closed", "deletion protection, stack policies"),
    "system": ("eks", "system nodes, add-ons, charts, schedulers"),
    "cluster": ("nodes", "the nodes that run jobs, their roles and scripts"),
    "workloads": ("openzfs", "volumes of pods, HyperPod's add-ons"),
    "alarms": ("slurm", "alarms on file systems, database, logs"),
}
"""Symbol of each stack, and what is in it."""
ONLY_KUBERNETES: tuple[StackPart, ...] = ("control-plane", "system", "workloads")

PACKAGES = {
    "catalog": "what AWS offers: data with source and date",
    "config": "what a user may ask for: models, YAML, JSON Schema",
    "software": "releases, locks, what an image lacks",
    "acceptance": "judgements of test runs",
    "model": "what an environment comes to, resolved once",
    "rules": "what AWS refuses or breaks silently",
    "kubernetes": "queues, charts' values",
    "metrics": "alerts, boards",
    "slurm": "settings, accounts",
    "guard": "rules for constructs",
    "project": "a folder of environments",
    "plan": "figures without an account",
    "parallelcluster": "its configuration",
    "security": "keys, roles, sessions",
    "account": "a live account",
    "moving": "to another zone",
    "network": "VPC, EFA group",
    "observability": "logs, events",
    "change": "what is lost",
    "supply": "mirrors, locks",
    "imports": "other clusters",
    "capacity": "offers, orders",
    "jobs": "texts, queues",
    "serving": "model servers",
    "storage": "Lustre, buckets",
    "lifecycle": "node scripts",
    "clusters": "one folder for each orchestrator",
    "stacks": "what is deployed as one",
    "app": "an environment file to stacks",
    "testing": "snapshot tests for teams",
    "cli": "the command: arguments, words",
}
"""Contents of each package, in a few words."""
_SELF = "to itself, in and out: EFA asks for it"
_NO_WAY = "there is no other way out"
_ADMITTED = "admitted by rules, as Lustre is"
_PRIVATE = "private unless the file asks"
_SESSIONS = "shells through Session Manager"
ENTRY = "hyperpod_on_init_complete"
"""Whose steps are drawn."""


def pictures() -> Iterator[tuple[str, str]]:
    """Name and SVG of each."""
    yield "stacks", stacks()
    yield "network", network()
    yield "first-boot", first_boot()
    yield "layers", layer_picture()


@cache
def depth(part: StackPart) -> int:
    """How many stacks are deployed before one, on its longest way."""
    return max((depth(first) + 1 for first in WAITS_FOR[part]), default=0)


def nearest(part: StackPart) -> list[StackPart]:
    """The stacks that one waits for, without those that these wait for themselves."""
    firsts = WAITS_FOR[part]
    behind = {far for first in firsts for far in WAITS_FOR[first]}
    return [first for first in firsts if first not in behind]


def stacks() -> str:
    """Columns: what is deployed side by side."""
    canvas = Canvas(WIDTH, icons=symbol)
    canvas.text(20, 34, "The stacks of one environment", size=20, bold=True)
    canvas.text(
        20, 56, "Each column waits for stacks to its left; within a column all are made at once.", color=DIM
    )
    last = max(map(depth, STACK_PARTS))
    width = (WIDTH - 40 - 24 * last) / (last + 1)
    bottom = 0.0
    for column in range(last + 1):
        left, y = 20 + column * (width + 24), 96.0
        there: list[StackPart] = [one for one in STACK_PARTS if depth(one) == column]
        for part in there:
            kept = part in GUARDED_PARTS
            words, after = HOLDS[part][1], nearest(part)
            lines = [part, *wrap(words, width - 84)]
            lines += wrap(f"after {', '.join(after)}", width - 84) if after else ["waits for nothing"]
            if part in ONLY_KUBERNETES:
                lines.append("with Kubernetes only")
            box = Box(left, y, width, card_height(lines))
            canvas.card(box, HOLDS[part][0], lines, color=_GREEN if kept else _EDGE)
            y = box.bottom + 14
        bottom = max(bottom, y)
    canvas.square(Box(20, bottom + 4, 12, 12), _GREEN, filled=True)
    canvas.text(
        40,
        bottom + 14,
        "holds data: with protect: true CloudFormation refuses to replace or delete it",
        color=DIM,
    )
    return canvas.svg(bottom + 36, "The stacks of one environment, and what waits for what")


def network() -> str:
    """One zone for what is fast; two where a service asks for two."""
    canvas, below = Canvas(WIDTH, icons=symbol), Canvas(WIDTH)
    canvas.text(20, 34, "The network of one environment", size=20, bold=True)
    canvas.text(
        20,
        56,
        "Nodes are in one zone and one subnet, whose size does not depend on how many they are.",
        color=DIM,
    )
    ports = ", ".join(
        f"{one.from_port}" if one.from_port == one.to_port else f"{one.from_port}-{one.to_port}"
        for one in LUSTRE
    )
    left, middle, right = (62.0, 360.0), (446.0, 340.0), (852.0, 300.0)
    first, second, third = 196.0, 300.0, 448.0
    lustre = f"TCP {ports} from and to the nodes"
    cards: tuple[tuple[tuple[float, float], float, str, list[str]], ...] = (
        (left, first, "nodes", ["nodes", "one security group, which lets everything", _SELF]),
        (middle, first, "lustre", ["Lustre", "a group of its own, for ever", lustre]),
        (left, second, "endpoint", ["VPC endpoints", "TCP 443 from the nodes; with egress: closed", _NO_WAY]),
        (middle, second, "openzfs", ["OpenZFS", "homes over NFS, a group of its own", _ADMITTED]),
        (
            (62.0, 724.0),
            third,
            "nat",
            ["public subnet: NAT gateway", "with egress: nat only; nothing comes in"],
        ),
        (right, first, "database", ["accounting database", "RDS, in subnets of its own;", "with Slurm"]),
        (right, second, "eks", ["Kubernetes API", "interfaces of the control plane,", _PRIVATE]),
        (right, third, "internet", ["nothing from outside", "no public address, no SSH:", _SESSIONS]),
    )
    for (x, width), y, name, lines in cards:
        canvas.card(Box(x, y, width, card_height(lines)), name, lines)
    below.frame(Box(20, 84, 1160, 464), "VPC", _PURPLE)
    below.frame(Box(36, 118, 776, 414), "zone of the nodes, named by its id", _BLUE, dashed=True)
    below.frame(Box(48, 154, 752, 248), "node subnet", _TEAL, fill=_PALE_TEAL)
    below.frame(Box(836, 118, 332, 284), "two zones", _BLUE, dashed=True)
    canvas.put_below(below)
    return canvas.svg(568, "VPC, zone, node subnet and security groups")


def first_boot() -> str:
    """The steps of one entry in their order, and what a node then is."""
    canvas = Canvas(WIDTH, icons=symbol)
    canvas.text(20, 34, "First boot of a node: HyperPod with Slurm", size=20, bold=True)
    canvas.text(
        20,
        56,
        "Each step looks first (detect), installs what is missing, verifies, and reports one line.",
        color=DIM,
    )
    needed = never_lacking()
    x, y = 20.0, 84.0
    for step in steps_of(scripts_folder(), ENTRY):
        name = "your own steps" if step == "own" else step
        width = text_width(name, 13, bold=True) + 24
        if x + width > WIDTH - 20:
            x, y = 20.0, y + 40
        must = step in needed
        canvas.frame(
            Box(x, y, width, 30), name, _ORANGE if must else _TEAL, fill=_PALE_ORANGE if must else _PALE_TEAL
        )
        x += width + 8
    y += 62
    canvas.square(Box(20, y - 11, 12, 12), _ORANGE, filled=True)
    canvas.text(40, y, "a node cannot be without it, as far as its type and file have it", color=DIM)
    verdicts = (
        ("node", _TEAL, ["READY", "everything is there", "and works: takes jobs"]),
        ("node", _GREEN, ["DEGRADED", "takes jobs, and its last line", "names what it goes without"]),
        ("node", _ORANGE, ["FAILED", "its last line names the step", "and the first cause"]),
    )
    width = (WIDTH - 40 - 2 * 24) / 3
    for place, (name, color, lines) in enumerate(verdicts):
        canvas.card(
            Box(20 + place * (width + 24), y + 20, width, card_height(lines)), name, lines, color=color
        )
    return canvas.svg(
        y + 20 + card_height([""] * 3) + 20, "The steps of a node's first boot and its verdicts"
    )


def never_lacking() -> set[str]:
    """Steps without which a node fails, by lib/steps.sh."""
    text = (scripts_folder() / "lib" / "steps.sh").read_text(encoding="utf-8")
    found = re.search(r'STEPS_NEVER_LACKING="([^"]+)"', text)
    assert found
    return set(found[1].split())


def contracts() -> list[dict[str, Any]]:
    """What `lint-imports` holds the code to."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["tool"]["importlinter"]["contracts"]


def layers() -> list[list[str]]:
    """Layers of the code, the lowest last; packages that do not import each other side by side."""
    rows: list[str] = next(one["layers"] for one in contracts() if one["type"] == "layers")
    return [[name.strip().removeprefix("ultracluster.") for name in row.split("|")] for row in rows]


def without_cdk() -> set[str]:
    """Packages that never import the CDK."""
    rooms: list[str] = next(one for one in contracts() if "aws_cdk" in one.get("forbidden_modules", ()))[
        "source_modules"
    ]
    return {name.removeprefix("ultracluster.") for name in rooms}


def layer_picture() -> str:
    """A module imports only from layers below its own."""
    canvas = Canvas(WIDTH, icons=symbol)
    canvas.text(20, 34, "The layers of the code", size=20, bold=True)
    canvas.text(
        20,
        56,
        "A module imports only from below, and the two wings do not import each other.",
        color=DIM,
    )
    y = 76.0
    fast = without_cdk()
    for row in layers():
        width = (WIDTH - 40 - 12 * (len(row) - 1)) / len(row)
        for place, name in enumerate(row):
            left = 20 + place * (width + 12)
            color, fill = (_TEAL, _PALE_TEAL) if name in fast else (_ORANGE, _PALE_ORANGE)
            canvas.frame(Box(left, y, width, 48), name, color, fill=fill)
            canvas.text(left + 12, y + 38, PACKAGES[name], size=12, color=DIM)
        y += 54
    canvas.square(Box(20, y + 8, 12, 12), _ORANGE, filled=True)
    canvas.text(40, y + 18, "uses the CDK", color=DIM)
    canvas.square(Box(160, y + 8, 12, 12), _TEAL, filled=True)
    canvas.text(180, y + 18, "never imports the CDK", color=DIM)
    return canvas.svg(y + 40, "The layers of the code, the highest on top")
