"""What Kubernetes says of its nodes: words of the agents there, answered from the table of faults."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import account
from kubernetes_service import Api, kubernetes_node, serve_cluster, serving

from ultracluster.account.doctor.examination import Examination, Fact, Inquiry
from ultracluster.account.doctor.kubernetes import MOST_EVENTS, event_facts, examine_kubernetes, node_facts
from ultracluster.account.doctor.log_files import read_logs
from ultracluster.config import load
from ultracluster.model import resolve

EKS = resolve(load(Path(__file__).parents[3] / "environments" / "eks-p5en.yaml").environment)
SINCE = datetime(2026, 11, 25, tzinfo=UTC)
HYPERPOD = "sagemaker.amazonaws.com/"
READONLY = "EXT4-fs ({}): Remounting filesystem read-only"
GONE = "Kubelet stopped posting node status."
XID = "NVRM: Xid (PCI:0000:b9:00): 79, pid=<unknown>, name=<unknown>, GPU has fallen off the bus."


def a_node(*conditions: tuple[str, str, str, str], **labels: str) -> dict[str, Any]:
    node = kubernetes_node("ip-10-1-0-17")
    node["status"]["conditions"] += [
        {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}
        for kind, status, reason, message in conditions
        for at in ("2026-11-27T09:51:00Z",)
    ]
    node["metadata"]["labels"] = {
        f"{HYPERPOD}{key.replace('_', '-')}": value for key, value in labels.items()
    }
    return node


def ids(facts: list[Fact], *generations: str) -> list[str]:
    return [diagnose.failure.id for diagnose in Examination(facts=facts, generations=generations).diagnoses]


def test_a_node_that_is_well_says_nothing() -> None:
    well = a_node(
        ("AcceleratedHardwareReady", "True", "NvidiaAcceleratedHardwareIsReady", "Monitoring is active"),
        ("KernelDeadlock", "False", "KernelHasNoDeadlock", "kernel has no deadlock"),
        ("NeuronHealth", "False", "NeuronHasNoError", "Neuron has no error"),
        node_health_status="Schedulable",
        deep_health_check_status="Passed",
    )
    well["metadata"]["annotations"] = {f"{HYPERPOD}fault-details": json.dumps([{"message": XID}])}
    assert node_facts(well) == [], "faults of a node that works again are history"
    assert node_facts({}) == []


@pytest.mark.parametrize(
    ("condition", "first"),
    [
        (("AcceleratedHardwareReady", "False", "NvidiaXID79Error", "detected XID-79"), "fault-xid-79"),
        (("AcceleratedHardwareReady", "False", "NvidiaXID74Error", "detected XID-74"), "fault-xid-74"),
        (("AcceleratedHardwareReady", "False", "DCGMHealthCode7", "code 7"), "accelerators-not-ready"),
        (("AcceleratedHardwareReady", "False", "DCGMError", "Host engine"), "dcgm-no-host-engine"),
        (("NetworkingReady", "False", "IPAMDNotRunning", "not running"), "ipamd-down"),
        (("Ready", "Unknown", "NodeStatusUnknown", GONE), "node-status-unknown"),
        (("NeuronHealth", "True", "NeuronHasError_DMA_ERROR", "DMA_ERROR"), "fault-neuron-line-dma"),
        (("NvidiaErrorReboot", "True", "XidHardwareFailure", XID), "fault-xid-79"),
        (
            ("ReadonlyFilesystem", "True", "FilesystemIsReadOnly", READONLY.format("nvme0n1p1")),
            "fault-kernel-readonly",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else value[2],
)
def test_a_condition_is_answered_from_its_row(condition: tuple[str, str, str, str], first: str) -> None:
    facts = node_facts(a_node(condition))
    assert ids(facts, "hopper")[0] == first
    assert [(fact.where, fact.level) for fact in facts] == [("ip-10-1-0-17", "error")]
    assert facts[0].when == datetime(2026, 11, 27, 9, 51, tzinfo=UTC)


def test_a_condition_that_nobody_knows_is_shown_and_has_no_cause() -> None:
    facts = node_facts(a_node(("MoonPhase", "True", "FullMoon", "the moon is full")))
    assert [(fact.text, fact.level) for fact in facts] == [
        ("MoonPhase is True: FullMoon: the moon is full", "warning")
    ]
    assert ids(facts) == []
    loop = (
        "ReadonlyFilesystem",
        "True",
        "FilesystemIsReadOnly",
        "EXT4-fs (loop3): Remounting filesystem read-only",
    )
    assert ids(node_facts(a_node(loop))) == [], "a user's own file says nothing of the node"


def test_labels_of_hyperpod() -> None:
    asked = a_node(node_health_status="UnschedulablePendingReboot", fault_reasons="XidHardwareFailure")
    assert ids(node_facts(asked)) == ["hyperpod-pending-reboot"]
    asked["metadata"]["annotations"] = {
        f"{HYPERPOD}fault-details": json.dumps({"faults": [{"message": f'message: "{XID}"'}]})
    }
    assert ids(node_facts(asked)) == ["fault-xid-79", "hyperpod-pending-reboot"]
    checked = a_node(node_health_status="Unschedulable", deep_health_check_status="InProgress")
    assert [fact.level for fact in node_facts(checked)] == ["info"], "deep checks are no fault"
    failed = a_node(deep_health_check_status="Failed", node_health_status="UnschedulablePendingReplacement")
    assert set(ids(node_facts(failed))) == {"hyperpod-deep-check-failed", "hyperpod-pending-replacement"}


def an_event(kind: str, reason: str, message: str, at: str = "2026-11-27T09:51:00Z") -> dict[str, Any]:
    about = {"kind": kind, "name": "ip-10-1-0-17" if kind == "Node" else "train-0"}
    return {"involvedObject": about, "reason": reason, "message": message, "lastTimestamp": at}


def test_events() -> None:
    facts = event_facts(
        [
            an_event("Node", "AcceleratedHardwareReady", "NvidiaXID94Warning: detected unknown XID-94"),
            an_event("Node", "AcceleratedHardwareReady", "NvidiaXID95Error: old", "2026-11-20T00:00:00Z"),
            an_event("Node", "InvalidDiskCapacity", "invalid capacity 0 on image filesystem"),
            an_event("Pod", "Unhealthy", "Readiness probe failed: HTTP 503"),
            *[an_event("Pod", "FailedScheduling", "0/2 nodes are available: 2 Too many pods")] * 3,
            {"involvedObject": None, "reason": None, "message": None, "eventTime": "nonsense"},
        ],
        SINCE,
    )
    assert [(fact.where, fact.level) for fact in facts] == [
        ("Node ip-10-1-0-17", "warning"),
        ("Node ip-10-1-0-17", "info"),
        ("Pod train-0", "warning"),
    ]
    assert set(ids(facts)) == {"fault-xid-94", "too-many-pods"}
    many = [an_event("Node", "Odd", f"number {number}") for number in range(5 * MOST_EVENTS)]
    assert len(event_facts(many, SINCE)) == MOST_EVENTS


def test_an_application_error_in_an_event_asks_nothing_of_the_node() -> None:
    facts = event_facts([an_event("Node", "AcceleratedHardwareReady", "NvidiaXID13Warning: x")], SINCE)
    examination = Examination(facts=facts)
    assert examination.diagnoses == [] and [(fault.id, times) for fault, times in examination.benign] == [
        ("xid-13", 1)
    ]


def examined(api: Api) -> Examination:
    made, inquiry = account("us-east-2"), Inquiry()
    serve_cluster(made, api)
    examine_kubernetes(made, EKS, inquiry, SINCE)
    return inquiry.collect()


def test_the_api_is_read_and_never_written(tmp_path: Path) -> None:
    broken = a_node(("AcceleratedHardwareReady", "False", "NvidiaXID79Error", "detected XID-79"))
    broken["spec"]["unschedulable"] = True
    with serving(tmp_path) as api:
        api.objects["GET", "/api/v1/nodes"] = 200, {"items": [broken, a_node()]}
        api.objects["GET", "/api/v1/events"] = 200, {"items": [an_event("Node", "NodeNotReady", "odd")]}
        examination = examined(api)
    assert {(source.name, source.state) for source in examination.sources} == {
        ("Kubernetes nodes", "read"),
        ("Kubernetes events", "read"),
    }
    assert {method for method, _, _ in api.asked} == {"GET"}
    assert ids(examination.facts) == ["fault-xid-79"] and not examination.healthy
    assert "is cordoned: new pods stay away" in [fact.text for fact in examination.facts]


def test_an_api_that_refuses_is_a_row(tmp_path: Path) -> None:
    with serving(tmp_path) as api:
        api.objects["GET", "/api/v1/nodes"] = 403, {"message": "nodes is forbidden", "reason": "Forbidden"}
        api.objects["GET", "/api/v1/events"] = 200, {"items": []}
        examination = examined(api)
    states = {source.name: (source.state, source.why) for source in examination.sources}
    assert states["Kubernetes nodes"][0] == "not readable" and "forbidden" in states["Kubernetes nodes"][1]
    assert states["Kubernetes events"][0] == "read" and not examination.healthy


DESCRIBED = """\
Name:               ip-10-1-0-17.us-east-2.compute.internal
Labels:             node.kubernetes.io/instance-type=p5en.48xlarge
Taints:             nvidia.com/gpu=true:NoSchedule
Unschedulable:      false
Conditions:
  Type                       Status  LastHeartbeatTime                 LastTransitionTime                Reason                       Message
  ----                       ------  -----------------                 ------------------                ------                       -------
  MemoryPressure             False   Fri, 27 Nov 2026 10:00:00 +0000   Fri, 27 Nov 2026 08:00:00 +0000   KubeletHasSufficientMemory   kubelet has sufficient memory available
  Ready                      True    Fri, 27 Nov 2026 10:00:00 +0000   Fri, 27 Nov 2026 08:00:00 +0000   KubeletReady                 kubelet is posting ready status
  AcceleratedHardwareReady   {status}   Fri, 27 Nov 2026 10:00:00 +0000   Fri, 27 Nov 2026 09:51:00 +0000   {reason}   {message}
Events:
  Type     Reason                    Age                From                       Message
  ----     ------                    ----               ----                       -------
  Warning  InvalidDiskCapacity       10m                kubelet                    invalid capacity 0 on image filesystem
"""  # noqa: E501, as kubectl prints it


def test_a_pasted_description_of_a_node_is_answered_from_the_row() -> None:
    words = "detected XID-119 on the instance, review kernel logs for additional information."
    text = DESCRIBED.format(status="False", reason="NvidiaXID119Error", message=words)
    logs = read_logs(["-"], io.BytesIO(text.encode()), ("hopper",))
    (one,) = logs.diagnoses
    assert one.failure.id == "fault-xid-119" and one.failure.page == "runbooks/GpuXidReset.md"
    assert "after which node repair, where it is on, replaces it" in one.failure.differs
    assert logs.labels[one.evidence[0]] == "standard input:10"
    well = DESCRIBED.format(status="True", reason="NvidiaAcceleratedHardwareIsReady", message="is active")
    assert read_logs(["-"], io.BytesIO(well.encode()), ("hopper",)).diagnoses == []


def test_a_node_as_json_is_read() -> None:
    node = a_node(("AcceleratedHardwareReady", "False", "NvidiaXID48Error", "detected XID-48"))
    for text in (json.dumps(node), json.dumps(node, indent=4)):
        logs = read_logs(["-"], io.BytesIO(text.encode()))
        assert [diagnose.failure.id for diagnose in logs.diagnoses] == ["fault-xid-48"]
