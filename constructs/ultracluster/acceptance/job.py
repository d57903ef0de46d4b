"""The acceptance job for Kubernetes.

Slurm's is `node_tools.slurm_script`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

from ultracluster.acceptance.collectives import ALL_REDUCE, COLLECTIVES, check_collective
from ultracluster.acceptance.neuron_job import neuron_values
from ultracluster.acceptance.node_tools import packed_tools
from ultracluster.acceptance.patterns import scripts_folder
from ultracluster.catalog import InstanceType, nearest_instance_types
from ultracluster.catalog import instance_type as known_type

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,400}")
_PROGRAM = re.compile(r"/[A-Za-z0-9._/-]{1,200}")
_FORMS = {"name": _NAME, "namespace": _NAME, "image": _IMAGE, "program": _PROGRAM}

LARGEST_SINGLE_GIB = 16
"""GiB of the largest message on one node: as published figures of one node."""
PAIR_GIB = 4
"""GiB of the one message between two nodes that are compared with others."""

_COUNTED = """\
                  vpc.amazonaws.com/efa: ${efa_interfaces}
"""
_CLAIMED = "                  - name: {name}\n"
_TEMPLATE = "            - name: {name}\n              resourceClaimTemplateName: {job}-{template}\n"


def manifest(
    instance_type: str,
    nodes: int,
    *,
    image: str,
    name: str = "nccl-acceptance",
    namespace: str = "default",
    hyperpod: bool = False,
    efa_interfaces: int | None = None,
    mnnvl: bool = True,
    efa_claims: bool = False,
    collective: str = ALL_REDUCE,
    program: str | None = None,
) -> str:
    """The MPIJob as YAML, ready for `kubectl apply`.

    Args:
        instance_type: EC2 name, with or without HyperPod's prefix "ml.".
        nodes: workers, one per instance.
        image: container with nccl-tests (on Trainium nccom-test), Open MPI, an SSH server, libfabric, the EFA
            plugin, and Python 3, without which the nodes are not looked at.
        name: of the job; up to 40 characters of a DNS label.
        namespace: where it runs.
        hyperpod: the nodes are HyperPod's, whose label has its prefix "ml.", too.
        efa_interfaces: per node, where AWS does not say how many there are.
        mnnvl: of UltraServers: NVLink joins the nodes; False measures EFA.
        efa_claims: pods claim EFA interfaces of the EFA DRA driver, instead of counting the plugin's.
        collective: a name of COLLECTIVES; gates are for `all_reduce` only.
        program: path of the program in the image; by default that of the collective in /opt/nccl-tests/build.

    Raises:
        ValueError: a value cannot be used; the message says why and what can.
    """
    kind = instance_type.removeprefix("ml.")
    facts, interfaces = _measurable(kind, efa_interfaces)
    if nodes < 1:
        raise ValueError(f"{nodes} nodes: at least one, and from four on the fabric is judged")
    neuron = facts.accelerator is not None and facts.accelerator.manufacturer == "AWS"
    check_collective(collective, neuron=neuron)
    program = program or f"/opt/nccl-tests/build/{COLLECTIVES[collective].program}"
    texts = {"name": name, "namespace": namespace, "image": image, "program": program}
    _check(texts)
    domain = bool(facts.imex) and mnnvl
    values = {
        **texts,
        **_of_type(facts, domain=domain),
        "node_type": facts.hyperpod_name if hyperpod else kind,
        "nodes": nodes,
        "efa_interfaces": interfaces,
        "collective": collective,
        "operation": COLLECTIVES[collective].nccom,
        "efa_counted": "" if efa_claims else Template(_COUNTED).substitute(efa_interfaces=interfaces),
        **_claims(name, domain=domain, efa=efa_claims),
        **(neuron_values(facts, nodes, name) if neuron else {}),
    }
    if not neuron:
        values["tools"] = base64.b64encode(packed_tools(facts, efa_interfaces=interfaces)).decode()
    parts = {"compute_domain": domain, "tools": not neuron, "efa_claim": efa_claims}
    files = ["neuron_mpijob" if neuron else "mpijob", *(part for part, included in parts.items() if included)]
    return _filled(files, values)


def _filled(files: Sequence[str], values: Mapping[str, Any]) -> str:
    folder = scripts_folder() / "acceptance"
    text = "".join((folder / f"{file}.yaml").read_text(encoding="utf-8") for file in files)
    rendered = Template(text).substitute(values)
    return "\n".join(line for line in rendered.splitlines() if line.strip()) + "\n"


def _check(texts: Mapping[str, str]) -> None:
    for what, value in texts.items():
        if not _FORMS[what].fullmatch(value):
            raise ValueError(f"{what} {value!r} has characters that a manifest cannot carry there")


def _measurable(kind: str, efa_interfaces: int | None) -> tuple[InstanceType, int]:
    """An instance type with a fabric, and its EFA interfaces.

    Raises:
        ValueError: the catalogue does not know it, or there is nothing to measure.
    """
    facts = known_type(kind)
    if facts is None:
        near = ", ".join(nearest_instance_types(kind)) or "none"
        raise ValueError(f"the catalogue does not know {kind}; similar: {near}")
    if facts.accelerator is None:
        raise ValueError(f"{kind} has no accelerators, whose collectives nccl-tests and nccom-test measure")
    interfaces = facts.efa_interfaces if efa_interfaces is None else efa_interfaces
    if interfaces is None and facts.recommended_efa_interfaces:
        numbers = " or ".join(map(str, facts.recommended_efa_interfaces))
        raise ValueError(
            f"AWS does not say how many EFA interfaces {kind} has: give {numbers}, as it was launched"
        )
    if not interfaces:
        raise ValueError(f"{kind} has no EFA: there is no fabric to measure")
    return facts, interfaces


def _of_type(facts: InstanceType, *, domain: bool) -> dict[str, Any]:
    """Values of the template that follow from the instance type."""
    # of unknown memory: as of most types
    largest = facts.largest_message_gib or LARGEST_SINGLE_GIB
    return {
        "instance_type": facts.name,
        "gpus": facts.accelerator.count if facts.accelerator else 0,
        "architecture": "arm64" if facts.architecture == "arm64" else "amd64",
        "largest": f"{largest}G",
        "largest_single": f"{min(largest, LARGEST_SINGLE_GIB)}G",
        "pair_size": f"{min(largest, PAIR_GIB)}G",
        "two_nodes": "default" if facts.nccl_two_nodes_judged else "ring",
        "mnnvl": int(domain),
        "mpi_extra": f"-x NCCL_MNNVL_ENABLE={int(domain)} " if facts.imex else "",
    }


def _claims(job: str, *, domain: bool, efa: bool) -> dict[str, str]:
    """Return what a worker's container claims, and which templates its pod makes the claims from."""
    wanted = {"compute-domain-channel": "channel"} if domain else {}
    if efa:
        wanted["efa"] = "efa"
    if not wanted:
        return {"claims": "", "resource_claims": ""}
    claims = "".join(_CLAIMED.format(name=name) for name in wanted)
    templates = "".join(_TEMPLATE.format(name=name, job=job, template=one) for name, one in wanted.items())
    return {
        "claims": f"                claims:\n{claims}",
        "resource_claims": f"          resourceClaims:\n{templates}",
    }
