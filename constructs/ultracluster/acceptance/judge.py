"""Is the fabric accepted: sourced gates, correct results, and the proof that NCCL used EFA."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ultracluster.acceptance.bandwidth import bandwidth_checks
from ultracluster.acceptance.network_proof import (
    forbidden_lines,
    interface_checks,
    interface_numbers,
    network_checks,
)
from ultracluster.acceptance.report import Check, Curve, Report, size_text
from ultracluster.acceptance.runs import Logs, Run
from ultracluster.acceptance.slow_node import Comparison, Suspect, compare
from ultracluster.catalog import InstanceType
from ultracluster.catalog import instance_type as known_type


def judge(
    logs: Logs,
    *,
    instance_type: str,
    nodes: int | None = None,
    efa_interfaces: int | None = None,
    plugin_version: str | None = None,
) -> Report:
    """Judge logs of nccl-tests on nodes of one type.

    The run on most nodes is the one that counts; runs on one node are judged as well, runs on pairs of
    nodes are compared with each other. What no run or report shows is not judged, and so never passes.

    Args:
        logs: from `runs.read`.
        instance_type: EC2 name; HyperPod's prefix "ml." is dropped.
        nodes: how many nodes the run must have; None = as many as it has.
        efa_interfaces: how many each node must have; None = as the catalogue says.
        plugin_version: release of aws-ofi-nccl that should be there.
    """
    name = instance_type.removeprefix("ml.")
    kind = known_type(name)
    interfaces = [efa_interfaces] if efa_interfaces is not None else _interfaces(kind)
    runs = [run for run in logs.runs if run.ranks or run.rows or run.started]
    largest = max(
        runs, key=lambda run: (run.marks.get("run") != "pair", len(run.nodes), len(run.ranks)), default=None
    )
    if largest is None:
        loose = [
            check
            for run in logs.runs
            for check in forbidden_lines(run, "", kind.gpu_direct_rdma if kind else None)
        ]
        missing = Check("output", "not judged", "the logs hold no output of nccl-tests")
        return _report(name, logs, None, [*loose, missing], [], None)

    singles = [run for run in runs if run is not largest and len(run.nodes) == 1]
    pairs = [run for run in runs if run is not largest and len(run.nodes) == 2]
    others = [run for run in runs if run is not largest and run not in singles and run not in pairs]
    hosts = list(_hosts(logs, largest))
    checks = [*(hosts if logs.hosts else ()), *_size(largest, kind, nodes)]
    for run in [largest, *others, *singles]:
        label = _label(run)
        checks += _results(run, label)
        checks += network_checks(run, label, kind, interfaces)
        checks += bandwidth_checks(run, label, name, counts=run is largest)
    for run in pairs:
        checks += _results(run, _label(run))
        checks += forbidden_lines(run, _label(run), kind.gpu_direct_rdma if kind else None)
        checks += (
            check for check in interface_checks(run, _label(run), interfaces) if check.outcome == "fail"
        )
    if not singles and len(largest.nodes) > 1:
        checks.append(Check("single-node", "info", "no run on a single node: NVLink was not measured"))
    checks += _plugin(largest, plugin_version)
    comparison = compare(pairs, nodes=largest.nodes, places=logs.places)
    checks += _slow(comparison)
    if not logs.hosts:  # after what the runs themselves show
        checks += hosts
    return _report(name, logs, largest, checks, [largest, *others, *singles], comparison)


def _report(
    name: str,
    logs: Logs,
    largest: Run | None,
    checks: Sequence[Check],
    runs: Sequence[Run],
    comparison: Comparison | None,
) -> Report:
    curves = [Curve(_label(run), run.nodes, len(run.ranks), tuple(run.rows), run.average) for run in runs]
    return Report(
        instance_type=name,
        nodes=largest.nodes if largest else (),
        ranks=len(largest.ranks) if largest else 0,
        versions=_versions(logs, largest) if largest else {},
        nics=interface_numbers(largest) if largest else (),
        checks=tuple(checks),
        curves=tuple(curves),
        pairs=comparison,
    )


def _interfaces(kind: InstanceType | None) -> Sequence[int]:
    if kind is None:
        return ()
    return kind.recommended_efa_interfaces if kind.efa_interfaces is None else (kind.efa_interfaces,)


def _label(run: Run) -> str:
    nodes = run.nodes
    if len(nodes) == 1:
        return f"single node {nodes[0]}"
    return f"pair {' + '.join(nodes)}" if len(nodes) == 2 else f"{len(nodes)} nodes" if nodes else run.source


def _versions(logs: Logs, run: Run) -> dict[str, str]:
    found = {
        "NCCL": ", ".join(run.evidence.values("nccl-version")),
        "aws-ofi-nccl": ", ".join(value for value in run.evidence.values("plugin") if value),
        "nccl-tests": run.tests_version,
        "DMA-BUF": ", ".join(run.evidence.values("dmabuf")),
        "GPU": ", ".join(sorted({rank.name for rank in run.ranks if rank.name})),
    }
    ours = {
        key.removeprefix("version."): value for key, value in logs.marks.items() if key.startswith("version.")
    }
    return {key: value for key, value in (found | ours).items() if value}


def _size(run: Run, kind: InstanceType | None, nodes: int | None) -> Iterator[Check]:
    """As many nodes and ranks as there should be."""
    if not run.ranks:
        yield Check("nodes", "not judged", "the log does not list the ranks (lines `#  Rank ...`)")
        return
    found = len(run.nodes)
    if nodes is not None and found != nodes:
        yield Check("nodes", "fail", f"{nodes} nodes expected, {found} took part: {' '.join(run.nodes)}")
    else:
        yield Check("nodes", "pass", f"{found} nodes, {len(run.ranks)} ranks")
    if kind and kind.accelerator and len(run.ranks) != found * kind.accelerator.count:
        each = kind.accelerator.count
        message = f"{found} nodes with {each} accelerators are {found * each} ranks, not {len(run.ranks)}"
        yield Check("ranks", "not judged", message)


def _results(run: Run, label: str) -> Iterator[Check]:
    """The program ran to its end and its results are right."""
    if run.errors:
        yield Check("errors", "fail", run.errors[0], label)
    if run.marks.get("exit", "0") != "0":
        yield Check("errors", "fail", f"the run ended with status {run.marks['exit']}", label)
    wrong = [row for row in run.rows if any(half and half.wrong for half in (row.out_of_place, row.in_place))]
    if wrong:
        sizes = ", ".join(size_text(row.size) for row in wrong[:3])
        yield Check(
            "results", "fail", f"wrong values in {len(wrong)} of {len(run.rows)} sizes: {sizes}", label
        )
    if run.bounds_ok is False:
        yield Check("results", "fail", f"{run.out_of_bounds} values out of bounds", label)
    if not run.finished:
        yield Check("results", "not judged", "the log ends before the end of the results", label, run.source)
    elif not run.rows:
        yield Check("results", "not judged", "the log has no rows of results", label, run.source)
    elif run.bounds_ok is None or any(
        half is None or half.wrong is None for row in run.rows for half in (row.out_of_place, row.in_place)
    ):
        yield Check("results", "not judged", "the values were not checked: run with `-c 1`", label)
    elif not wrong and run.bounds_ok:
        yield Check("results", "pass", f"{len(run.rows)} sizes without a wrong value", label)


def _hosts(logs: Logs, run: Run) -> Iterator[Check]:
    """The reports of verify/fabric.sh, which show what no run does."""
    if not logs.hosts:
        message = (
            "no reports of verify/fabric.sh: EFA devices, modules, locked memory, libfabric and GDRCopy of "
            "the nodes were not looked at; `ultracluster acceptance --job` prints a job that looks at them"
        )
        yield Check("hosts", "not judged", message)
        return
    good = 0
    for host, report in logs.hosts.items():
        verdict, summary = str(report.get("verdict")), str(report.get("summary", ""))[:300]
        if verdict == "pass":
            good += 1
        else:
            yield Check("hosts", "fail" if verdict == "fail" else "not judged", f"{host}: {summary}")
    missing = [node for node in run.nodes if node not in logs.hosts]
    if missing:
        yield Check("hosts", "not judged", f"no report of verify/fabric.sh from {_some(missing)}")
    elif good == len(logs.hosts):
        yield Check("hosts", "pass", f"verify/fabric.sh passed on {good} nodes")


def _plugin(run: Run, wanted: str | None) -> Iterator[Check]:
    values = [value for value in run.evidence.values("plugin") if value]
    if len(values) > 1:
        yield Check(
            "plugin-release", "warn", f"processes use different releases of the plugin: {', '.join(values)}"
        )
    elif wanted and values and values[0].removesuffix("-aws") != wanted.removesuffix("-aws"):
        built = " (built from source)" if values[0].startswith("git-") else ""
        yield Check("plugin-release", "warn", f"plugin {values[0]}{built} instead of {wanted}")


def _slow(comparison: Comparison) -> Iterator[Check]:
    """Return which nodes are slow, and of which that is not decided."""
    reasons: dict[str, list[str]] = {}
    for node, why in comparison.not_judged.items():
        reasons.setdefault(why, []).extend([node] if node else [])
    for words, suspects in (("slow", comparison.slow), ("slow between", comparison.slow_paths)):
        for failed in (True, False):
            if some := [suspect for suspect in suspects if suspect.failed is failed]:
                yield Check("pairs", "fail" if failed else "warn", f"{words}: {_suspects(some)}")
    for why, nodes in reasons.items():
        yield Check("pairs", "not judged", f"{_some(nodes)}: {why}" if nodes else why)
    if not (comparison.slow or comparison.slow_paths or reasons):
        slowest = comparison.pairs[0]
        message = (
            f"no slow node: slowest of {len(comparison.pairs)} pairs {slowest.busbw:.2f} GB/s, "
            f"median {comparison.median:.2f}"
        )
        yield Check("pairs", "pass", message)


def _suspects(suspects: Sequence[Suspect]) -> str:
    more = f"; and {len(suspects) - 8} more" if len(suspects) > 8 else ""
    return "; ".join(suspect.text for suspect in suspects[:8]) + more


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more
