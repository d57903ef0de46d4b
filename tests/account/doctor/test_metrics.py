"""Doctor's questions to the metrics: each expression finds its fault, and is silent without it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from expositions import dcgm
from metrics_stand import metrics_stand
from metrics_workspace import KEYS, Workspace, serving
from needs import path_of
from project import ROOT
from rules_support import environment_data, loaded

from ultracluster.account.aws import Account, AccountError
from ultracluster.account.doctor import metrics as asked
from ultracluster.account.doctor.examination import Examination, Inquiry
from ultracluster.account.doctor.metrics import examine_metrics, expressions, questions
from ultracluster.account.metrics_query import Answer, MetricsQuery, Sample
from ultracluster.catalog.metrics import metric
from ultracluster.cli.doctor import as_dict, as_text
from ultracluster.cli.json_rows import plain
from ultracluster.metrics.expressions import names, scoped
from ultracluster.model import Cluster, resolve

ARN = "arn:aws:aps:us-west-2:111122223333:workspace/ws-12345678-90ab-cdef-1234-567890abcdef"
RECORDED = ROOT / "tests" / "metrics" / "recorded"
C = 'cluster="dev"'

# By its words: series that make an expression find something, and those with which it is silent, a value a
# minute for ten minutes or, where it looks back for longer, for two hours.
CASES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "XID {xid} on": (
        {'ultracluster_xid_last_timestamp_seconds{node="n1",xid="79",gpu="3"}': "1x10"},
        {'ultracluster_xid_last_timestamp_seconds{node="n1",xid="79",gpu="3"}': "1x130"},
    ),
    "heat slows": (
        {'DCGM_FI_DEV_THERMAL_VIOLATION{node="n1",gpu="3"}': "0+6000000000x10"},
        {'DCGM_FI_DEV_THERMAL_VIOLATION{node="n1",gpu="3"}': "9e9x10"},
    ),
    "fallen back to TCP": (
        {
            'node_network_transmit_bytes_total{node="n1",device="e"}': "0+120000000000x10",
            'node_amazonefa_tx_bytes{node="n1",device="a"}': "5x10",
        },
        {
            'node_network_transmit_bytes_total{node="n1",device="e"}': "0+120000000000x10",
            'node_amazonefa_tx_bytes{node="n1",device="a"}': "0+120000000000x10",
        },
    ),
    "are not connected": (
        {'ultracluster_lustre_targets_not_connected{node="n1",fs="f"}': "2x10"},
        {'ultracluster_lustre_targets_not_connected{node="n1",fs="f"}': "0x10"},
    ),
    "waits for a processor": (
        {'node_pressure_cpu_waiting_seconds_total{node="n1"}': "0+30x10"},
        {'node_pressure_cpu_waiting_seconds_total{node="n1"}': "0+3x10"},
    ),
    "the last XID": (
        {'DCGM_FI_DEV_XID_ERRORS{node="n1",gpu="3"}': "79x10"},
        {
            'DCGM_FI_DEV_XID_ERRORS{node="n1",gpu="3"}': "79x10",
            'ultracluster_xid_total{node="n1",xid="43",gpu="3"}': "1x10",
        },
    ),
    "cannot remap": (
        {'DCGM_FI_DEV_ROW_REMAP_FAILURE{node="n1",gpu="3"}': "1x10"},
        {'DCGM_FI_DEV_ROW_REMAP_FAILURE{node="n1",gpu="3"}': "0x10"},
    ),
    "memory errors": (
        {'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{node="n1",gpu="3"}': "2x10"},
        {'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{node="n1",gpu="3"}': "0x10"},
    ),
    "GPUs fewer": (
        {'ultracluster_gpu_count{node="n1"}': "7x10", 'ultracluster_gpu_count_expected{node="n1"}': "8x10"},
        {'ultracluster_gpu_count{node="n1"}': "8x10", 'ultracluster_gpu_count_expected{node="n1"}': "8x10"},
    ),
    "health check": (
        {'ultracluster_health_result{node="n1",check="gpus",code="lost"}': "2x10"},
        {'ultracluster_health_result{node="n1",check="gpus",code="warm"}': "1x10"},
    ),
    "EFA interfaces fewer": (
        {
            'ultracluster_efa_devices{node="n1"}': "31x10",
            'ultracluster_efa_devices_expected{node="n1"}': "32x10",
        },
        {
            'ultracluster_efa_devices{node="n1"}': "32x10",
            'ultracluster_efa_devices_expected{node="n1"}': "32x10",
        },
    ),
    "sent a second time": (
        {
            'node_amazonefa_retrans_bytes{node="n1",device="a"}': "0+5x10",
            'node_amazonefa_tx_bytes{node="n1",device="a"}': "0+100x10",
        },
        {
            'node_amazonefa_retrans_bytes{node="n1",device="a"}': "0+1x10",
            'node_amazonefa_tx_bytes{node="n1",device="a"}': "0+1000x10",
        },
    ),
    "timed out": (
        {'node_amazonefa_retrans_timeout_events{node="n1",device="a"}': "0+2x10"},
        {'node_amazonefa_retrans_timeout_events{node="n1",device="a"}': "9x10"},
    ),
    "a peer did not answer": (
        {'node_amazonefa_unresponsive_remote_events{node="n1",device="a"}': "0+2x10"},
        {'node_amazonefa_unresponsive_remote_events{node="n1",device="a"}': "9x10"},
    ),
    "does not answer": (
        {'ultracluster_lustre_stalled{node="n1",fs="f"}': "1x10"},
        {'ultracluster_lustre_stalled{node="n1",fs="f"}': "0x10"},
    ),
    "shut this node out": (
        {'ultracluster_lustre_evictions_total{node="n1",fs="f"}': "0+1x10"},
        {'ultracluster_lustre_evictions_total{node="n1",fs="f"}': "5x10"},
    ),
    "Lustre has": (
        {
            'ultracluster_lustre_free_bytes{node="n1",fs="f"}': "4x10",
            'ultracluster_lustre_size_bytes{node="n1",fs="f"}': "100x10",
        },
        {
            'ultracluster_lustre_free_bytes{node="n1",fs="f"}': "40x10",
            'ultracluster_lustre_size_bytes{node="n1",fs="f"}': "100x10",
        },
    ),
    "computes": (
        {
            f'ultracluster_training_compute_seconds{{node="n{node}",job_id="7",rank="{node}"}}': value
            for node, value in enumerate(["1x10", "1x10", "1x10", "1.5x10"])
        },
        {
            f'ultracluster_training_compute_seconds{{node="n{node}",job_id="7",rank="{node}"}}': value
            for node, value in enumerate(["1x10", "1x10", "1x10", "1.05x10"])
        },
    ),
    "tells nothing": (
        {'up{node="n1",job="dcgm"}': "0x10"},
        {'up{node="n1",job="dcgm"}': "1x10"},
    ),
    "were brought to": (
        {'ultracluster_node_release_info{node="n1",release="r",state="ready"}': "1x10"},
        {'ultracluster_node_release_info{node="n1",release="r",state="ready"}': "_x10"},
    ),
    "no number": (
        {'ultracluster_training_loss_finite{node="n1",job_id="7",rank="0"}': "0x10"},
        {'ultracluster_training_loss_finite{node="n1",job_id="7",rank="0"}': "1x10"},
    ),
    "no step": (
        {'ultracluster_training_step{node="n1",job_id="7",rank="0"}': "41x15"},
        {'ultracluster_training_step{node="n1",job_id="7",rank="0"}': "0+1x15"},
    ),
    "waits for {value": (
        {
            'ultracluster_training_wait_seconds{node="n1",job_id="7",rank="0"}': "0.5x10",
            'ultracluster_training_step_seconds{node="n1",job_id="7",rank="0"}': "1x10",
        },
        {
            'ultracluster_training_wait_seconds{node="n1",job_id="7",rank="0"}': "0.1x10",
            'ultracluster_training_step_seconds{node="n1",job_id="7",rank="0"}': "1x10",
        },
    ),
    "is firing": (
        {'ALERTS{alertname="GpuXidReboot",severity="page",node="n1",alertstate="firing"}': "1x10"},
        {'ALERTS{alertname="GpuXidReboot",severity="page",node="n1",alertstate="pending"}': "1x10"},
    ),
}


def dev(**observability: Any) -> Cluster:
    data = {**environment_data("dev"), "observability": {"kind": "prometheus", **observability}}
    return resolve(loaded(data).environment)


def lustre_text(stalled: int) -> str:
    """The recording of Lustre; evictions and room are another matter."""
    text = (RECORDED / "lustre.prom").read_text()
    return re.sub(r"(lustre_stalled\{[^}]*\}) .*", rf"\1 {stalled}", text)


def rows() -> dict[str, str]:
    return {row.says: row.expr for question in questions() for row in question.rows}


def case_of(says: str) -> tuple[dict[str, str], dict[str, str]]:
    (found,) = [case for words, case in CASES.items() if words in says]
    return found


def minutes(values: str) -> int:
    """The last minute of a series in promtool's notation: `1x10`."""
    return int(values.rpartition("x")[2])


# What is asked


def test_only_metrics_of_the_catalogue_are_asked_for() -> None:
    asked_for = {name for expression in expressions() for name in names(expression)} - {"ALERTS"}
    assert [name for name in asked_for if not metric(name)] == []


def test_every_finding_has_a_case() -> None:
    assert len(CASES) == len(rows())
    for says in rows():
        case_of(says)


@pytest.mark.parametrize("says", rows())
def test_an_expression_finds_its_fault_of_this_cluster_and_is_silent_without_it(
    says: str, tmp_path: Path
) -> None:
    promtool = path_of("promtool")
    expression = f"count({scoped(rows()[says], C)})"
    bad, good = case_of(says)

    def test(series: dict[str, str], cluster: str, found: bool) -> dict[str, Any]:
        one = [
            {"series": name.replace("{", f'{{cluster="{cluster}",', 1), "values": values}
            for name, values in series.items()
        ]
        longest = max(map(minutes, series.values()))
        samples = [{"labels": "{}", "value": 1}] if found else []
        case = {"expr": expression, "eval_time": f"{longest}m", "exp_samples": samples}
        return {"interval": "1m", "input_series": one, "promql_expr_test": [case]}

    file = tmp_path / "test.yml"
    tests = [test(bad, "dev", True), test(good, "dev", False), test(bad, "prod", False)]
    file.write_text(json.dumps({"tests": tests}))
    done = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# A real Prometheus behind an endpoint that looks at signatures


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS["AKIDEXAMPLE"])
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def examined(cluster: Cluster, url: str, monkeypatch: pytest.MonkeyPatch) -> Examination:
    real = MetricsQuery
    monkeypatch.setattr(asked, "MetricsQuery", lambda *given, **more: real(*given, url=url, **more))
    inquiry = Inquiry(budget=60)
    examine_metrics(Account(region="us-west-2"), cluster, inquiry)
    return inquiry.collect()


def test_doctor_names_the_sick_node_from_a_real_prometheus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three nodes with recorded metrics: one has the XID of a GPU, a stalled Lustre, and computes long."""
    told = (RECORDED / "training.prom").read_text()
    slow = re.sub(r"(compute_seconds\{[^}]*\}) .*", r"\1 9.5", told)
    with metrics_stand() as stand:
        for node, gpu, lustre, training in (
            ("n1", dcgm(), lustre_text(0), told),
            ("n2", dcgm(values={"XID_ERRORS": 79}), lustre_text(1), slow),
            ("n3", dcgm(), lustre_text(0), told),
        ):
            labels = {"cluster": "dev", "node": node}
            stand.serve(f"{node}/dcgm", gpu, job="dcgm", labels=labels)
            stand.serve(f"{node}/node", f"{lustre}\n{training}", job="node", labels=labels)
        # another cluster's trouble is not this one's
        stand.serve(
            "x/dcgm", dcgm(values={"XID_ERRORS": 48}), job="dcgm", labels={"cluster": "prod", "node": "x"}
        )
        stand.until(lambda: len(stand.query("up == 1")) == 7)
        with serving(Workspace(prometheus=stand.url, region="us-west-2")) as workspace:
            examination = examined(dev(workspace={"arn": ARN}), workspace.url, monkeypatch)
    assert {source.state for source in examination.sources} == {"read"}, examination.sources
    assert [source.name for source in examination.sources] == [
        "metrics", *(f"metrics: {question.name}" for question in questions()),
    ]  # fmt: skip
    text = as_text(examination, "dev")
    complaints = {(fact.source, fact.where) for fact in examination.facts if fact.level != "info"}
    assert complaints == {("metrics: gpu", "n2"), ("metrics: files", "n2"), ("metrics: node", "n2")}, text
    assert "! metrics: files: n2: Lustre" in text and "does not answer" in text
    assert "the last XID of GPU 0 is 79" in text
    assert "times as long as the median of job" in text
    assert "3 nodes tell their metrics" in json.dumps(plain(as_dict(examination)), default=str)
    assert not examination.healthy


# What can go wrong


def test_an_empty_workspace_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Workspace(region="us-west-2")) as workspace:
        examination = examined(dev(workspace={"arn": ARN}), workspace.url, monkeypatch)
    (only,) = examination.sources
    assert (only.name, only.state) == ("metrics", "nothing there")
    assert "nothing of this cluster" in only.why
    assert len(workspace.asked) == 1, "the questions would find nothing"


def test_a_workspace_that_refuses_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Workspace((403, {"message": "not authorized"}), region="us-west-2")) as workspace:
        examination = examined(dev(workspace={"arn": ARN}), workspace.url, monkeypatch)
    (only,) = examination.sources
    assert only.state == "not readable" and "aps:QueryMetrics" in only.why
    assert not examination.healthy


def test_a_part_of_the_answers_is_told_with_what_is_missing() -> None:
    class Half(MetricsQuery):
        def __init__(self) -> None:
            self.number = 0

        def ask(self, expression: str) -> Answer:
            self.number += 1
            if self.number == 1:
                raise AccountError("too many samples")
            return Answer((Sample({"node": "n1"}, 3.0),), ("results may be partial",))

    question = next(question for question in questions() if question.name == "files")
    facts = asked._answers(Half(), question, "metrics: files", C)
    assert [fact.text for fact in facts if fact.level == "warning"][-1] == "too many samples"
    assert [fact.level for fact in facts if "partial" in fact.text] == ["info"]
    assert "(no fs)" in facts[0].text, "a label that is missing is named"

    class Nothing(Half):
        def ask(self, expression: str) -> Answer:
            raise AccountError("timed out")

    with pytest.raises(AccountError, match="timed out"):
        asked._answers(Nothing(), question, "metrics: files", C)


def test_many_findings_are_counted() -> None:
    class Many(MetricsQuery):
        def __init__(self) -> None:
            pass

        def ask(self, expression: str) -> Answer:
            return Answer(tuple(Sample({"node": f"n{number}"}, float(number)) for number in range(1000)))

    question = next(question for question in questions() if question.name == "alerts")
    facts = asked._answers(Many(), question, "metrics: alerts", C)
    assert len(facts) == 21
    assert (facts[0].where, facts[-1].text) == ("n999", "and 980 more of the last")


def test_a_workspace_of_ours_is_found_by_its_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = dev()
    stack = cluster.environment.stack_name("observability")
    outputs = {stack: {"WorkspaceArn": ARN, "GrafanaId": "g-1"}}
    monkeypatch.setattr(
        asked, "stack_outputs", lambda account, stacks: {stack: outputs[stack] for stack in stacks}
    )
    assert asked._workspace(Account(region="us-west-2"), cluster) == ARN
    monkeypatch.setattr(asked, "stack_outputs", lambda account, stacks: {})
    inquiry = Inquiry(budget=10)
    examine_metrics(Account(region="us-west-2"), cluster, inquiry)
    (only,) = inquiry.collect().sources
    assert (only.state, only.why) == ("nothing there", "the stack of its Prometheus workspace is not there")


@pytest.mark.parametrize("observability", [None, {"kind": "cloudwatch"}])
def test_where_nothing_is_collected_nothing_is_asked(observability: dict[str, Any] | None) -> None:
    data = environment_data("dev") | ({"observability": observability} if observability else {})
    inquiry = Inquiry(budget=10)
    examine_metrics(Account(region="us-west-2"), resolve(loaded(data).environment), inquiry)
    assert inquiry.collect().sources == []
