"""The acceptance job for Kubernetes.

Slurm's is `node_tools.slurm_script`.
"""

from __future__ import annotations

import base64
import re
from string import Template

from ultracluster.acceptance.collectives import ALL_REDUCE, COLLECTIVES, check_collective
from ultracluster.acceptance.neuron_job import neuron_values
from ultracluster.acceptance.node_tools import packed_tools
from ultracluster.acceptance.patterns import scripts_folder
from ultracluster.catalog import instance_type as known_type
from ultracluster.catalog import nearest_instance_types

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,400}")
_PROGRAM = re.compile(r"/[A-Za-z0-9._/-]{1,200}")

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
    if nodes < 1:
        raise ValueError(f"{nodes} nodes: at least one, and from four on the fabric is judged")
    neuron = facts.accelerator.manufacturer == "AWS"
    check_collective(collective, neuron=neuron)
    program = program or f"/opt/nccl-tests/build/{COLLECTIVES[collective].program}"
    for what, value, form in (
        ("name", name, _NAME),
        ("namespace", namespace, _NAME),
        ("image", image, _IMAGE),
        ("program", program, _PROGRAM),
    ):
        if not form.fullmatch(value):
            raise ValueError(f"{what} {value!r} has characters that a manifest cannot carry there")

    domain = bool(facts.imex) and mnnvl
    folder = scripts_folder() / "acceptance"
    # of unknown memory: as of most types
    largest = facts.largest_message_gib or LARGEST_SINGLE_GIB
    values = {
        "instance_type": kind,
        "node_type": facts.hyperpod_name if hyperpod else kind,
        "nodes": nodes,
        "image": image,
        "name": name,
        "namespace": namespace,
        "gpus": facts.accelerator.count,
        "architecture": "arm64" if facts.architecture == "arm64" else "amd64",
        "efa_interfaces": interfaces,
        "program": program,
        "collective": collective,
        "operation": COLLECTIVES[collective].nccom,
        "largest": f"{largest}G",
        "largest_single": f"{min(largest, LARGEST_SINGLE_GIB)}G",
        "pair_size": f"{min(largest, PAIR_GIB)}G",
        "two_nodes": "default" if facts.nccl_two_nodes_judged else "ring",
        "mnnvl": int(domain),
        "mpi_extra": f"-x NCCL_MNNVL_ENABLE={int(domain)} " if facts.imex else "",
        "efa_counted": "" if efa_claims else Template(_COUNTED).substitute(efa_interfaces=interfaces),
        **_claims(name, domain=domain, efa=efa_claims),
        **(neuron_values(facts, nodes, name) if neuron else {}),
    }
    text = (folder / ("neuron_mpijob.yaml" if neuron else "mpijob.yaml")).read_text(encoding="utf-8")
    if domain:
        text += (folder / "compute_domain.yaml").read_text(encoding="utf-8")
    if not neuron:
        tools = packed_tools(facts, efa_interfaces=interfaces)
        values["tools"] = base64.b64encode(tools).decode()
        text += (folder / "tools.yaml").read_text(encoding="utf-8")
    if efa_claims:
        text += (folder / "efa_claim.yaml").read_text(encoding="utf-8")
    rendered = Template(text).substitute(values)
    return "\n".join(line for line in rendered.splitlines() if line.strip()) + "\n"


def _claims(job: str, *, domain: bool, efa: bool) -> dict[str, str]:
    """What a worker's container claims, and which templates its pod makes the claims from."""
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
