"""What collects metrics under Kubernetes: Kubernetes takes it, it harms no job, and it sees every node."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from kubernetes_support import environment
from pod_security import violations
from ruamel.yaml import YAML

from ultracluster.catalog import InstanceType, instance_types
from ultracluster.catalog.eks import charts, kubernetes_releases
from ultracluster.catalog.metrics import metric, series_names
from ultracluster.catalog.metrics_images import metrics_images
from ultracluster.jobs.manifests.job_pod import whole_node
from ultracluster.kubernetes.charts import device_charts
from ultracluster.kubernetes.isolation import METRICS_NAMESPACE, TRAINING_PORT, network_policies
from ultracluster.kubernetes.metrics.nodes import PRIORITY, collector_settings, node_images
from ultracluster.kubernetes.metrics.objects import SERIES_OF_AN_AGENT, agents, buffer_gib, metrics_objects
from ultracluster.kubernetes.metrics.scrape import agent_configuration, scraper_configuration
from ultracluster.model import Cluster, resolve
from ultracluster.model.metric_series import all_series
from ultracluster.model.node_price import usd_per_hour
from ultracluster.model.team_shares import Pool, pools
from ultracluster.rules.eks.pods import most_pods
from ultracluster.scripts_folder import scripts_folder

pytestmark = pytest.mark.slow

URL = "https://aps-workspaces.us-east-2.amazonaws.com/workspaces/ws-1/api/v1/remote_write"
BASES = ("eks-p5en", "eks-trn2", "hyperpod-eks-p5")
Object = dict[str, Any]


def cluster_of(base: str = "eks-p5en", **changes: Any) -> Cluster:
    asked = {"observability": {"kind": "prometheus"}} | {
        key.replace("__", "."): one for key, one in changes.items()
    }
    return resolve(environment(asked, base=base))


def objects(cluster: Cluster, url: str | None = URL) -> list[Object]:
    return list(chain.from_iterable(metrics_objects(cluster, remote_write_url=url)))


def of_kind(cluster: Cluster, *kinds: str) -> list[Object]:
    return [one for one in objects(cluster) if one["kind"] in kinds]


def pods(cluster: Cluster) -> Iterator[tuple[Object, Object]]:
    """Each workload with its pods' template."""
    for one in of_kind(cluster, "DaemonSet", "Deployment"):
        yield one, one["spec"]["template"]


@pytest.mark.parametrize("release", kubernetes_releases())
@pytest.mark.parametrize("base", BASES)
def test_kubernetes_takes_every_object(base: str, release: str) -> None:
    made = objects(cluster_of(base))
    assert {one["kind"] for one in made} == {
        *("ClusterRole", "ClusterRoleBinding", "ConfigMap", "DaemonSet", "Deployment", "Namespace"),
        *("NetworkPolicy", "PriorityClass", "ServiceAccount"),
    }
    for one in made:
        kubernetes_validate.validate(one, release, strict=True)


def test_the_check_of_objects_can_fail() -> None:
    broken = of_kind(cluster_of(), "DaemonSet")[0]
    broken["spec"]["template"]["spec"]["hostNetworks"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, "1.34", strict=True)


@pytest.mark.parametrize("base", BASES)
def test_host_paths_and_rights_are_in_the_system_namespace_only(base: str) -> None:
    cluster = cluster_of(base)
    (namespace,) = of_kind(cluster, "Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    for workload, template in pods(cluster):
        if workload["metadata"]["namespace"] == METRICS_NAMESPACE:
            assert violations(template, "restricted") == []
        else:
            assert workload["metadata"]["namespace"] == "kube-system"


def test_only_neurons_own_program_is_privileged_and_nothing_writes_to_the_host() -> None:
    privileged: set[str] = set()
    for base in BASES:
        for _, template in pods(cluster_of(base)):
            hosts = {one["name"] for one in template["spec"].get("volumes", ()) if "hostPath" in one}
            for one in template["spec"]["containers"]:
                context = one["securityContext"]
                if context.get("privileged"):
                    privileged.add(one["name"])
                    continue
                assert context["readOnlyRootFilesystem"]
                assert context["capabilities"] == {"drop": ["ALL"]}
                assert all(
                    mount.get("readOnly") for mount in one.get("volumeMounts", ()) if mount["name"] in hosts
                )
    assert privileged == {"neuron-monitor"}


@pytest.mark.parametrize("base", BASES)
def test_every_node_is_watched_once_whatever_its_taints(base: str) -> None:
    """By the labels of nodes: each group's nodes have one DaemonSet, all others that of system nodes."""
    cluster = cluster_of(base)
    sets = of_kind(cluster, "DaemonSet")
    for one in sets:
        assert one["spec"]["template"]["spec"]["tolerations"] == [{"operator": "Exists"}]
    for group in cluster.groups.values():
        labels = {"ultracluster/node-group": group.name, "ultracluster/role": group.role}
        matching = [one["metadata"]["name"] for one in sets if selects(one, labels)]
        suffix = f"-{group.name}" if group.role == "compute" else ""
        assert matching == [f"ultracluster-node-metrics{suffix}"]
    assert len([one for one in sets if selects(one, {})]) == 1


def selects(workload: Object, labels: dict[str, str]) -> bool:
    affinity = workload["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return all(
        (labels.get(one["key"]) in one["values"]) is (one["operator"] == "In")
        for one in term["matchExpressions"]
    )


def test_nodes_get_nothing_that_they_cannot_use() -> None:
    trainium, gpus = cluster_of("eks-trn2"), cluster_of("eks-p5en")
    for cluster, neuron in ((trainium, True), (gpus, False)):
        for workload, template in pods(cluster):
            names = [one["name"] for one in template["spec"]["containers"]]
            if workload["metadata"]["name"] == "ultracluster-node-metrics":
                assert names == ["node-exporter"]
            elif workload["kind"] == "DaemonSet":
                assert ("neuron-monitor" in names) is neuron
    assert "dcgm" not in agent_configuration(trainium, remote_write_url=URL)
    assert not [one for one in device_charts(trainium) if one.name == "dcgm-exporter"]


def test_nothing_of_this_pushes_a_job_away_or_is_pushed_away_by_one() -> None:
    cluster = cluster_of()
    (made,) = of_kind(cluster, "PriorityClass")
    assert made["preemptionPolicy"] == "Never"
    assert 0 < made["value"] <= 1_000_000_000  # more is Kubernetes' own
    assert "globalDefault" not in made
    assert {template["spec"]["priorityClassName"] for _, template in pods(cluster)} == {PRIORITY}
    (dcgm,) = [one for one in device_charts(cluster) if one.name == "dcgm-exporter"]
    assert dcgm.values["priorityClassName"] == PRIORITY


def test_what_containers_request_is_what_the_catalogue_counts() -> None:
    for base in BASES:
        for _, template in pods(cluster_of(base)):
            for one in template["spec"]["containers"]:
                row = next(row for row in metrics_images().values() if row.image == one["image"])
                assert one["resources"]["requests"] == {"cpu": f"{row.cpu}m", "memory": f"{row.memory}Mi"}
                assert one["resources"]["limits"] == {"memory": f"{row.limit}Mi"}


CPU_OF_OTHERS, MEMORY_OF_OTHERS = 660, 1200
"""On an accelerated node: aws-node 50m, kube-proxy 100m, monitoring agent with DCGM 20m, volumes 60m and
240 Mi, device plugins 60m, dcgm-exporter 100m and 128 Mi; the defaults of charts and add-ons, doubled."""


def kept_by_the_node(kind: InstanceType) -> tuple[float, float]:
    """Processors in thousandths and MiB that EKS keeps for itself (nodeadm: kube-reserved, eviction)."""
    cores = kind.vcpu
    steps = ((1, 0.06), (1, 0.01), (2, 0.005))
    cpu, left = 0.0, cores
    for many, share in steps:
        cpu, left = cpu + min(many, max(0, left)) * share * 1000, left - many
    pods = most_pods(kind) or 250
    return cpu + max(0, left) * 0.0025 * 1000, 255 + 11 * pods + 100


@pytest.mark.parametrize("base", BASES)
def test_a_job_that_asks_for_a_whole_node_still_fits(base: str) -> None:
    """For every accelerated type that this package knows, in the place of the base's own."""
    cluster = cluster_of(base)
    group = next(iter(cluster.with_role("compute").values()))
    assert group.type and group.type.accelerator
    ours = [metrics_images()[name] for name in node_images(cluster, group)]
    maker = group.type.accelerator.manufacturer
    tried = 0
    (pool, *_) = pools(cluster)
    for kind in instance_types().values():
        if (
            not kind.accelerator
            or kind.accelerator.manufacturer != maker
            or not kind.vcpu
            or not kind.memory_gib
        ):
            continue
        asked = whole_node(Pool(**{**vars_of(pool), "instance_type": kind}))
        cpu, memory = kept_by_the_node(kind)
        # the kernel and the firmware have a part of what EC2 names, too
        there = 0.97 * kind.memory_gib * 1024 - int(asked.get("hugepages-2Mi", "0Mi")[:-2])
        tried += 1
        used = 1000 * int(asked["cpu"]) + cpu + CPU_OF_OTHERS + sum(one.cpu for one in ours)
        if kind.vcpu > 4:  # of four processors a job has three, and the rest is less than the others ask for
            assert used <= 1000 * kind.vcpu, (kind.name, used)
        taken = 1024 * int(asked["memory"][:-2]) + memory + MEMORY_OF_OTHERS + sum(one.memory for one in ours)
        if kind.memory_gib > 16:
            assert taken <= there, (kind.name, taken, there)
    assert tried > 3


def vars_of(pool: Pool) -> dict[str, Any]:
    return {name: getattr(pool, name) for name in Pool.__dataclass_fields__}


def test_there_is_one_host_engine_and_its_exporter_has_our_fields() -> None:
    """EKS's node monitoring agent has it; also where the GPU operator makes GPUs resources."""
    for plugin in ("device-plugin", "gpu-operator"):
        made = {one.name: one.values for one in device_charts(cluster_of(orchestrator__gpu_plugin=plugin))}
        dcgm = made["dcgm-exporter"]
        told = {one["name"]: one.get("value") for one in dcgm["extraEnv"]}
        assert told["DCGM_REMOTE_HOSTENGINE_INFO"] == "$(NODE_IP):5555"
        assert dcgm["hostNetwork"] is True
        assert dcgm["tolerations"] == [{"operator": "Exists"}]
        if operator := made.get("gpu-operator"):
            assert operator["dcgm"] == {"enabled": False}
            assert operator["dcgmExporter"] == {"enabled": False}
        fields = {line.split(",")[0] for line in dcgm["customMetrics"].splitlines() if line[:4] == "DCGM"}
        assert fields == {name for name in series_names("dcgm") if metric(name).until is None}


def test_the_catalogue_names_every_value_that_is_set() -> None:
    for plugin in ("device-plugin", "gpu-operator"):
        for one in device_charts(cluster_of(orchestrator__gpu_plugin=plugin)):
            row = charts()[one.name]
            assert set(one.values) <= {*row["keys"], *row.get("options", ())}, one.name


def test_without_observability_the_charts_are_as_they_were() -> None:
    plain = resolve(environment({"orchestrator.gpu_plugin": "gpu-operator"}))
    made = {one.name: one.values for one in device_charts(plain)}
    assert "dcgm-exporter" not in made
    assert "dcgmExporter" not in made["gpu-operator"]
    (dcgm,) = [one for one in device_charts(resolve(environment({}))) if one.name == "dcgm-exporter"]
    assert set(dcgm.values) == {"nodeSelector", "serviceMonitor", "tolerations", "extraEnv"}


def test_images_come_from_the_copies_where_there_are_any() -> None:
    copies = "oci://111122223333.dkr.ecr.us-east-2.amazonaws.com/mirror/"
    images = {
        one["image"]
        for base in BASES
        for _, template in pods(cluster_of(base, orchestrator__chart_repository=copies))
        for one in template["spec"]["containers"]
    }
    assert images == {
        f"111122223333.dkr.ecr.us-east-2.amazonaws.com/mirror/{row.image.rpartition('/')[2].partition('@')[0]}"
        for row in metrics_images().values()
    }


def test_a_team_lets_in_the_agent_to_one_port_and_nobody_else() -> None:
    teams = {"research": {"members": ["arn:aws:iam::111122223333:role/research"]}}
    cluster = cluster_of(teams=teams)
    (policy,) = [
        one
        for one in network_policies(cluster, "research")
        if one["metadata"]["name"] == "ultracluster-metrics"
    ]
    assert policy["spec"] == {
        "podSelector": {},
        "policyTypes": ["Ingress"],
        "ingress": [
            {
                "from": [
                    {
                        "namespaceSelector": {
                            "matchLabels": {"kubernetes.io/metadata.name": METRICS_NAMESPACE}
                        },
                        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "agent"}},
                    }
                ],
                "ports": [{"protocol": "TCP", "port": TRAINING_PORT}],
            }
        ],
    }
    kubernetes_validate.validate(policy, "1.34", strict=True)
    agent = next(one for one in of_kind(cluster, "Deployment") if one["metadata"]["name"] == "agent-0")
    assert agent["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"] == "agent"
    assert agent["metadata"]["namespace"] == METRICS_NAMESPACE


@pytest.mark.parametrize(
    "wanted",
    [{"kind": "cloudwatch"}, {"kind": "prometheus", "collector": "managed"}],
    ids=["cloudwatch", "managed"],
)
def test_nobody_is_let_in_where_no_pod_of_ours_scrapes(wanted: dict[str, Any]) -> None:
    made = network_policies(cluster_of(observability=wanted), "default")
    assert [one["metadata"]["name"] for one in made] == ["ultracluster-default-deny", "ultracluster-training"]


def test_accounts_may_look_at_nodes_and_pods_and_at_nothing_else() -> None:
    rules = {one["metadata"]["name"]: one["rules"] for one in of_kind(cluster_of(), "ClusterRole")}
    looks = {"get", "list", "watch"}
    for name, made in rules.items():
        for rule in made:
            assert set(rule["verbs"]) <= looks, name
            assert set(rule.get("resources", ())) <= {"nodes", "pods"}
            assert set(rule.get("nonResourceURLs", ())) <= {"/metrics"}
    assert len(rules) == 2


def test_the_agent_keeps_two_hours_on_a_volume_that_has_an_end() -> None:
    cluster = cluster_of()
    (agent,) = [one for one in of_kind(cluster, "Deployment") if one["metadata"]["name"].startswith("agent")]
    assert agent["spec"]["replicas"] == 1
    assert agent["spec"]["strategy"] == {"type": "Recreate"}
    volumes = {one["name"]: one for one in agent["spec"]["template"]["spec"]["volumes"]}
    assert volumes["buffer"] == {"name": "buffer", "emptyDir": {"sizeLimit": f"{buffer_gib(cluster)}Gi"}}
    arguments = agent["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--storage.agent.retention.max-time=2h" in arguments
    large = cluster_of(node_groups__train__count=1000)
    assert 2 <= buffer_gib(cluster) <= buffer_gib(large) <= 40


def test_a_large_cluster_is_divided_among_agents() -> None:
    assert agents(cluster_of()) == 1
    large = cluster_of(node_groups__train__count=1000)
    many = agents(large)
    assert many == -(-all_series(large) // SERIES_OF_AN_AGENT) > 1
    made = [one for one in of_kind(large, "Deployment") if one["metadata"]["name"].startswith("agent-")]
    assert len(made) == many
    texts = [agent_configuration(large, remote_write_url=URL, shard=n, shards=many) for n in range(many)]
    assert [text.count("job_name: kube-state-metrics") for text in texts] == [1] + [0] * (many - 1)
    assert all(text.count("modulus") == 3 for text in texts)


def test_model_servers_are_asked_once_and_keep_their_own_names() -> None:
    cluster = cluster_of(orchestrator__serving={"groups": ["train"]})
    document = YAML(typ="safe").load(agent_configuration(cluster, remote_write_url=URL))
    jobs = {one["job_name"]: one for one in document["scrape_configs"]}
    training, serving = jobs["training-default"], jobs["serving-default"]
    mark = "__meta_kubernetes_pod_annotation_ultracluster_serves"

    assert training["relabel_configs"][0] == {"source_labels": [mark], "regex": ".+", "action": "drop"}
    assert serving["relabel_configs"][0] == {"source_labels": [mark], "regex": ".+", "action": "keep"}
    assert {"target_label": "job", "replacement": "serving"} in serving["relabel_configs"]
    kept = serving["metric_relabel_configs"][0]["regex"]
    assert "vllm:time_to_first_token_seconds_bucket" in kept and "ultracluster_training_step" not in kept
    plain = agent_configuration(cluster_of(), remote_write_url=URL)
    assert "serving" not in plain and mark not in plain
    (policy,) = [
        one for one in network_policies(cluster, "default") if one["metadata"]["name"].endswith("metrics")
    ]
    assert [one["port"] for one in policy["spec"]["ingress"][0]["ports"]] == [TRAINING_PORT, 8000]


def test_each_namespace_has_limits_of_its_own_and_nobody_is_sent_elsewhere() -> None:
    teams = {name: {"members": [f"arn:aws:iam::111122223333:role/{name}"]} for name in ("one", "two")}
    document = YAML(typ="safe").load(agent_configuration(cluster_of(teams=teams), remote_write_url=URL))
    training = [one for one in document["scrape_configs"] if one["job_name"].startswith("training")]
    assert [one["job_name"] for one in training] == ["training-default", "training-one", "training-two"]
    for one in training:
        assert one["target_limit"] == 8 * 8
        assert one["kubernetes_sd_configs"][0]["namespaces"]["names"] == [one["job_name"].partition("-")[2]]
    for one in document["scrape_configs"]:
        assert one["follow_redirects"] is False
        assert one["honor_timestamps"] is False
        assert one["sample_limit"] and one["label_limit"] and one["body_size_limit"]


def test_the_text_of_a_workspace_starts_no_pod_anew_and_other_changes_do() -> None:
    """An address is a token at synth, whose text differs from one synth to the next."""

    def annotations(cluster: Cluster, url: str) -> Any:
        (agent,) = [
            one
            for one in objects(cluster, url)
            if one["metadata"]["name"] == "agent-0" and one["kind"] == "Deployment"
        ]
        return agent["spec"]["template"]["metadata"]["annotations"]

    first = annotations(cluster_of(), "${Token[TOKEN.1]}")
    assert first == annotations(cluster_of(), "${Token[TOKEN.2]}")
    assert first != annotations(cluster_of(observability={"kind": "prometheus", "scrape_seconds": 60}), "x")


def test_a_workspace_of_another_account_and_region_is_signed_for() -> None:
    theirs = {
        "arn": "arn:aws:aps:us-west-2:444455556666:workspace/ws-12345678-90ab-cdef-1234-567890abcdef",
        "role_arn": "arn:aws:iam::444455556666:role/writer",
    }
    text = agent_configuration(
        cluster_of(observability={"kind": "prometheus", "workspace": theirs}), remote_write_url=URL
    )
    (write,) = YAML(typ="safe").load(text)["remote_write"]
    assert write["sigv4"] == {"region": "us-west-2", "role_arn": "arn:aws:iam::444455556666:role/writer"}
    assert write["url"] == URL


def test_the_managed_collector_gets_what_it_can_do() -> None:
    wanted = {"kind": "prometheus", "collector": "managed", "scrape_seconds": 15}
    text = scraper_configuration(cluster_of(observability=wanted))
    assert 'scrape_interval: "30s"' in text
    for word in (
        "remote_write",
        "credentials_file",
        "attach_metadata",
        "job_name: training-default",
        "127.0.0.1",
        "kueue",
    ):
        assert word not in text
    open_one = cluster_of(observability=wanted, orchestrator__network_policies=False)
    assert "job_name: training-default" in scraper_configuration(open_one)


def test_the_collectors_run_as_their_container_would_start_them(tmp_path: Path) -> None:
    """With the files of the ConfigMap alone, its arguments, and a node's files below another root."""
    cluster = cluster_of()
    maps = {one["metadata"]["name"]: one["data"] for one in of_kind(cluster, "ConfigMap")}
    home, root, to = tmp_path / "scripts", tmp_path / "host", tmp_path / "metrics"
    for folder in (home, root, to):
        folder.mkdir()
    for name, text in {**maps["ultracluster-collectors"], **maps["ultracluster-collectors-train"]}.items():
        (home / name).write_text(text)
    workload = next(
        one for one in of_kind(cluster, "DaemonSet") if one["metadata"]["name"].endswith("-train")
    )
    (container,) = [
        one for one in workload["spec"]["template"]["spec"]["containers"] if one["name"] == "collectors"
    ]
    arguments = [*container["command"][1:], *container["args"]]
    loop = arguments.index("--loop")
    del arguments[loop : loop + 2]
    places = {"/opt/ultracluster/metrics": str(home), "/host": str(root), "/metrics": str(to)}
    for inside, outside in places.items():
        arguments = [
            outside + one.removeprefix(inside) if one == inside or one.startswith(f"{inside}/") else one
            for one in arguments
        ]
    # a process without the right to look at others sees its own mounts: the node's below /host
    claim = root / "var/lib/kubelet/pods/1-2/volumes/kubernetes.io~csi/lustre/mount"
    (root / "proc").mkdir()
    (root / "proc/mounts").write_text(f"10.1.2.3@tcp:/abcdefgh {claim} lustre rw,flock 0 0\n")
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    written = "".join(file.read_text() for file in to.glob("*.prom"))
    assert "ultracluster_efa_devices_expected 16" in written
    assert 'ultracluster_lustre_info{fs="abcdefgh",mount_name="abcdefgh"} 1' in written
    assert {line.split("{")[0].split()[0] for line in written.splitlines() if line[0] != "#"} <= set(
        series_names("node")
    )


def test_the_collectors_need_nothing_but_what_the_config_map_has() -> None:
    maps = {one["metadata"]["name"]: one["data"] for one in of_kind(cluster_of(), "ConfigMap")}
    files = maps["ultracluster-collectors"]
    assert sum(map(len, files.values())) < 900_000  # of the mebibyte that an object may have
    own = {name.removesuffix(".py") for name in files}
    for name, text in files.items():
        if name.endswith(".py"):
            imported = {
                one.split(".")[0]
                for node in ast.walk(ast.parse(text))
                for one in (
                    [alias.name for alias in node.names] if isinstance(node, ast.Import)
                    else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                )
            }  # fmt: skip
            assert imported <= own | sys.stdlib_module_names, name
    assert (scripts_folder() / "metrics" / "neuron_monitor.json").read_text() == files["neuron_monitor.json"]


def test_collectors_are_told_what_a_node_of_the_group_should_have() -> None:
    cluster = cluster_of()
    told = collector_settings(cluster, cluster.groups["train"])
    assert told.items() >= {
        "accelerator": "nvidia", "accelerators": 8, "efa_interfaces": 16, "instance_type": "p5en.48xlarge",
        "node_group": "train", "role": "compute", "slurm": False, "scrape_seconds": 30,
        "usd_per_hour": round(usd_per_hour(cluster, cluster.groups["train"]) or 0, 6),
    }.items()  # fmt: skip
    assert told["usd_per_hour"] > 10
    assert json.loads(json.dumps(told)) == told
