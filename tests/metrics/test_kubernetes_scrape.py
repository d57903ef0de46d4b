"""A real Prometheus agent scrapes a Kubernetes cluster with the configuration that its pod would read.

Debian's 2.42 is built without the discovery of Kubernetes, so that this is forky's 3.5.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kubernetes_service import certificate
from kubernetes_support import environment
from kubernetes_targets import KubernetesApi, address, exporter, kubernetes_api, node, pod
from metrics_stand.versions import NoPrometheusError, Tools, program, tools
from ruamel.yaml import YAML

from ultracluster.catalog.metrics import metric, metrics
from ultracluster.kubernetes.isolation import TRAINING_PORT
from ultracluster.kubernetes.metrics.nodes import node_objects
from ultracluster.kubernetes.metrics.objects import agent
from ultracluster.kubernetes.metrics.scrape import (
    AGENT_PORT,
    DCGM_PORT,
    KUEUE_PORT,
    NODE_PORT,
    STATE_PORT,
    agent_configuration,
    scraper_configuration,
)
from ultracluster.model import Cluster, resolve

pytestmark = pytest.mark.slow

RECORDED = Path(__file__).with_name("recorded")
PATIENCE = 600
TOKEN = "a-token-of-the-agent"  # noqa: S105 - of this test
MEMBERS = {"members": ["arn:aws:iam::111122223333:role/research"]}
LAYER = "topology.k8s.aws/network-node-layer"
GPU = {
    "ultracluster/node-group": "train",
    "ultracluster/role": "compute",
    "nvidia.com/gpu.present": "true",
    "node.kubernetes.io/instance-type": "p5en.48xlarge",
    **{f"{LAYER}-{number}": f"nn-{number}" for number in (1, 2, 3)},
}
GPU_LABELS = {
    "cluster": "eks-p5en",
    "node": "ip-10-0-0-1.us-east-2.compute.internal",
    "node_group": "train",
    "instance_type": "p5en.48xlarge",
    "instance_id": "i-0123456789abcdef0",
    "rack": "nn-3",
}
SERVICE = {
    **GPU,
    "node.kubernetes.io/instance-type": "ml.p5en.48xlarge",
    "topology.k8s.aws/ultraserver-id": "us-1",
}


@pytest.fixture(scope="module")
def forky() -> Tools:
    try:
        return tools("forky")
    except NoPrometheusError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return resolve(
        environment(
            {"observability": {"kind": "prometheus"}, "teams": {"research": MEMBERS, "other": MEMBERS}}
        )
    )


def injected(text: str, api: KubernetesApi, *, token: Path, port: int) -> str:
    """What a pod finds in its own file system and a test does not, a port of its own, and seconds instead of
    half a minute."""
    document = YAML(typ="safe").load(text.replace(f"127.0.0.1:{AGENT_PORT}", f"127.0.0.1:{port}"))
    document["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    for job in document["scrape_configs"]:
        for config in job.get("kubernetes_sd_configs", ()):
            config["api_server"] = api.url
        if "authorization" in job:
            job["authorization"]["credentials_file"] = str(token)
    return json.dumps(document)


@dataclass
class Stand:
    api: KubernetesApi
    agents: list[str]
    receiver: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        return self._ask(self.receiver, "query", query=expression)["result"]

    def labels(self, expression: str) -> list[dict[str, str]]:
        return [
            {key: text for key, text in one["metric"].items() if key != "__name__"}
            for one in self.query(expression)
        ]

    def up(self) -> dict[str, set[tuple[str, str]]]:
        """Node or pod and whether it answers, by job."""
        found: dict[str, set[tuple[str, str]]] = {}
        for one in self.query("up"):
            found.setdefault(one["metric"]["job"], set()).add((one["metric"]["instance"], one["value"][1]))
        return found

    def targets(self, agent: str) -> set[str]:
        return {
            target["scrapeUrl"] for target in self._ask(agent, "targets", state="active")["activeTargets"]
        }

    def until(self, what: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not what():
            if time.monotonic() > end:
                pytest.fail(self._state())
            time.sleep(0.2)

    def _state(self) -> str:
        """Return what the agents see, for a test that waits in vain."""
        active = [target for agent in self.agents for target in self._ask(agent, "targets")["activeTargets"]]
        return "\n".join(f"{one['labels']} {one['scrapeUrl']} {one['lastError']}" for one in active)

    def _ask(self, url: str, path: str, **asked: str) -> dict[str, Any]:
        whole = f"{url}/api/v1/{path}?{urllib.parse.urlencode(asked)}"
        with urllib.request.urlopen(whole, timeout=PATIENCE) as answer:  # noqa: S310 # ours
            return json.load(answer)["data"]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(stack: ExitStack, folder: Path, name: str, port: int, program: str, *arguments: str) -> str:
    """Environment with keys that sign, of nobody: the receiver does not look at signatures."""
    log = folder / f"{name}.log"
    keys = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "example"}
    written = stack.enter_context(log.open("w"))
    process = subprocess.Popen(
        [program, f"--web.listen-address=127.0.0.1:{port}", *arguments],
        stdout=written,
        stderr=written,
        env={"PATH": os.environ["PATH"], **keys},
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5):
                return f"http://127.0.0.1:{port}"
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"{name} does not start: {log.read_text()[-2000:]}")


def pod_arguments(cluster: Cluster, configuration: Path, buffer: Path) -> list[str]:
    """Of the agent's container, with places of this test instead of the pod's."""
    (workload,) = [one for one in agent(cluster, remote_write_url="") if one["kind"] == "Deployment"]
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    places = {"/etc/prometheus/prometheus.yml": str(configuration), "/buffer": str(buffer)}
    given = [arg.partition("=") for arg in container["args"]]
    return [
        f"{name}{mark}{places.get(value, value)}"
        for name, mark, value in given
        if name != "--web.listen-address"
    ]


def recorded(*names: str) -> str:
    return "".join((RECORDED / f"{name}.prom").read_text() for name in names)


def furnish(api: Any) -> None:
    """Nodes and pods: one that answers, others that lie, flood, wait or ask for what is not theirs."""
    wants = {"prometheus.io/scrape": "true", "prometheus.io/port": str(TRAINING_PORT)}
    # a GPU node, one of HyperPod whose exporters do not answer, a system node
    api.add(
        node(GPU_LABELS["node"], address(1), GPU, provider="aws:///us-east-2a/i-0123456789abcdef0"),
        node(
            "hyperpod-i-0fedcba9876543210",
            address(2),
            SERVICE,
            provider="aws:///use2-az1/sagemaker/cluster/hyperpod-abc-i-0fedcba9876543210",
        ),
        node(
            "ip-10-0-0-3.us-east-2.compute.internal",
            address(3),
            {"ultracluster/node-group": "system", "node.kubernetes.io/instance-type": "m5.xlarge"},
            provider="aws:///us-east-2a/i-00000000000000003",
        ),
    )
    gpu: dict[str, Any] = {"on": GPU_LABELS["node"]}
    system: dict[str, Any] = {"on": ""}
    asks: dict[str, Any] = {"annotations": wants, **gpu}
    odd: dict[str, Any] = {"annotations": {**wants, "prometheus.io/port": "9475/../x"}, **gpu}
    state, queues = (
        {"app.kubernetes.io/name": "kube-state-metrics"},
        {"control-plane": "controller-manager"},
    )
    ports = (9443, KUEUE_PORT)
    api.add(
        pod("job-0", address(11), namespace="research", ports=(29500, 8080), **asks),
        pod("liar", address(12), namespace="other", **asks),
        pod("sender", address(22), namespace="other", **asks),
        pod("flood", address(13), namespace="default", **asks),
        pod("waits", address(14), namespace="research", phase="Pending", **asks),
        pod("silent", address(15), namespace="research", ports=(TRAINING_PORT,), **gpu),
        pod("odd", address(16), namespace="research", **odd),
        pod("elsewhere", address(17), namespace="kube-system", **asks),
        pod("state", address(18), namespace="ultracluster-metrics", labels=state, **system),
        pod("kueue", address(19), namespace="kueue-system", labels=queues, ports=ports, **system),
    )


@pytest.fixture(scope="module")
def stand(forky: Tools, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    folder = tmp_path_factory.mktemp("kubernetes")
    token = folder / "token"
    token.write_text(TOKEN)
    _, signed = certificate(folder)
    with ExitStack() as stack:
        api = stack.enter_context(kubernetes_api())
        furnish(api)
        lies = (
            'ultracluster_training_step{job_id="7",rank="0",cluster="prod",node="n",pod="job-0",job="a"} 1\n'
            'DCGM_FI_DEV_XID_ERRORS{gpu="0"} 79\n'
            'ultracluster_training_loss{job_id="7",rank="0"} 2.5 4000000000000\n'
        )
        flood = "".join(
            f'ultracluster_training_step{{job_id="7",rank="{rank}"}} 1\n' for rank in range(1_001)
        )
        for ip, port, text in (
            (address(1), NODE_PORT, recorded("node", "efa", "lustre", "health") + "go_goroutines 7\n"),
            (address(1), DCGM_PORT, recorded("dcgm")),
            (address(3), NODE_PORT, recorded("node")),
            (address(3), DCGM_PORT, recorded("dcgm")),
            (address(11), TRAINING_PORT, recorded("training")),
            (address(12), TRAINING_PORT, lies),
            (address(13), TRAINING_PORT, flood),
            *((address(number), TRAINING_PORT, recorded("training")) for number in (14, 15, 16, 17)),
            (address(18), STATE_PORT, recorded("kube_state_metrics")),
        ):
            stack.enter_context(exporter(ip, port, text))
        secret = f"http://{address(11)}:{TRAINING_PORT}/metrics"
        stack.enter_context(exporter(address(22), TRAINING_PORT, "", elsewhere=secret))
        stack.enter_context(
            exporter(address(19), KUEUE_PORT, recorded("kueue"), token=TOKEN, certificate=signed)
        )
        empty = folder / "receiver.yml"
        empty.write_text("{}")
        receiver = start(
            stack,
            folder,
            "receiver",
            free_port(),
            forky.prometheus,
            f"--config.file={empty}",
            f"--storage.tsdb.path={folder / 'receiver'}",
            "--web.enable-remote-write-receiver",
        )
        agents: list[str] = []
        for shard in range(2):
            text = agent_configuration(
                cluster, remote_write_url=f"{receiver}/api/v1/write", shard=shard, shards=2
            )
            file = folder / f"agent-{shard}.yml"
            port = free_port()
            file.write_text(injected(text, api, token=token, port=port))
            arguments = pod_arguments(cluster, file, folder / f"buffer-{shard}")
            agents.append(start(stack, folder, f"agent-{shard}", port, forky.prometheus, *arguments))
        made = Stand(api, agents, receiver)
        expected = {"node": 3, "dcgm": 2, "training": 4, "kube-state-metrics": 1, "kueue": 1, "agent": 2}
        made.until(lambda: {job: len(made.up().get(job, ())) for job in expected} == expected)
        yield made


def test_a_node_without_its_exporter_is_seen_to_be_down(stand: Stand) -> None:
    down = "hyperpod-i-0fedcba9876543210"
    assert stand.up()["node"] == {
        (GPU_LABELS["node"], "1"),
        (down, "0"),
        ("ip-10-0-0-3.us-east-2.compute.internal", "1"),
    }
    # nothing is asked of a node that has no GPU
    assert stand.up()["dcgm"] == {(GPU_LABELS["node"], "1"), (down, "0")}
    (labels,) = stand.labels(f'up{{job="node",node="{down}"}}')
    assert labels | {"job": "node", "instance": down} == {
        **GPU_LABELS,
        "node": down,
        "instance_id": "i-0fedcba9876543210",
        "rack": "us-1",
        "job": "node",
        "instance": down,
    }


@pytest.mark.parametrize(
    ("name", "job"),
    [
        ("DCGM_FI_DEV_XID_ERRORS", "dcgm"),
        ("node_memory_MemTotal_bytes", "node"),
        ("node_amazonefa_retrans_pkts", "node"),
        ("ultracluster_lustre_stalled", "node"),
        ("ultracluster_health_result", "node"),
    ],
)
def test_series_of_a_node_carry_the_labels_of_slurm_nodes(stand: Stand, name: str, job: str) -> None:
    found = stand.labels(f'{name}{{node="{GPU_LABELS["node"]}"}}')
    assert found
    for labels in found:
        assert labels.items() >= {**GPU_LABELS, "job": job}.items()
        assert not {key for key in labels if key.lower() == "hostname" or key.startswith("exported_")}


def test_a_node_whose_place_is_unknown_has_no_rack(stand: Stand) -> None:
    (labels,) = stand.labels('up{job="node",node_group="system"}')
    assert "rack" not in labels
    assert labels["instance_id"] == "i-00000000000000003"


def test_a_training_pod_is_scraped_where_it_asks_for_it(stand: Stand) -> None:
    assert {instance for instance, _ in stand.up()["training"]} == {"job-0", "liar", "flood", "sender"}
    found = stand.labels('ultracluster_training_step_seconds{pod="job-0"}')
    assert found
    for labels in found:
        assert labels.items() >= {
            **GPU_LABELS,
            "namespace": "research",
            "pod": "job-0",
            "job": "training",
        }.items() - {("instance_id", GPU_LABELS["instance_id"])}


def test_a_pod_cannot_speak_for_another_cluster_node_or_exporter(stand: Stand) -> None:
    (labels,) = stand.labels('ultracluster_training_step{pod="liar"}')
    assert labels["cluster"] == "eks-p5en"
    assert labels["node"] == GPU_LABELS["node"]
    assert labels["job"] == "training"
    assert labels["exported_cluster"] == "prod"
    assert not stand.query('DCGM_FI_DEV_XID_ERRORS{job="training"}')


def test_a_pod_can_send_the_agent_nowhere_and_choose_no_time(stand: Stand) -> None:
    assert ("sender", "0") in stand.up()["training"]
    assert not stand.query('ultracluster_training_step_seconds{pod="sender"}')
    (loss,) = stand.query('timestamp(ultracluster_training_loss{pod="liar"})')
    assert abs(float(loss["value"][1]) - time.time()) < PATIENCE


def test_a_pod_with_too_many_series_is_left_out_and_the_others_stay(stand: Stand) -> None:
    assert ("flood", "0") in stand.up()["training"]
    assert ("job-0", "1") in stand.up()["training"]
    assert not stand.query('ultracluster_training_step{pod="flood"}')


def test_what_the_catalogue_does_not_name_stays_on_the_node(stand: Stand) -> None:
    names = {one["metric"]["__name__"] for one in stand.query('{__name__=~".+"}')}
    assert "go_goroutines" not in names
    made = {name for name in names if name == "up" or name.startswith("scrape_")}
    assert len(names - made) > 100
    for name in names - made:
        metric(name)  # raises for one that is not there


def test_kueue_lets_in_who_has_the_agents_token(stand: Stand) -> None:
    assert stand.up()["kueue"] == {("kueue", "1")}
    (labels,) = stand.labels('kueue_pending_workloads{cluster_queue="team-0",status="active"}') or [{}]
    assert labels.get("cluster") == "eks-p5en"


def test_two_agents_share_the_targets_and_take_none_twice(stand: Stand) -> None:
    first, second = (stand.targets(agent) for agent in stand.agents)
    assert not first & second
    assert len(first | second) == 3 + 2 + 4 + 1 + 1 + 2
    assert stand.up()["agent"] == {("agent-0", "1"), ("agent-1", "1")}


def test_only_namespaces_of_jobs_and_our_own_are_listed(stand: Stand) -> None:
    listed = {path for path in stand.api.asked if path.endswith("/pods")}
    namespaces = ("default", "kueue-system", "other", "research", "ultracluster-metrics")
    assert listed == {f"/api/v1/namespaces/{name}/pods" for name in namespaces}


def test_what_comes_and_goes_is_followed(stand: Stand) -> None:
    wants = {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(TRAINING_PORT),
        "prometheus.io/path": "/own",
    }
    late = pod(
        "late", address(21), namespace="research", on=GPU_LABELS["node"], annotations=wants, phase="Pending"
    )
    with exporter(address(21), TRAINING_PORT, recorded("training"), path="/own"):
        stand.api.add(late)
        stand.api.add({**late, "status": {**late["status"], "phase": "Running"}}, change="MODIFIED")
        stand.until(lambda: ("late", "1") in stand.up()["training"])
        stand.api.add(late, change="DELETED")
        stand.until(
            lambda: not any(f"//{address(21)}:" in url for one in stand.agents for url in stand.targets(one))
        )


@pytest.mark.parametrize("text", [agent_configuration, scraper_configuration])
def test_prometheus_accepts_each_configuration(
    text: Any, forky: Tools, cluster: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "prometheus.yml"
    mode: list[str] = []
    if text is agent_configuration:
        mode, made = (
            ["--agent"],
            text(cluster, remote_write_url="https://aps-workspaces.example/api/v1/remote_write"),
        )
    else:
        made = text(cluster)
    file.write_text(made)
    # without looking for the files that only a pod has
    command = [forky.promtool, "check", "config", *mode, "--syntax-only", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    file.write_text(made.replace("action: keep", "action: keepp", 1))
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1


def test_node_exporter_takes_its_arguments_and_tells_what_the_catalogue_names(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Debian's, whose release is older than the image's; the machine's own files instead of a node's."""
    try:
        found = program("prometheus-node-exporter", "node_exporter")
    except NoPrometheusError as error:
        pytest.skip(str(error))
    _, (workload,), *_ = node_objects(cluster)
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    port = free_port()
    places = {"/host": "", "/metrics": str(tmp_path), "$(HOST_IP):9100": f"127.0.0.1:{port}"}
    arguments: list[str] = []
    for name, mark, value in (arg.partition("=") for arg in container["args"]):
        prefix = next((place for place in places if value == place or value.startswith(f"{place}/")), "")
        arguments.append(f"{name}{mark}{places.get(prefix, '')}{value.removeprefix(prefix)}" or "/")
    arguments = [argument.replace("rootfs=", "rootfs=/") for argument in arguments]
    (tmp_path / "efa.prom").write_text(recorded("efa"))
    process = subprocess.Popen([found, *arguments], stderr=subprocess.DEVNULL)
    try:
        text, end = "", time.monotonic() + PATIENCE
        while not text and time.monotonic() < end and process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                    text = answer.read().decode()
            except OSError:
                time.sleep(0.1)
    finally:
        process.kill()
        process.wait()
    names = {line.split("{")[0].split()[0] for line in text.splitlines() if line[:1] not in ("#", "")}
    wanted = {one.name for one in metrics().values() if one.exporter == "node_exporter"}
    # a machine of this test may have no pressure counters and no disk of its own
    assert {one for one in wanted - names if "pressure" not in one and "disk" not in one} == set()
    assert "node_amazonefa_tx_bytes" in names
    assert "node_cpu_seconds_total" not in names
