"""Logs of NCCL tests with one fault each, and what the judge must say of them."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from typing import Any

from nccl_logs import GIB, HEADER, MIB, Log

from ultracluster.acceptance.judge import judge
from ultracluster.acceptance.log_reader import parse
from ultracluster.acceptance.report import Report

GOOD = Log()
P4D = Log(
    nodes=2,
    figures={512 * MIB: 70.0, 2 * GIB: 77.0},
    plugin="1.13.2-aws",
    provider="Selected Provider is efa (found 4 nics)",
    protocol="SENDRECV",
    network="AWS Libfabric",
    channel="NET/AWS Libfabric/{nic}/GDRDMA/Shared",
    release="2.13.9",
    nccl="2.19.3+cuda12.3",
    gpu="NVIDIA A100-SXM4-40GB",
)


def change(log: Log = GOOD, **fields: object) -> Log:
    return dataclasses.replace(log, **fields)  # pyright: ignore[reportArgumentType]


def more(*lines: str) -> Log:
    return change(more=lines)


NO_PLUGIN = change(
    plugin="", network="Socket", channel="NET/Socket/0", more=["NET/Plugin: Could not find: libnccl-net.so"]
)
EMULATED = "NET/OFI FI_OPT_EFA_EMULATED_WRITE is true when the communication protocol is RDMA write."
SECURITY_GROUP = """
**********************************************************************
* This error indicates that the security group on either this instance or the peer instance
* is not setup correctly.  For more information, please see the AWS documentation at"""
FAULTS = {
    "TCP fallback": (change(network="Socket", channel="NET/Socket/0"), "tcp-fallback", "fell back to TCP"),
    "plugin missing": (NO_PLUGIN, "plugin-missing", "did not find the library"),
    "wrong provider": (change(provider="Selected provider is tcp (found 2 nics)"), "wrong-provider", "(tcp)"),
    "no provider": (more("NET/OFI No eligible providers were found"), "no-provider", "no EFA device"),
    "plugin failed": (more("NET/OFI aws-ofi-nccl initialization failed"), "plugin-failed", "initialised"),
    "GDR lost": (
        more("NET/OFI GDR disabled on GDR-supported instance type p5en/p6-b200"), "gdr-lost", "peer-memory"
    ),
    "copies through the host": (change(channel="NET/Libfabric/{nic}"), "host-copies", "through host memory"),
    "copies, shared": (change(channel="NET/Libfabric/{nic}/Shared"), "host-copies", "through host memory"),
    "stale parts": (more(EMULATED), "emulated-write", "too old"),
    "security group": (more(SECURITY_GROUP), "security-group", "by group id"),
    "SENDRECV on p5en": (change(protocol="SENDRECV"), "protocol", "on this type the plugin uses RDMA"),
    "wrong results": (change(wrong={4 * GIB: 3}), "results", "wrong values in 1 of 4 sizes: 4 GiB"),
    "out of bounds": (change(out_of_bounds=7), "results", "7 values out of bounds"),
    "too slow": (change(figures={4 * GIB: 120.0}), "bandwidth", "120.00 GB/s at 4 GiB, gate 310"),
    "other platform": (GOOD, "platform", "did not recognise AWS"),
}  # fmt: skip


def interleaved() -> str:
    """Two processes that write into each other's lines, and a row into which NCCL writes."""
    text = GOOD.text()
    for cut in ("NET/OFI Using Libfabric", "Bootstrap :"):
        first = f"ip-10-1-0-21:4000:4000 [0] NCCL INFO {cut}"
        assert first in text
        text = text.replace(
            first, f"{first[:-4]}ip-10-1-0-22:4001:4001 [1] NCCL INFO Channel 00 : 1[1] -> 2[2] via P2P/CUMEM"
        )
    head = f"{4 * GIB:12d}  {GIB:12d}  {'float':>8}  {'sum':>6}  {'-1':>6}"
    noise = "ip-10-1-0-24:4007:4099 [7] NCCL INFO Connected all rings"
    return text.replace(head, f"{head}{noise}\n")


def host_report(node: str, verdict: str = "pass", summary: str = "5 checks passed") -> str:
    """A line of the job: what verify/fabric.sh says of a node."""
    report = json.dumps({"host": node, "verdict": verdict, "summary": summary})
    return f"# ultracluster-host {report}\n"


def pair(one: str, other: str, busbw: float = 365.0, **fields: Any) -> Log:
    """A run on two nodes."""
    return change(
        hosts=[one, other], figures={4 * GIB: busbw}, debug=False, mark="run=pair algo=ring", **fields
    )


def ring(names: Sequence[str]) -> list[Log]:
    """A run on each node and its neighbour, all equally fast."""
    return [pair(name, names[(index + 1) % len(names)]) for index, name in enumerate(names)]


def beside(text: str) -> str:
    """What a job writes besides: reports of the hosts, and runs on pairs; as far as the text has none."""
    names = list(dict.fromkeys(re.findall(r"^# +Rank .* on +(\S+) +device", text, re.MULTILINE)))
    hosts = [] if "# ultracluster-host" in text else [host_report(name) for name in names]
    pairs = [] if "run=pair" in text or len(names) < 3 else ring(names)
    return "".join(["\n", *hosts, *(log.text() for log in pairs)])


def said(
    *logs: Log | str,
    kind: str = "p5en.48xlarge",
    nodes: int | None = None,
    bare: bool = False,
    **options: object,
) -> Report:
    """The verdict on logs of one job; `bare`: without what a job writes besides the runs."""
    text = "".join(log if isinstance(log, str) else log.text() for log in logs)
    assert HEADER in text or not any(isinstance(log, Log) for log in logs)
    text += "" if bare else beside(text)
    return judge(parse(text), instance_type=kind, nodes=nodes, **options)  # pyright: ignore[reportArgumentType]


def outcomes(report: Report, check: str) -> list[str]:
    return [one.outcome for one in report.checks if one.id == check]
