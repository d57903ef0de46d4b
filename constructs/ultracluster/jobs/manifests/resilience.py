"""A training job of HyperPod's operator, which restarts processes, recovers them or changes their number.

SageMaker Developer Guide, "Using the training operator to run jobs", "Checkpointless training in Amazon
SageMaker HyperPod", "Using elastic training in Amazon SageMaker HyperPod". `hyperpodrun`, which takes the
place of torchrun in the image, is of the package hyperpod-elastic-agent (1.1.3 on PyPI was read).
"""

from __future__ import annotations

from typing import Any, assert_never

from ultracluster.catalog.hyperpod_eks import packages_of_image, training_job
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.jobs.training_job import Kind, PyTorchJob, Resilience
from ultracluster.model import Cluster
from ultracluster.model.team_shares import scheduler_of

Manifest = dict[str, Any]

LOGS = "/tmp/hyperpod"  # noqa: S108 - only of the container
"""Where the agent reads what the program prints."""
PROCESS_RESTARTS, JOB_RESTARTS, WITHIN_SECONDS = 3, 3, 21_600
"""The processes start again three times in six hours before all pods do, and all pods three times."""
FIRST_LINE_SECONDS = 1_800
"""In which a program must have printed its first step: images, NCCL and the data come before it."""
SAVE_SECONDS, SETTLE_SECONDS, LOST_SECONDS = 600, 60, 30
"""Of an elastic job: for the last checkpoint before its size changes, before it grows, and until it goes on
without a lost node. Figures of the guide's example."""
PORTS = "20000 65535"
"""Of outgoing connections: ranks find each other without a root, and take many at once."""
RETRIES = 50
"""Restarts of processes over the whole job, as in the guide's example: in weeks there are more than a few."""
_LEVELS = {"restart": "restarts", "checkpointless": "checkpointless training", "elastic": "elastic training"}


def check_resilience(cluster: Cluster, job: PyTorchJob) -> None:
    """Refuse what the operator, or the cluster, does not take.

    Raises:
        ValueError: it says what, and what to do.
    """
    asked, settings = job.resilience, cluster.kubernetes
    assert asked
    if not isinstance(settings, HyperPodEks):
        raise ValueError(
            f"--resilience is of HyperPod's training operator, and this is {cluster.settings.kind}"
        )
    if not settings.training_operator:
        raise ValueError("orchestrator.training_operator is off: nothing runs a job with --resilience")
    if asked.kind != "restart" and asked.kind not in settings.resilience:
        raise ValueError(
            f"{_LEVELS[asked.kind]} is not prepared: write `{asked.kind}` to orchestrator.resilience, and "
            "what it needs is looked at"
        )
    scheduler = scheduler_of(cluster)
    if scheduler not in ("kueue", "task-governance"):
        raise ValueError(
            f"the training operator asks Kueue for pods and spares, and orchestrator.scheduler is {scheduler}"
        )
    if asked.kind == "checkpointless" and not job.pool.resource.startswith("nvidia.com/"):
        raise ValueError(f"checkpointless training requires NVIDIA GPUs, and {job.pool.group} has none")
    if asked.kind == "elastic":
        _check_elastic(job, asked)
    elif asked.most_nodes or asked.sizes or asked.step != 1:
        raise ValueError("--most-nodes, --step and --sizes are for --resilience elastic")


def _check_elastic(job: PyTorchJob, asked: Resilience) -> None:
    if job.checkpoints_to:
        raise ValueError(
            "elastic training does not support managed tiered checkpoints: leave --checkpoints-to away, and "
            "save to the file system"
        )
    if job.pool.settings.capacity.kind == "spot":
        raise ValueError(f"elastic training does not support Spot, which {job.pool.group} is: --group")
    if asked.sizes:
        if asked.step != 1:
            raise ValueError("--sizes or --step, and not both: sizes are all that the job may have")
        smallest = min(asked.sizes)
        if smallest != job.nodes:
            raise ValueError(f"an elastic job starts with its smallest size: --nodes {smallest}")
        if asked.most_nodes not in (None, max(asked.sizes)):
            raise ValueError(f"the largest of --sizes is its most: --most-nodes {max(asked.sizes)}, or none")
        return
    if asked.most_nodes is None:
        raise ValueError("an elastic job needs --most-nodes, or --sizes: --nodes is what it starts with")
    if asked.most_nodes <= job.nodes:
        raise ValueError(f"--most-nodes {asked.most_nodes} is not more than --nodes {job.nodes}")
    if asked.step > asked.most_nodes - job.nodes:
        raise ValueError(
            f"from {job.nodes} to {asked.most_nodes} nodes there is no step of {asked.step}. Use at most: "
            f"--step {asked.most_nodes - job.nodes}"
        )
    if over := (asked.most_nodes - job.nodes) % asked.step:
        raise ValueError(
            f"from {job.nodes} in steps of {asked.step} a job never has {asked.most_nodes} nodes: "
            f"--most-nodes {asked.most_nodes - over}"
        )


def operator_job(job: PyTorchJob, template: Manifest, metadata: Manifest) -> Manifest:
    """The operator's own kind of object, around a pod that starts torchrun."""
    asked, known = job.resilience, training_job()
    assert asked
    replicas: Manifest = {"name": "node", "replicas": job.nodes}
    spec: Manifest = {"nprocPerNode": str(job.processes), "runPolicy": _run_policy(asked)}
    if asked.spares:
        replicas["spares"] = asked.spares
    if asked.kind == "elastic":
        most = max(asked.sizes) if asked.sizes else asked.most_nodes
        replicas["maxReplicas"] = most
        spec["elasticPolicy"] = {
            "minReplicas": job.nodes,
            "maxReplicas": most,
            **(
                {"replicaDiscreteValues": sorted(asked.sizes)}
                if asked.sizes
                else {"replicaIncrementStep": asked.step}
            ),
            "gracefulShutdownTimeoutInSeconds": SAVE_SECONDS,
            "scalingTimeoutInSeconds": SETTLE_SECONDS,
            "faultyScaleDownTimeoutInSeconds": LOST_SECONDS,
        }
    spec["replicaSpecs"] = [{**replicas, "template": _started_by_agent(job, template)}]
    return {"apiVersion": known["api_version"], "kind": known["kind"], "metadata": metadata, "spec": spec}


def _run_policy(asked: Resilience) -> Manifest:
    policy: Manifest = {
        # the pods of a job that failed stay: their logs say why, and they hold no node
        "cleanPodPolicy": "OnlyComplete",
        "jobMaxRetryCount": RETRIES,
        "restartPolicy": {
            "evalPeriodSeconds": WITHIN_SECONDS,
            "maxFullJobRestarts": JOB_RESTARTS,
            "numRestartBeforeFullJobRestart": PROCESS_RESTARTS,
        },
    }
    if asked.log_line:
        policy["logMonitoringConfiguration"] = [
            {
                "name": "step",
                "logPattern": asked.log_line,
                "expectedStartCutOffInSeconds": FIRST_LINE_SECONDS,
                "expectedRecurringFrequencyInSeconds": asked.log_seconds,
            }
        ]
    return policy


def _started_by_agent(job: PyTorchJob, template: Manifest) -> Manifest:
    """The pod with the agent's launcher in place of torchrun; ranks and addresses are the operator's."""
    asked = job.resilience
    assert asked
    spec = {key: value for key, value in template["spec"].items() if key != "restartPolicy"}
    (container,) = spec["containers"]
    container = {**container, "command": ["hyperpodrun"], "args": hyperpodrun(job)}
    container["ports"] = [{"containerPort": training_job()["agent_port"]}]
    if variables := _variables(asked.kind):
        extra = [{"name": key, "value": value} for key, value in variables.items()]
        container["env"] = [*container.get("env", []), *extra]
    spec["containers"] = [container]
    if asked.kind == "checkpointless":
        # one of those that Kubernetes calls safe: it is of the pod, and needs no privilege
        ports = {"name": "net.ipv4.ip_local_port_range", "value": PORTS}
        spec["securityContext"] = {**spec["securityContext"], "sysctls": [ports]}
    return {**template, "spec": spec}


def hyperpodrun(job: PyTorchJob) -> list[str]:
    """Arguments of the launcher. The number of nodes is the operator's to say: it can change."""
    asked = job.resilience
    in_process = ["--inprocess-restart"] if asked and asked.kind == "checkpointless" else []
    return [
        f"--nproc-per-node={job.processes}",
        "--rdzv-backend=hyperpod",
        "--tee=3",
        f"--log-dir={LOGS}",
        *in_process,
        job.script,
    ]


def _variables(kind: Kind) -> dict[str, str]:
    match kind:
        case "restart":
            return {}
        case "checkpointless":
            return {"HPCT_USE_ROOTLESS": "1"}
        case "elastic":
            # without it `elastic_event_detected()` is never true (hyperpod-elastic-agent 1.1.3,
            # elastic_event_handler.py), and all ranks must see an event at the same step
            return {"HYPERPOD_SIGNAL_COORDINATION": "distributed"}
        case _ as never:
            assert_never(never)


def image_note(job: PyTorchJob) -> str:
    """Return what the image must have in addition to PyTorch."""
    asked = job.resilience
    packages = list(packages_of_image(asked.kind)) if asked else []
    if job.checkpoints_to:
        packages += packages_of_image("tiered-checkpoints")
    if not packages:
        return ""
    also = {
        "checkpointless": " Its program is on NVIDIA NeMo, wrapped by aws/sagemaker-hyperpod-checkpointless-"
        "training, with num_distributed_optimizer_instances of 2 or more.",
        "elastic": " Its program asks elastic_event_detected() at each step, saves with torch.distributed."
        "checkpoint, ends, and loads at another number of ranks.",
    }.get(asked.kind if asked else "", "")
    return f"The image must have what pip calls {', '.join(packages)}.{also}"
