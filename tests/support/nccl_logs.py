"""Logs of nccl-tests and NCCL, composed from published lines of both and of aws-ofi-nccl.

No machine wrote them. Their first line says so; the figures are those of the published tables or made up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

HEADER = "# composed from published lines of NCCL, aws-ofi-nccl and nccl-tests; not recorded on a machine"
MIB, GIB = 1 << 20, 1 << 30
P5EN = {128 * MIB: 198.0, GIB: 350.0, 4 * GIB: 364.87, 16 * GIB: 369.06}
GPUS = {
    "p4": "NVIDIA A100-SXM4-40GB",
    "p5.": "NVIDIA H100 80GB HBM3",
    "p5e": "NVIDIA H200",
    "p6": "NVIDIA B200",
}


@dataclass(frozen=True, kw_only=True)
class Log:
    """What a log is about; `text()` writes it."""

    nodes: int = 4
    gpus: int = 8
    hosts: Sequence[str] = ()
    figures: Mapping[int, float] = field(default_factory=lambda: P5EN)
    wrong: Mapping[int, float | str] = field(default_factory=dict[int, "float | str"])
    out_of_bounds: int = 0
    release: str = "2.19.6"  # of nccl-tests
    nccl: str = "2.27.7+cuda12.8"
    plugin: str = "1.22.0"
    provider: str = "Selected provider is efa, fabric is efa-direct (found 16 nics)"
    protocol: str = "RDMA"
    network: str = "Libfabric"
    channel: str = "NET/Libfabric/{nic}/GDRDMA"
    finished: bool = True
    debug: bool = True
    mark: str = ""
    program: str = "all_reduce_perf"
    weight: int = 2
    """Bus bandwidth is weight x (n-1)/n times the algorithm's."""
    gpu: str = "NVIDIA H200"
    more: Sequence[str] = ()
    """More lines of each process."""

    def names(self) -> Sequence[str]:
        return self.hosts or [f"ip-10-1-0-{21 + index}" for index in range(self.nodes)]

    def text(self) -> str:
        lines = [HEADER, *([f"# ultracluster-acceptance {self.mark}"] if self.mark else [])]
        lines += self.head()
        if self.debug:
            for index in range(len(self.names()) * self.gpus):
                lines += self.process(index)
        lines += self.results()
        if "run=" in self.mark:
            lines.append(f"# ultracluster-acceptance exit={0 if self.finished else 1}")
        return "\n".join(lines) + "\n"

    def head(self) -> list[str]:
        sizes = list(self.figures) or [8]
        new = tuple(map(int, self.release.split("."))) >= (2, 17)
        lines = [
            f"# nccl-tests version {self.release} nccl-headers=22707 nccl-library=22707",
            f"# Collective test starting: {self.program}",
        ]
        lines = lines if new else []
        lines += [
            f"# nThread 1 nGpus 1 minBytes {min(sizes)} maxBytes {max(sizes)} step: 2(factor) "
            "warmup iters: 5 iters: 100 agg iters: 1 validation: 1 graph: 0" + (" unalign: 0" if new else ""),
            "#",
            "# Using devices",
        ]
        for index in range(len(self.names()) * self.gpus):
            host, local = self.names()[index // self.gpus], index % self.gpus
            lines.append(
                f"#  Rank {index:2d} Group  0 Pid {4000 + local:6d} on {host:>10} device {local:2d} "
                f"[0000:{0x53 + local:02x}:00] {self.gpu}"
            )
        return lines

    def process(self, index: int) -> list[str]:
        """The lines that one rank writes."""
        host, local = self.names()[index // self.gpus], index % self.gpus
        ranks = len(self.names()) * self.gpus
        start = f"{host}:{4000 + local}:{4000 + local} [{local}] NCCL INFO "
        said = [f"Bootstrap : Using ens32:10.1.0.{21 + index // self.gpus}<0>"]
        if self.plugin:
            said += [
                f"NET/OFI Initializing aws-ofi-nccl {self.plugin}",
                "NET/OFI Using Libfabric version 2.7",
                "NET/OFI Plugin selected platform: AWS",
                f"NET/OFI Using transport protocol {self.protocol} (platform set)",
                f"NET/OFI {self.provider}",
                "NET/OFI Support for DMA-BUF registrations: true",
                "TUNER/Plugin: Using nccl_ofi_tuner",
            ]
        said.append(f"Using network {self.network}")
        peer = f"{(index + 1) % ranks}[{(local + 1) % self.gpus}]"
        for channel in range(2 if len(self.names()) > 1 else 0):
            way = f"Channel {channel:02d}/0 : {index}[{local}] -> {peer} [send] via "
            said.append(way + self.channel.format(nic=channel))
        said += self.more
        first = [f"NCCL version {self.nccl}"] if index == 0 else []
        return first + [line if line.startswith("\n") else start + line for line in said]

    def results(self) -> list[str]:
        new = tuple(map(int, self.release.split("."))) >= (2, 17)
        ranks = len(self.names()) * self.gpus
        names = "  {:>7}  {:>6}  {:>6}  {:>6}".format("time", "algbw", "busbw", "#wrong")
        units = "  {:>7}  {:>6}  {:>6}  {:>6}".format("(us)", "(GB/s)", "(GB/s)", "")
        lines = [
            "#",
            f"#{'':>57}out-of-place                       in-place",
            "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}".format("size", "count", "type", "redop", "root")
            + names * 2,
            "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}".format("(B)", "(elements)", "", "", "") + units * 2,
        ]
        for size, busbw in self.figures.items():
            algbw = busbw / (self.weight * (ranks - 1) / ranks) if ranks > 1 else busbw
            micro = size / algbw / 1000
            wrong = self.wrong.get(size, 0)
            width = 6 if new else 5
            half = f"  {micro:7.0f}  {algbw:6.2f}  {busbw:6.2f}  {wrong:>{width}}"
            lines.append(f"{size:12d}  {size // 4:12d}  {'float':>8}  {'sum':>6}  {'-1':>6}{half}{half}")
        if not self.finished:
            return [*lines[:-1], lines[-1][:40]]
        word = "FAILED" if self.out_of_bounds else "OK"
        average = sum(self.figures.values()) / max(len(self.figures), 1)
        lines += [
            f"# Out of bounds values : {self.out_of_bounds} {word}",
            f"# Avg bus bandwidth    : {average:g} ",
            "#",
        ]
        return lines + ([f"# Collective test concluded: {self.program}"] if new else [])
