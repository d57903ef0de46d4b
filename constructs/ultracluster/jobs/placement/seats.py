"""Where the nodes of a job are: the job's nodes by Slurm, their places by EC2 or by HyperPod's own file.

EC2 tells the places of instances of the account. HyperPod's nodes are in an account of the service, and no
API tells their places: its file on the controller does.
"""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ultracluster.account.aws import Account, AccountError, plain_errors
from ultracluster.account.nodes.fleet import Fleet
from ultracluster.account.nodes.node import Node, chunks
from ultracluster.config.file_text import MOST_BYTES, gunzipped, json_of
from ultracluster.jobs.on_nodes import shell_of
from ultracluster.jobs.placement.slurm_topology import Labelled, Place, labelled_nodes, place_of_instance

RESOURCE_CONFIG = "/opt/ml/config/resource_config.json"
"""Of HyperPod; the controller's is the newest."""
AT_ONCE = 100
"""Instance ids of one question (EC2 API, DescribeInstanceTopology)."""
_JOB = re.compile(r"[1-9][0-9]{0,9}(_[0-9]{1,7})?(\+[0-9]{1,4})?")
_NODES_OF_JOB = """
job=$(timeout 30 scontrol --oneliner show job {job}) || {{ echo "$job"; exit 1; }}
list=$(sed -n 's/.* NodeList=\\([^ ]*\\) .*/\\1/p' <<<"$job" | head -n 1)
[[ -n $list && $list != '(null)' ]] || {{ echo "job {job} has no nodes"; exit 1; }}
"""
_ADDRESSES = """
timeout 30 scontrol --oneliner show node "$list" |
  sed -n 's/.*NodeName=\\([^ ]*\\) .*NodeAddr=\\([^ ]*\\) .*/node|\\1|\\2/p'
"""
_MARK = "ultracluster-file-begins"


@dataclass(frozen=True, slots=True)
class Seat:
    """A node with every name by which somebody may mean it."""

    name: str
    """As Slurm calls it, where that is known; otherwise its instance id."""
    names: frozenset[str]
    group: str
    place: Place | None

    @property
    def path(self) -> list[str]:
        """Ids of its switches, from the widest to the leaf; empty where nobody tells."""
        return list(self.place["path"]) if self.place else []

    @property
    def ultraserver(self) -> str | None:
        return self.place["block"] if self.place else None


def ask_script(*, job: str | None = None, nodes: Sequence[str] = ()) -> str:
    """A bash script that prints `node|NAME|ADDRESS` of a job's nodes, or of nodes by Slurm's names.

    Raises:
        ValueError: no number of a job.
    """
    if job is None:
        return f"list={shlex.quote(','.join(nodes))}\n{_ADDRESSES}"
    if not _JOB.fullmatch(job):
        raise ValueError(f"`{job}` is no number of a Slurm job: squeue shows them, as 42 or 42_7")
    return _NODES_OF_JOB.format(job=shlex.quote(job)) + _ADDRESSES


def read_nodes(text: str) -> dict[str, str]:
    """Address by Slurm's name, of what `ask_script` printed."""
    rows = [line.strip().split("|") for line in text.splitlines()]
    return {row[1]: row[2] for row in rows if len(row) == 3 and row[0] == "node"}


def ask_slurm(fleet: Fleet, script: str) -> dict[str, str]:
    """Return addresses by names of Slurm, asked on the node where people log in.

    Raises:
        AccountError: it does not answer.
    """
    return read_nodes(_on_entrance(fleet, script))


def seats(fleet: Fleet) -> list[Seat]:
    """Every node of the cluster with its place.

    Raises:
        AccountError: nobody tells the places.
    """
    if fleet.cluster:
        return seats_of_labels(labelled_nodes(_hyperpod_file(fleet)))
    return _of_instances(fleet.nodes, ec2_places(fleet.account, [node.id for node in fleet.nodes if node.id]))


def ec2_places(account: Account, ids: Sequence[str]) -> dict[str, Place]:
    """Place by instance id; instances that do not run, or whose type has none, are left out.

    Raises:
        AccountError: it cannot be read.
    """
    ec2 = account.client("ec2")
    places: dict[str, Place] = {}
    with plain_errors():
        for some in chunks(ids, AT_ONCE):
            answer = ec2.describe_instance_topology(InstanceIds=some)
            places |= {instance: place for instance, place in places_of_answer(answer).items() if place}
    return places


def places_of_answer(answer: Mapping[str, Any]) -> dict[str, Place | None]:
    """Place by instance id, of an answer of DescribeInstanceTopology."""
    instances: object = answer.get("Instances")
    rows = cast("list[object]", instances) if isinstance(instances, list) else []
    whole = [cast("dict[str, Any]", row) for row in rows if isinstance(row, dict)]
    return {str(row["InstanceId"]): place_of_instance(row) for row in whole if row.get("InstanceId")}


def seats_of_labels(nodes: Iterable[Labelled]) -> list[Seat]:
    """Those of HyperPod's file."""
    return [
        Seat(next((name for name in sorted(node.names) if name.startswith("ip-")), min(node.names)),
             node.names, node.group, node.place)
        for node in nodes
    ]  # fmt: skip


def seats_of_file(text: str) -> list[Seat]:
    """Those of a saved `resource_config.json`, or of what `aws ec2 describe-instance-topology` printed.

    Raises:
        ValueError: it is neither.
    """
    try:
        document: Any = json_of(text)
    except ValueError:
        document = None
    if isinstance(document, dict) and "Instances" in document:
        places = places_of_answer(cast("dict[str, Any]", document))
        return [Seat(name, frozenset({name}), "", place) for name, place in places.items()]
    if found := seats_of_labels(labelled_nodes(cast("object", document))):
        return found
    raise ValueError(
        f"it has no nodes: it takes HyperPod's {RESOURCE_CONFIG}, or the JSON of "
        "`aws ec2 describe-instance-topology`"
    )


def seated(wanted: Mapping[str, str], there: Sequence[Seat]) -> tuple[list[Seat], list[str]]:
    """The seats of nodes, called by Slurm's names, and the names that fit none.

    Args:
        wanted: address by name; the name itself where no address is known.
    """
    found: list[Seat] = []
    missing: list[str] = []
    for name, address in wanted.items():
        names = {name, address, f"ip-{address.replace('.', '-')}"} - {""}
        seat = next((one for one in there if names & one.names), None)
        if seat is None:
            missing.append(name)
        else:
            found.append(Seat(name, seat.names, seat.group, seat.place))
    return found, missing


def alike(job: Collection[Seat], there: Sequence[Seat]) -> list[Seat]:
    """Nodes that the job could have had: those of its groups, called as the job's where they are its own."""
    groups = {seat.group for seat in job}
    own = {min(seat.names): seat for seat in job}
    return [own.get(min(seat.names), seat) for seat in there if seat.group in groups]


def _of_instances(nodes: Sequence[Node], places: Mapping[str, Place]) -> list[Seat]:
    return [
        Seat(node.id, frozenset(_names(node)), node.group, places.get(node.id)) for node in nodes if node.id
    ]


def _names(node: Node) -> set[str]:
    host = node.dns.split(".")[0]
    names = {node.id, node.logical_id, node.dns, host, host.removeprefix("ip-").replace("-", ".")}
    return names - {""}


def _hyperpod_file(fleet: Fleet) -> object:
    script = f"echo {_MARK}; gzip -c {RESOURCE_CONFIG} | base64 -w 100"
    text = _on_entrance(fleet, script, controller=True).partition(_MARK)[2]
    try:
        return json_of(gunzipped(base64.b64decode(text), MOST_BYTES))
    except (ValueError, OSError):
        raise AccountError(
            f"{RESOURCE_CONFIG} on the controller is not what HyperPod writes: copy it here, and pass it "
            "with --topology"
        ) from None


def _on_entrance(fleet: Fleet, script: str, *, controller: bool = False) -> str:
    head = next((node for node in fleet.nodes if node.controller and node.id), None) if controller else None
    node = head or fleet.entrance()
    if node is None:
        raise AccountError("no node runs on which Slurm could be asked")
    answer = shell_of(fleet).run([node], script)[node.id]
    if not answer.good:
        said = answer.why or " ".join(answer.text.split())[-200:] or f"status {answer.status}"
        raise AccountError(f"{node.name} did not answer: {said}")
    return answer.text
