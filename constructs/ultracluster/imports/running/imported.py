"""A running cluster as an environment that is not judged yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, explain, plain_errors
from ultracluster.config.plain_text import one_line
from ultracluster.imports import eks_running, hyperpod_running, pcluster, pcs_running
from ultracluster.imports.ledger import ImportRefusedError, Ledger, Wrong
from ultracluster.imports.outcome import Drafted
from ultracluster.imports.reading import configuration, plain_name
from ultracluster.imports.reasons import reasons
from ultracluster.imports.running import documents
from ultracluster.imports.running.around import around
from ultracluster.imports.running.asking import EKS, HYPERPOD, PCLUSTER_VERSION, PCS, find
from ultracluster.imports.running.documents import Notes, below
from ultracluster.imports.states import state_row
from ultracluster.imports.surroundings import Asked, Surroundings


def imported(
    account: Account,
    cluster: str,
    asked: Asked,
    kind: str | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Drafted:
    """Return what a running cluster comes to as an environment.

    Args:
        asked: name and zone that the user chose; the account adds the rest.
        parameters: HyperPod's provisioning_parameters.json, where the user has it as a file.

    Raises:
        AccountError: there is no such cluster, or AWS cannot be asked.
        ImportRefusedError: no environment can be made of it.
    """
    found = find(account, cluster, kind)
    notes = Notes()
    name = asked.name or f"{plain_name(cluster)[:26].rstrip('-')}-new"
    with plain_errors():
        draft = _drafted(account, cluster, found.kind, found.answer, (name, asked), parameters, notes)
    if not asked.name:
        draft.ledger.assumed(
            "name", f"{name}: the running cluster keeps its own", "pass --name for another"
        )  # fmt: skip
    for what, why in notes.unread.items():
        draft.ledger.left(what, f"it could not be read: {why}", "look at it there, and write what is missing")
    return draft


def _drafted(
    account: Account,
    cluster: str,
    kind: str,
    answer: dict[str, Any],
    named: tuple[str, Asked],
    parameters: Mapping[str, Any] | None,
    notes: Notes,
) -> Drafted:
    name, asked = named

    looks: list[Surroundings] = []

    def know(document: Mapping[str, Any]) -> Asked:
        looks.append(around(account, document, cluster, notes))
        return Asked(name=asked.name, region=account.region, zone_id=asked.zone_id, around=looks[-1])

    if kind == HYPERPOD:
        document = documents.hyperpod(account, answer, notes)
        slurm = "Eks" not in below(answer, "Orchestrator")
        if parameters is None and slurm and not _roles_are_said(answer):
            parameters = documents.lifecycle_parameters(account, answer, notes)
        draft = hyperpod_running.drafted(
            document, name, know({**document, "parameters": dict(parameters or {})}), parameters
        )
        return draft if slurm else _with_control_plane(account, draft, answer, notes, looks[-1])
    if kind == PCS:
        document = documents.pcs(account, answer, notes)
        draft = pcs_running.drafted(document, name, know(document))
    elif kind == EKS:
        document = documents.eks(account, answer, notes)
        draft = eks_running.drafted(document, name, know(document))
    else:
        draft = _parallelcluster(account, cluster, answer, name, know)
    _reserved(draft, looks[-1] if looks else None)
    return draft


def _roles_are_said(answer: dict[str, Any]) -> bool:
    """Whether groups say what they are: then there is no provisioning_parameters.json beside the scripts."""
    groups: list[dict[str, Any]] = answer.get("InstanceGroups") or []
    return any(below(group, "SlurmConfig").get("NodeType") for group in groups)


def _parallelcluster(account: Account, cluster: str, stack: dict[str, Any], name: str, know: Any) -> Drafted:
    """The configuration that the cluster was last made with, from where ParallelCluster keeps it."""
    tags = {tag.get("Key"): tag.get("Value", "") for tag in stack.get("Tags", [])}
    version = str(tags.get(PCLUSTER_VERSION, ""))
    if not version.startswith("3."):
        raise _refused(
            cluster, f"was made by ParallelCluster {one_line(version)}",
            "`pcluster3-config-converter` makes a configuration of version 3, which can be imported",
        )  # fmt: skip
    try:
        where, text = documents.parallelcluster(account, stack)
    except AWS_ERRORS as error:
        raise _refused(
            cluster, f"its configuration could not be read: {explain(error)}",
            "`pcluster describe-cluster` prints its address, for a while: download it, and import the file",
        ) from None  # fmt: skip
    if not where:
        raise _refused(
            cluster, "its stack does not say where its configuration is",
            "`pcluster describe-cluster` prints the address: import the file",
        )  # fmt: skip
    data = configuration(where, text)
    if not pcluster.is_configuration(data):
        raise _refused(where, "is no configuration of ParallelCluster", "import the file itself")
    asked: Asked = know(data)
    draft = pcluster.drafted(data, name, asked)
    status, why = str(stack.get("StackStatus", "")), str(stack.get("StackStatusReason") or "")
    state_row(draft.ledger, "StackStatus", "the cluster's stack", status, why)
    if asked.around and asked.around.account:
        draft.data["account"] = asked.around.account
    return draft


def _with_control_plane(
    account: Account, draft: Drafted, answer: dict[str, Any], notes: Notes, known: Surroundings
) -> Drafted:
    """A cluster of HyperPod on EKS with what its control plane is like, and with its other nodes."""
    arn = str(below(below(answer, "Orchestrator"), "Eks").get("ClusterArn") or "")
    name = arn.rpartition("/")[2]

    def ask() -> dict[str, Any]:
        cluster = dict(account.client("eks").describe_cluster(name=name)["cluster"])
        return documents.eks(account, cluster, notes)

    document = notes.attempt(f"the EKS cluster {one_line(name)}", ask, None)
    if document is None:
        return draft
    other = Ledger(reasons=reasons("EC2 launch template", "EKS"))
    top = other.part(document)
    control = eks_running.control_plane(top, draft.data, known)
    for key in ("name", "status", "deletionProtection", "encryptionConfig", "tags"):
        top.part("cluster").any(key)
    system: dict[str, Any] = {}
    for part in top.parts("nodegroups"):
        group = part.text("nodegroupName") or ""
        part.any("subnets")
        if (settings := eks_running.node_group(group, part)) is not None:
            system[group] = {"role": "system", **settings}
    groups = {
        group: one
        for group, one in draft.data["node_groups"].items()
        if not system or one["role"] != "system"
    }
    draft.data["orchestrator"] = {**draft.data["orchestrator"], **control}
    draft.data["node_groups"] = {
        **{(group if group not in groups else f"eks-{group}"): one for group, one in system.items()},
        **groups,
    }
    taken = ("orchestrator.admins", "Orchestrator.Eks.ClusterArn", *(["node_groups."] if system else []))
    rows = [row for row in draft.ledger.rows if not row.where.startswith(taken)]
    draft.ledger.rows[:] = [*rows, *other.close()]
    return draft


def _reserved(draft: Drafted, around: Surroundings | None) -> None:
    """Rows for open reservations that the groups' nodes go into by themselves."""
    zone = draft.data.get("network", {}).get("zone_id")
    free = (
        [reservation for reservation in around.reservations if reservation.open and not reservation.block]
        if around
        else []
    )
    for name, group in draft.data.get("node_groups", {}).items():
        fitting = [] if "capacity" in group else free
        for one in fitting:
            if (one.instance_type, one.zone_id) == (group.get("instance_type"), zone):
                draft.ledger.assumed(
                    f"node_groups.{name}.capacity",
                    f"the account has the open reservation {one.id} ({one.count} x {one.instance_type}), "
                    "which nodes go into by themselves",
                    "write `capacity: {kind: reservation}` if the group is to have it, with its "
                    "placement_group where it was made in one",
                )


def _refused(where: str, message: str, instead: str) -> ImportRefusedError:
    return ImportRefusedError([Wrong(where=where, message=message, instead=instead)])
