"""The collective on Kubernetes: an MPIJob, made and removed through the API."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ruamel.yaml import YAML

from ultracluster.acceptance.job import manifest
from ultracluster.account.aws import AccountError
from ultracluster.account.kubernetes_api import KubernetesApi
from ultracluster.account.wait.evidence import efa_interfaces
from ultracluster.account.wait.smoke import EVERY, LIMIT, Clock, Pair, Smoke, new_name, verdict
from ultracluster.model import Cluster
from ultracluster.model.devices import claims_efa

NAMESPACE = "default"
_PLACES = {
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "MPIJob": "/apis/kubeflow.org/v2beta1/namespaces/{}/mpijobs",
    "ComputeDomain": "/apis/{version}/namespaces/{}/computedomains",
    "ResourceClaimTemplate": "/apis/{version}/namespaces/{}/resourceclaimtemplates",
}
"""Where the API keeps the kinds that the job's manifest has."""


def run_on_kubernetes(
    cluster: Cluster,
    pair: Pair,
    *,
    api: Callable[[], KubernetesApi],
    image: str | None,
    clock: Clock | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Smoke:
    """Run the acceptance job on two nodes and judge it. Nothing of it stays in the cluster.

    Args:
        api: opens the cluster's API.
        image: container image with nccl-tests; without one nothing can be run.
        say: called with what the job does.
    """
    if image is None:
        return by_hand(cluster, pair, image, "no container image with nccl-tests is named: --image")
    name = new_name()
    paths: list[str] = []
    open_api: KubernetesApi | None = None
    time = clock or Clock()
    try:
        text = manifest(
            pair.instance_type, 2, image=image, name=name, namespace=NAMESPACE,
            hyperpod=cluster.traits.hyperpod,
            efa_interfaces=efa_interfaces(cluster, pair.instance_type),
            efa_claims=claims_efa(cluster),
        )  # fmt: skip
        open_api = api()
        for document in _documents(text):
            place = _place(document)
            paths.append(f"{place}/{document['metadata']['name']}")
            open_api.request(place, method="POST", body=document)
        ended = _wait(open_api, paths, time, say)
        if not ended:
            return by_hand(cluster, pair, image, f"the job has not ended in {LIMIT / 60:g} minutes")
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "launcher.log"
            log.write_bytes(_log(open_api, name))
            return verdict(pair.group, pair, [log], cluster)
    except (AccountError, ValueError) as error:
        hint = " (`orchestrator.mpi_operator: true` brings the operator)" if " 404" in str(error) else ""
        return by_hand(cluster, pair, image, f"{error}{hint}")
    finally:
        if open_api:
            for path in paths:
                with contextlib.suppress(AccountError):
                    open_api.request(f"{path}?propagationPolicy=Background", method="DELETE")


def by_hand(cluster: Cluster, pair: Pair, image: str | None, why: str) -> Smoke:
    """Return what to do where the job cannot be run from here."""
    options = " --hyperpod" if cluster.traits.hyperpod else ""
    options += " --efa-devices dra" if claims_efa(cluster) else ""
    command = (
        f"ultracluster acceptance --job --type {pair.instance_type} --nodes 2 --image {image or 'IMAGE'}"
        f"{options} | kubectl apply -f -   # then: kubectl logs --follow job/nccl-acceptance-launcher > log,"
        f" ultracluster acceptance log --type {pair.instance_type} --nodes 2"
    )
    return Smoke(pair.group, "not judged", why, command, tuple(node.name for node in pair.nodes))


def _documents(text: str) -> list[dict[str, Any]]:
    return [dict(one) for one in YAML(typ="safe").load_all(text) if one]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportUnknownArgumentType]


def _place(document: dict[str, Any]) -> str:
    place = _PLACES[document["kind"]]
    return place.replace("{version}", document["apiVersion"]).replace("{}", NAMESPACE)


def _wait(api: KubernetesApi, paths: list[str], clock: Clock, say: Callable[[str], None]) -> bool:
    """Return whether the job ends in time."""
    job = next(path for path in paths if "/mpijobs/" in path)
    start, state = clock.now(), ""
    while clock.now() - start < LIMIT:
        conditions: list[dict[str, Any]] = api.get(job).get("status", {}).get("conditions", [])
        true = [str(condition.get("type")) for condition in conditions if condition.get("status") == "True"]
        if {"Succeeded", "Failed"} & set(true):
            return True
        if true and true[-1] != state:
            state = true[-1]
            say(f"job {job.rpartition('/')[2]}: {state}")
        clock.sleep(EVERY)
    return False


def _log(api: KubernetesApi, name: str) -> bytes:
    selector = quote(f"batch.kubernetes.io/job-name={name}-launcher", safe="")
    pods: list[dict[str, Any]] = api.get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={selector}").get(
        "items", []
    )
    if not pods:
        raise ValueError("the job has no launcher pod, so there is no log")
    pod = pods[0]["metadata"]["name"]
    return api.request(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/log")
