"""Does NCCL use EFA: the lines of each process, compared with what must and must not be there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ultracluster.acceptance.lines import Process
from ultracluster.acceptance.patterns import Pattern, patterns
from ultracluster.acceptance.report import Check
from ultracluster.acceptance.runs import Run
from ultracluster.catalog import InstanceType

_GDR = {"gdrdma", "host-copies"}


def forbidden_lines(run: Run, label: str, gpu_direct: bool | None) -> Iterator[Check]:
    """Lines that no log may have, whatever else is in it."""
    for pattern in patterns():
        if pattern.expect == "never" and not (pattern.id in _GDR and gpu_direct is not True):
            places = [place for (kind, _), place in run.evidence.places.items() if kind == pattern.id]
            if places:
                who = sorted(
                    {process for kind, process in run.evidence.places if kind == pattern.id and process}
                )
                found = ", ".join(value for value in run.evidence.values(pattern.id) if value)
                message = f"{pattern.message}{f' ({found})' if found else ''}{_listed(who)}"
                yield Check(pattern.id, pattern.verdict, message, label, places[0])


def network_checks(
    run: Run, label: str, kind: InstanceType | None, interfaces: Sequence[int]
) -> Iterator[Check]:
    """All that the lines of NCCL prove, for each process of the run.

    Args:
        kind: what is known of the instance type; None = nothing.
        interfaces: numbers of EFA interfaces that are right; empty = not known.
    """
    gpu_direct = kind.gpu_direct_rdma if kind else None
    yield from forbidden_lines(run, label, gpu_direct)
    evidence = run.evidence
    if not evidence.processes:
        message = "the log has no lines of NCCL: run with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET"
        yield Check("nccl-log", "not judged", message, label)
        return
    expected = run.processes or tuple(evidence.processes)
    silent = [process for process in expected if process not in evidence.processes]
    if silent:
        message = f"no lines of NCCL from {len(silent)} of {len(expected)} processes{_listed(silent)}"
        yield Check("nccl-log", "not judged", message, label)
    speaking = [process for process in expected if process in evidence.processes]
    for pattern in patterns():
        if pattern.expect == "process" and speaking:
            yield _on_each_process(run, label, pattern, speaking)
    yield from _gpu_direct(run, label, gpu_direct)
    yield from _protocol(run, label, kind)
    yield from interface_checks(run, label, interfaces)


def interface_numbers(run: Run) -> tuple[int, ...]:
    """Return how many EFA interfaces the plugin found; several numbers if processes differ."""
    return tuple(sorted({int(value) for value in run.evidence.values("provider") if value}))


def _on_each_process(run: Run, label: str, pattern: Pattern, processes: Sequence[Process]) -> Check:
    evidence = run.evidence
    missing = [process for process in processes if pattern.id not in evidence.processes[process]]
    if not missing:
        values = ", ".join(value for value in evidence.values(pattern.id) if value)
        place = evidence.places.get((pattern.id, str(processes[0])), "")
        message = f"{values or 'seen'} on {len(processes)} processes"
        return Check(pattern.id, "pass", message, label, place)
    message = f"{pattern.message}{_listed(missing)}"
    if pattern.verdict != "fail":
        return Check(pattern.id, pattern.verdict, message, label)
    if not run.finished:
        return Check(pattern.id, "not judged", f"the log ends early; so far {message}", label)
    if evidence.torn:
        message = f"{evidence.torn} lines are mixed with others, the proof may be among them: {message}"
        return Check(
            pattern.id, "not judged", f"{message}; write one log per process (NCCL_DEBUG_FILE)", label
        )
    return Check(pattern.id, "fail", message, label)


def _gpu_direct(run: Run, label: str, gpu_direct: bool | None) -> Iterator[Check]:
    hosts = {process.host for process in run.evidence.processes}
    if len(run.nodes or hosts) < 2 or gpu_direct is False:
        return
    if gpu_direct is None:
        yield Check("gdrdma", "info", "it is not known whether this type has GPUDirect RDMA", label)
        return
    if run.marks.get("mnnvl") == "1":
        message = "NVLink joins the nodes (NCCL_MNNVL_ENABLE=1): this run says nothing about EFA"
        yield Check("gdrdma", "not judged", message, label)
        return
    pattern = next(pattern for pattern in patterns() if pattern.id == "gdrdma")
    with_it = {process.host for process, kinds in run.evidence.processes.items() if "gdrdma" in kinds}
    without = [host for host in (run.nodes or sorted(hosts)) if host in hosts and host not in with_it]
    if not without:
        yield Check("gdrdma", "pass", f"channels with GPUDirect RDMA on {len(with_it)} nodes", label)
    elif not run.finished:
        yield Check(
            "gdrdma", "not judged", f"the log ends early; so far {pattern.message}{_listed(without)}", label
        )
    else:
        yield Check("gdrdma", "fail", f"{pattern.message}{_listed(without)}", label)


def _protocol(run: Run, label: str, kind: InstanceType | None) -> Iterator[Check]:
    used = run.evidence.values("protocol")
    right = kind.nccl_protocol if kind else None
    if not used:
        return  # said already
    if right is None:
        yield Check(
            "protocol", "info", f"{' and '.join(used)}; what is right for this type is not known", label
        )
    elif used != [right]:
        place = next((place for (name, _), place in run.evidence.places.items() if name == "protocol"), "")
        message = f"transport protocol {' and '.join(used)}; on this type the plugin uses {right}"
        yield Check("protocol", "fail", message, label, place)


def interface_checks(run: Run, label: str, right: Sequence[int]) -> Iterator[Check]:
    """As many EFA interfaces as the type has, in every process.

    Fewer than that, or than another process has, fail. More than is known of warn: what is known may be old.
    """
    found = interface_numbers(run)
    if not found:
        return
    words = " and ".join(map(str, found))
    fitting = [number for number in right if number >= found[-1]]
    expected = min(fitting, default=found[-1])
    if found[0] < expected:
        few = {
            str(process)
            for process, kinds in run.evidence.processes.items()
            if any(int(value) < expected for value in kinds.get("provider", ()) if value)
        }
        place = next(
            (
                place
                for (name, process), place in run.evidence.places.items()
                if name == "provider" and process in few
            ),
            "",
        )
        message = f"{words} EFA interfaces found, expected {' or '.join(map(str, right)) or expected}"
        yield Check("interfaces", "fail", f"{message}{_listed(sorted(few))}", label, place)
    elif not right:
        message = f"{words} EFA interfaces; how many are right is not known"
        yield Check("interfaces", "info", message, label)
    elif not fitting:
        message = f"{words} EFA interfaces found, more than the {' or '.join(map(str, right))} that are known"
        yield Check("interfaces", "warn", message, label)
    else:
        yield Check("interfaces", "pass", f"{words} EFA interfaces per process", label)


def _listed(names: Sequence[object]) -> str:
    """The first few of them, for the end of a message."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f": {', '.join(map(str, names[:3]))}{more}" if names else ""
