"""Variables and commands that people write into jobs, and what is better left out."""

from __future__ import annotations

import re
from collections.abc import Iterator

SET_BETTER = {
    "NCCL_SOCKET_IFNAME": "nodes set it for each job; a name of one interface is another one on other types",
    "NCCL_ALGO": "NCCL and its EFA plugin choose by size of message and number of nodes",
    "NCCL_PROTO": "the EFA plugin chooses it for each instance type",
    "NCCL_BUFFSIZE": "the EFA plugin chooses it for each instance type",
    "NCCL_NET_GDR_LEVEL": "the EFA plugin chooses it for each instance type",
    "NCCL_IB_DISABLE": "EFA is no InfiniBand, and NCCL does not look for one here",
    "FI_PROVIDER": "the EFA plugin asks libfabric for EFA by itself",
    "FI_EFA_USE_DEVICE_RDMA": "the EFA plugin chooses it for each instance type",
    "RDMAV_FORK_SAFE": "kernels of the images need it no more",
}
"""Variables that guides once asked for -> why a job does better without (lifecycle_scripts/files/profile.sh;
GitHub aws/aws-ofi-nccl, doc/efa-env-var.md, 2026-11-27). Trainium needs the two of libfabric."""
_OF_NEURON = ("FI_PROVIDER", "FI_EFA_USE_DEVICE_RDMA")
_EXPORT = re.compile(r"\b([A-Z][A-Z0-9_]+)=(\S*)")
_CONTINUED = re.compile(r"\\[ \t]+\S*")
_IN_QUOTES = re.compile(r"\\[ \t]+\S*[\"']")


def variable_note(name: str, value: str, *, nvidia: bool) -> str:
    """Return why a job does better without a variable; empty where it may stay.

    Args:
        name: the variable.
        value: as it is written.
        nvidia: the nodes have GPUs; Trainium needs what GPUs do without.
    """
    why = SET_BETTER.get(name)
    if not why or (name in _OF_NEURON and not nvidia):
        return ""
    if name == "NCCL_SOCKET_IFNAME" and value.strip("\"'").startswith("^"):
        return ""  # what it must not take is the same on every type
    return f"{name} is better left out: {why}"


def text_notes(text: str, *, nvidia: bool) -> Iterator[tuple[int, str]]:
    """Notes on lines of a shell script, each with its number; one for each variable."""
    seen: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        if _CONTINUED.search(line) and not _IN_QUOTES.search(line):
            yield number, "something stands after the `\\`, which then continues nothing"
        for name, value in _EXPORT.findall(line):
            if name not in seen and (note := variable_note(name, value, nvidia=nvidia)):
                seen.add(name)
                yield number, note
