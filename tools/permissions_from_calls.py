"""The permissions document and policies, from the calls that the sources make.

    python tools/permissions_from_calls.py           # writes permissions.json and docs/permissions.md
    python tools/permissions_from_calls.py --check   # exit code 1 if they are not what it would write

Every `.client("service")` is found in the syntax trees of the package, and every method, paginator and waiter
that is called on it. botocore's models turn methods into operations, `iam_actions.json` beside this file
operations into IAM actions where the two names differ.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from botocore import xform_name
from botocore.session import Session

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "constructs" / "ultracluster"
POLICIES = PACKAGE / "account" / "permissions.json"
PAGE = ROOT / "docs" / "permissions.md"
READING = (
    "Describe", "List", "Get", "Head", "Search", "Filter", "Simulate", "BatchGet", "Lookup", "Assume",
    "Detect",
)  # fmt: skip
"""First words of operations that change nothing (AWS's own verbs)."""
KEYS = ("GetSecretValue",)
"""Operations that change nothing, and hand out what opens something."""
MIRRORS = ("supply/mirror_bucket.py",)
"""Modules that write to a bucket: a policy of their own."""
BUYS = ("capacity/buying.py",)
"""Modules that spend money: a policy of their own."""
BILLS = ("account/spending.py",)
"""Modules that read the bill, which is that of the whole account: a policy of their own."""
DEPLOYS = ("account/delete_logs.py", "change/policy_openings.py")
"""Modules that act while stacks are deployed: nobody else has to have their rights."""


@dataclass(frozen=True, slots=True, order=True)
class Call:
    """One operation that a module asks for."""

    service: str
    operation: str
    module: str

    @property
    def group(self) -> str:
        if self.module in MIRRORS:
            return "mirror"
        if self.module in BUYS:
            return "buy"
        if self.module in BILLS:
            return "bill"
        if self.module in DEPLOYS:
            return "deploy"
        if self.operation in KEYS:
            return "act"
        return "read" if self.operation.startswith(READING) else "act"


class UnknownCallError(Exception):
    """A call on a client that is no operation of its service, or whose service cannot be told."""


@cache
def operations(service: str) -> dict[str, str]:
    """Method names of a client to operations."""
    names: list[str] = _session().get_service_model(service).operation_names  # type: ignore[assignment]
    return {xform_name(name): name for name in names}


@cache
def _session() -> Session:
    return Session()


@cache
def exceptions() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("iam_actions.json").read_text(encoding="utf-8"))


def calls_of(source: str, module: str) -> set[Call]:
    """Every operation that a module's source asks for.

    Raises:
        UnknownCallError: a method of a client is no operation, or a paginator's name cannot be found.
    """
    tree = ast.parse(source)
    named = {service for node in ast.walk(tree) if (service := _service(node))}
    if not named:
        return set()
    found: set[Call] = set()
    for scope in _scopes(tree):
        clients = _clients(scope)
        for node in _own_nodes(scope):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            receiver, method = node.func.value, node.func.attr
            service = _service(receiver) or (
                clients.get(receiver.id) if isinstance(receiver, ast.Name) else None
            )
            if service:
                found |= {
                    Call(service, operation, module)
                    for operation in _asked(service, method, node, tree, module)
                }
            elif _known(
                method, named
            ):  # a client that was handed over: any service of the module that has it
                found |= {
                    Call(one, operation, module)
                    for one in named
                    for operation in _asked(one, method, node, tree, module, sure=False)
                }
    return found


def _asked(
    service: str, method: str, node: ast.Call, tree: ast.AST, module: str, *, sure: bool = True
) -> Iterator[str]:
    injected = exceptions()["injected"].get(service, {})
    if method in ("get_paginator", "get_waiter"):
        argument = node.args[0]
        if isinstance(argument, ast.Constant):
            names = {str(argument.value)}
        else:  # chosen while it runs: every string of the module that could be meant
            names = {text for text in _strings(tree) if text in operations(service)}
        if method == "get_waiter":
            names = {_waited(service, name) for name in names}
        for name in names:
            if name in operations(service):
                yield operations(service)[name]
            elif sure:
                raise UnknownCallError(f"{module}: {service} has no operation {name}")
    elif method in injected:
        yield from injected[method]
    elif method in operations(service):
        yield operations(service)[method]
    elif sure and method not in ("close", "can_paginate"):
        raise UnknownCallError(f"{module}: {service} has no operation {method}")


def _waited(service: str, waiter: str) -> str:
    model: Any = _session().get_waiter_model(service)
    names = {xform_name(name): name for name in model.waiter_names}
    return xform_name(model.get_waiter(names[waiter]).operation)


def _known(method: str, services: set[str]) -> bool:
    return method in ("get_paginator", "get_waiter") or any(
        method in operations(one) or method in exceptions()["injected"].get(one, {}) for one in services
    )


def _service(node: ast.AST) -> str | None:
    """The service of `anything.client("service")`."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "client"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    ):
        return str(node.args[0].value)
    return None


def _scopes(tree: ast.Module) -> Iterator[ast.AST]:
    yield tree
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope without those of functions that it names."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.FunctionDef):
            yield node
            waiting.extend(ast.iter_child_nodes(node))


def _clients(scope: ast.AST) -> dict[str, str]:
    """Variables of a scope that hold clients."""
    found: dict[str, str] = {}
    for node in _own_nodes(scope):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Name) and (service := _service(node.value)):
                found[target.id] = service
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for name, value in zip(target.elts, node.value.elts, strict=False):
                    if isinstance(name, ast.Name) and (service := _service(value)):
                        found[name.id] = service
    return found


def _strings(tree: ast.AST) -> set[str]:
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def all_calls() -> list[Call]:
    """Every operation that the package asks for."""
    found: set[Call] = set()
    for file in sorted(PACKAGE.rglob("*.py")):
        if "lifecycle_scripts" in file.parts:
            continue  # runs on nodes, with their roles
        found |= calls_of(file.read_text(encoding="utf-8"), str(file.relative_to(PACKAGE)))
    return sorted(found)


def actions_of(call: Call) -> list[str]:
    """The IAM actions of an operation; none where it needs no permission."""
    table = exceptions()["operations"].get(call.service, {})
    if call.operation in table:
        return list(table[call.operation])
    return [f"{exceptions()['prefixes'].get(call.service, call.service)}:{call.operation}"]


def document() -> dict[str, Any]:
    """What `permissions.json` holds."""
    calls = all_calls()
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for call in calls:
        row = rows.setdefault(
            (call.group, call.service, call.operation),
            {
                "group": call.group,
                "service": call.service,
                "operation": call.operation,
                "actions": actions_of(call),
                "modules": [],
            },
        )
        row["modules"].append(call.module)
    beside = exceptions()["beside"]
    policies: dict[str, Any] = {}
    for group in exceptions()["groups"]:
        actions = {action for row in rows.values() if row["group"] == group for action in row["actions"]}
        actions |= {action for row in beside if row["group"] == group for action in row["actions"]}
        policies[group] = _policy(group, actions - exceptions()["named"].keys())
    return {
        "about": {
            "what": "What the command asks of AWS, and IAM policies that allow it.",
            "made_by": "tools/permissions_from_calls.py",
            "source": "the calls in the package's sources; botocore's service models; "
            + exceptions()["about"]["source"],
        },
        "groups": exceptions()["groups"],
        "policies": policies,
        "named": {
            group: sorted(
                {action for row in rows.values() if row["group"] == group for action in row["actions"]}
                & exceptions()["named"].keys()
            )
            for group in exceptions()["groups"]
        },
        "calls": [rows[key] for key in sorted(rows)],
        "beside": beside,
    }


def _policy(group: str, actions: set[str]) -> dict[str, Any]:
    by_resource: dict[tuple[str, ...], list[str]] = {}
    known = exceptions()["resources"]
    for action in sorted(actions):
        resources = known.get(f"{group} {action}") or known.get(action, ["*"])
        by_resource.setdefault(tuple(resources), []).append(action)
    statements = [
        {
            "Sid": f"Ultracluster{group.capitalize()}{number}",
            "Effect": "Allow",
            "Action": names,
            "Resource": list(resources),
        }
        for number, (resources, names) in enumerate(sorted(by_resource.items()), 1)
    ]
    return {"Version": "2012-10-17", "Statement": statements}


INTRODUCTION = (
    "What the `ultracluster` command asks of AWS. `ultracluster permissions --policy` prints a policy that "
    "allows it. A call that is not allowed costs its own answer only: the row says which action is missing."
)
ONE = (
    "`ultracluster permissions ENVIRONMENT --policy` prints one for that environment only: limited to its "
    "nodes by their tags, to its stacks, session documents, logs, buckets and roles by name, and for the "
    "rest to its Region. It has a group more: `people`, for those who only use the cluster, who get a "
    "session as the ordinary user, and end their own; with `--ssh` these sessions may carry [SSH](ssh.md). "
    "The id of a HyperPod cluster is known once it is there: print the policy again with `--deployed` then, "
    "or sessions may be opened on every HyperPod cluster of the Region."
)
DEPLOY = (
    "`cdk deploy` is not in here: it works through the roles that `cdk bootstrap` made, and `ultracluster "
    "preflight` asks IAM's simulator whether these may do what the stacks need."
)


def page(made: dict[str, Any]) -> str:
    """What `docs/permissions.md` holds."""
    lines = [
        "# Permissions",
        "",
        INTRODUCTION,
        "",
        ONE,
        "",
        DEPLOY,
        "",
        "This page is generated from the calls in the sources.",
    ]
    for group, what in made["groups"].items():
        lines += ["", f"## {group}", "", what, "", "| IAM action | call | from |", "|---|---|---|"]
        for row in made["calls"]:
            if row["group"] == group:
                actions = ", ".join(row["actions"]) or "none needed"
                modules = ", ".join(row["modules"])
                lines.append(f"| {actions} | {row['service']} {row['operation']} | {modules} |")
        lines += [
            f"| {', '.join(row['actions'])} | `{row['call']}` | {row['module']} |"
            for row in made["beside"]
            if row["group"] == group
        ]
        lines += [
            f"\n`{action}`: {why}"
            for action, why in exceptions()["named"].items()
            if action in made["named"][group]
        ]
    return "\n".join(lines) + "\n"


def main() -> int:
    made = document()
    wanted = {POLICIES: json.dumps(made, indent=2) + "\n", PAGE: page(made)}
    stale = [
        file for file, text in wanted.items() if not file.exists() or file.read_text(encoding="utf-8") != text
    ]
    if "--check" in sys.argv[1:]:
        for file in stale:
            sys.stderr.write(f"{file.relative_to(ROOT)} is not what tools/permissions_from_calls.py writes\n")
        return 1 if stale else 0
    for file in stale:
        file.write_text(wanted[file], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
