"""A cluster of AWS PCS as its API shows it, with queues, node groups and their launch templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ultracluster.config.pcs import Pcs
from ultracluster.imports import launch_template
from ultracluster.imports.file_systems import add
from ultracluster.imports.ledger import Ledger, Part
from ultracluster.imports.outcome import Drafted
from ultracluster.imports.owner import of_account
from ultracluster.imports.pcluster_queues import slurm_settings
from ultracluster.imports.placing import place
from ultracluster.imports.reasons import reasons
from ultracluster.imports.states import state_row
from ultracluster.imports.surroundings import Asked

TOOL = "AWS PCS"
KIND = Pcs().kind
_GONE = ("DELETING", "DELETED")


def drafted(document: Mapping[str, Any], name: str, asked: Asked) -> Drafted:
    """Return what the cluster comes to as an environment.

    Args:
        document: `cluster`, `queues` and `groups` as PCS answers; groups with their `launchTemplate`'s data.
    """
    ledger = Ledger(reasons=reasons("EC2 launch template", "PCS"))
    top = ledger.part(document)
    cluster = top.part("cluster")
    state_row(ledger, "cluster.status", "the cluster", cluster.text("status") or "", _errors(cluster))
    queues, partitions = _queues(top)
    groups: dict[str, dict[str, Any]] = {}
    subnets: list[str] = []
    security: list[str] = []
    storage: dict[str, Any] = {}
    for part in top.parts("groups"):
        group, status = part.text("name") or part.text("id") or "", part.text("status") or ""
        part.text("id")
        template = part.part("launchTemplate")
        if status in _GONE:
            ledger.left(part.where, f"node group {group} is being deleted", "nothing to do")
            part.map_all()
            template.map_all()
            continue
        state_row(ledger, part.place("status"), f"node group {group}", status, _errors(part))
        own = queues.get(str(part.data.get("id")), [])
        groups[group] = _group(part, template, own)
        nets, names = part.texts("subnetIds"), launch_template.security_groups(template)
        names = [*part.texts("securityGroupIds"), *names]
        subnets = [*nets, *subnets] if own else [*subnets, *nets]
        security = [*names, *security] if own else [*security, *names]
        for system, folder in launch_template.mounts(template):
            where = template.place("UserData")
            add(storage, ledger, where, asked.around, system, folder or "/fsx")
    if not groups:
        ledger.refuse("groups", "the cluster has no node group", "an environment has one at least")
    types = [group["instance_type"] for group in groups.values() if group["role"] == "compute"]
    network = cluster.part("networking")
    subnets += network.texts("subnetIds")
    settled = place(ledger, asked, "", KIND, types, subnets=subnets, groups=list(dict.fromkeys(security)))
    of_account(ledger, asked.around.account if asked.around else "", "whose cluster it is")
    environment: dict[str, Any] = {
        "name": name,
        "account": asked.around.account if asked.around else "",
        **settled,
        "tags": {
            key: str(value) for key, value in top.map("tags").items() if not key.lower().startswith("aws:")
        },
        "storage": storage,
        "orchestrator": {
            "kind": KIND,
            **_settings(cluster, network),
            **({"partitions": partitions} if partitions else {}),
        },
        "node_groups": groups,
    }
    return Drafted(tool=TOOL, kind=KIND, data=environment, ledger=ledger)


def _queues(top: Part) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Queues of each group by its id, and settings of partitions by name."""
    found: dict[str, list[str]] = {}
    partitions: dict[str, Any] = {}
    for part in top.parts("queues"):
        name, status = part.text("name") or "", part.text("status") or ""
        if status in _GONE:
            top.ledger.left(part.where, f"queue {name} is being deleted", "nothing to do")
            part.map_all()
            continue
        state_row(top.ledger, part.place("status"), f"queue {name}", status, _errors(part))
        for one in part.parts("computeNodeGroupConfigurations"):
            found.setdefault(one.text("computeNodeGroupId") or "", []).append(name)
        if own := _slurm(part.part("slurmConfiguration"), "slurmCustomSettings"):
            partitions[name] = {"slurm_settings": own}
    return found, partitions


def _group(part: Part, template: Part, queues: list[str]) -> dict[str, Any]:
    ledger = part.ledger
    types = [one.text("instanceType") or "" for one in part.parts("instanceConfigs")] or [""]
    if not types[0]:
        ledger.refuse(part.place("instanceConfigs"), "the group names no instance type", "write one")
    if types[1:]:
        ledger.changed(
            part.place("instanceConfigs"), f"a group has one type, which leaves out {', '.join(types[1:])}",
            "make a group for each further type, with the same partition",
        )  # fmt: skip
    if queues[1:]:
        ledger.changed(
            part.where, f"a group is in one partition, {queues[0]}, and not in {', '.join(queues[1:])}",
            "make a group for each further partition, or join the queues",
        )  # fmt: skip
    scaling = part.part("scalingConfiguration")
    least, most = scaling.number("minInstanceCount") or 0, scaling.number("maxInstanceCount")
    group: dict[str, Any] = {
        "role": "compute" if queues else "login",
        **({"partition": queues[0]} if queues else {}),
        "instance_type": types[0],
        "count": least,
    }
    if most is not None and most != least:
        if queues:
            group["max_count"] = most
        else:
            group["count"] = least or most
    if image := part.text("amiId") or template.text("ImageId"):
        group["image"] = image
    option, spot = part.text("purchaseOption"), part.part("spotOptions").text("allocationStrategy")
    found = launch_template.capacity(
        template,
        block=option == "CAPACITY_BLOCK",
        interruptible=option == "INTERRUPTIBLE_CAPACITY_RESERVATION",
    )
    if option == "SPOT":
        found = {"kind": "spot", **({"allocation": spot} if spot else {})}
    if found:
        group["capacity"] = found
    group |= launch_template.root_volume(template) | launch_template.threads(template)
    slurm = part.part("slurmConfiguration")
    if (idle := slurm.number("scaleDownIdleTimeInSeconds")) is not None:
        group["scaledown_seconds"] = idle
    if own := _slurm(slurm, "slurmCustomSettings"):
        group["slurm_settings"] = own
    return group


def _settings(cluster: Part, network: Part) -> dict[str, Any]:
    slurm, scheduler = cluster.part("slurmConfiguration"), cluster.part("scheduler")
    scheduler.any("type")
    found: dict[str, Any] = {}
    if size := cluster.text("size"):
        found["size"] = size.lower()
    if version := scheduler.text("version"):
        found["slurm_version"] = version
    if (idle := slurm.number("scaleDownIdleTimeInSeconds")) is not None:
        found["scaledown_seconds"] = idle
    for key, name in (
        ("slurmCustomSettings", "slurm_settings"),
        ("slurmdbdCustomSettings", "slurmdbd_settings"),
        ("cgroupCustomSettings", "cgroup_settings"),
    ):
        if own := _slurm(slurm, key):
            found[name] = own
    accounting = slurm.part("accounting")
    if mode := accounting.text("mode"):
        days = accounting.number("defaultPurgeTimeInDays")
        kept = mode != "NONE"
        found["accounting"] = {
            "mode": "standard" if kept else "none",
            **({"purge_days": days} if kept and days is not None else {}),
        }
    if slurm.part("slurmRest").text("mode") == "STANDARD":
        found["rest"] = True
    if network.text("networkType") == "IPV6":
        found["network_type"] = "ipv6"
    return found


def _slurm(part: Part, key: str) -> dict[str, Any]:
    """Parameters by name; Slurm's own text of several lines has no place here."""
    pairs = {one.text("parameterName") or "": one.text("parameterValue") for one in part.parts(key)}
    plain = {name: _plain(value or "") for name, value in pairs.items()}
    return slurm_settings(plain, part.place(key), part.ledger)


def _plain(value: str) -> Any:
    return int(value) if value.isdigit() and len(value) < 10 else value


def _errors(part: Part) -> str:
    return "; ".join(
        f"{one.text('code') or ''}: {one.text('message') or ''}" for one in part.parts("errorInfo")
    )
