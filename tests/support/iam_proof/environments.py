"""The environments that are asked about: all that are here, and each orchestrator with its network closed.

The evaluator answers about `NAMES`; the allow-list of rights is compared with `EVERY`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from project import ENVIRONMENTS, ROOT
from wish_cases import OVERLAYS

from iam_proof.features import FEATURES, feature
from iam_proof.resolved import ACCOUNT, Resolved
from iam_proof.rows import Row, facts_of, rows_of
from iam_proof.world import World
from ultracluster.config import Environment, load
from ultracluster.config.directory import Directory
from ultracluster.config.hyperpod_eks import CheckpointTier, HyperPodInference
from ultracluster.config.hyperpod_spaces import HyperPodSpaces, SpacesWebUi
from ultracluster.config.observability import Alerts, Grafana, Observability
from ultracluster.config.storage import JobBucket

CLOSED, JOBS, DIRECTORY = "no way out", "buckets of jobs", "a directory"
WATCHED, TIER, SERVED, WITH_SPACES, MOUNTS = (
    "observability", "a tier of checkpoints", "models that are served", "spaces", "folders of S3",
)  # fmt: skip
VARIANTS = {
    "eks-p5en": (CLOSED, MOUNTS),
    "hyperpod-eks-p5": (CLOSED, WATCHED, TIER, WITH_SPACES),
    "parallelcluster-p5": (CLOSED, JOBS, WATCHED),
    "pcs-p6-b200": (CLOSED, JOBS, DIRECTORY, WATCHED),
    "prod": (JOBS, DIRECTORY, WATCHED),
}
"""With these every orchestrator is asked about without a way out, and Slurm with access of jobs to S3 and
with a directory; and HyperPod, ParallelCluster and PCS with what watches them."""
ASKED = {
    "job-buckets", "job-bounds", "job-folder", "directory", "checkpoint-tier", "inference", "mountpoint-s3",
    "remote-ide", "workdirs", "workdir-key",
}  # fmt: skip
"""Words of rows that no shipped environment has."""
NAMES = (
    *ENVIRONMENTS,
    *(f"{name}, {' and '.join(words)}" for name, words in VARIANTS.items() if name in ENVIRONMENTS),
    # with a way out: ACM, which keeps the certificates of endpoints, has no endpoint of the VPC
    *(f"{name}, {SERVED}" for name in ENVIRONMENTS if name == "hyperpod-eks-p5"),
)
EVERY = (*NAMES, *OVERLAYS, *FEATURES)
"""With every overlay, and with what neither they nor shipped environments have."""
Templates = Mapping[str, Any]
READER = "arn:aws:secretsmanager:{region}:111122223333:secret:directory/reader-AbCdEf"
READERS_KEY = "arn:aws:kms:{region}:111122223333:key/88888888-2222-4333-8444-555555555555"
SIGNING_KEY = "arn:aws:kms:us-east-2:111122223333:key/66666666-2222-4333-8444-555555555555"
WEB_UI = SpacesWebUi(
    domain="spaces.example.com",
    certificate_arn="arn:aws:acm:us-east-2:111122223333:certificate/12345678-1234-1234-1234-123456789012",
    key_arn=SIGNING_KEY,
)
WRITTEN = {"bucket": "example-results", "prefix": "runs", "write": True}
RESULTS = "arn:aws:kms:{region}:111122223333:key/99999999-2222-4333-8444-555555555555"


@cache
def config_of(name: str) -> Environment:
    """The environment; what comes after a comma is changed in it.

    Args:
        name: one of `EVERY`, or the path of a file.
    """
    if name in FEATURES:
        return feature(name)
    if name.endswith(".yaml"):
        return load(ROOT / name).environment
    file, _, words = name.partition(", ")
    config = load(ROOT / "environments" / f"{file}.yaml").environment
    changed: dict[str, Any] = {}
    if CLOSED in words:
        changed["network"] = config.network.model_copy(update={"egress": "closed"})
    if JOBS in words:
        buckets = (
            {"bucket": "example-public"},
            {**WRITTEN, "key": {"arn": RESULTS}},
        )
        text = json.dumps(buckets).replace("{region}", config.region)
        made = tuple(JobBucket.model_validate(one) for one in json.loads(text))
        changed["storage"] = config.storage.model_copy(update={"job_buckets": made})
    if DIRECTORY in words:
        changed["directory"] = Directory(
            kind="ldap",
            uris=("ldaps://ldap.example.com",),
            search_base="dc=example,dc=com",
            bind_dn="cn=reader,dc=example,dc=com",
            password_secret_arn=READER.replace("{region}", config.region),
            password_key_arn=READERS_KEY.replace("{region}", config.region),
            server_networks=("10.200.0.0/24",),
        )
    if WATCHED in words:
        changed["observability"] = Observability(
            alerts=Alerts(emails=("oncall@example.com",)),
            grafana=Grafana(),
            monthly_budget_usd=50_000,
        )
    if MOUNTS in words:
        volumes = (
            ("datasets", {"bucket": "example-datasets"}),
            ("results", {**WRITTEN, "key": {"arn": RESULTS}}),
        )
        text = json.dumps(dict(volumes)).replace("{region}", config.region)
        made_volumes = {name: JobBucket.model_validate(one) for name, one in json.loads(text).items()}
        changed["orchestrator"] = config.orchestrator.model_copy(update={"mountpoint_s3": made_volumes})
    if TIER in words:
        tier = {"bucket": "example-checkpoints", "prefix": "runs", "key": {"arn": RESULTS}}
        text = json.dumps({**tier, "metrics_namespace": "Checkpoints"}).replace("{region}", config.region)
        made_tier = CheckpointTier.model_validate(json.loads(text))
        changed["orchestrator"] = changed.get("orchestrator", config.orchestrator).model_copy(
            update={"checkpoint_tier": made_tier}
        )
    if SERVED in words:
        kubernetes = changed.get("orchestrator", config.orchestrator)
        serving = HyperPodInference(model_buckets=("example-models",), gateway=True)
        changed["orchestrator"] = kubernetes.model_copy(update={"inference": serving})
    if WITH_SPACES in words:
        spaces = HyperPodSpaces(group="train", images=("example/space:1",), remote_ide=True, web_ui=WEB_UI)
        changed["orchestrator"] = changed.get("orchestrator", config.orchestrator).model_copy(
            update={"spaces": spaces}
        )
    return config.model_copy(update=changed)


@cache
def rows_for(name: str) -> tuple[Row, ...]:
    """Rows about an environment; of one that was changed those that may turn out otherwise for it."""
    found = rows_of(facts_of(config_of(name)))
    if "," not in name or name.endswith(".yaml"):
        return found
    return tuple(
        one
        for one in found
        if one.table == "allowed" or one.by == "vpce" or not ASKED.isdisjoint(one.when.split())
    )


def worlds_of(name: str, templates: Templates) -> tuple[World, World]:
    """An environment, and a second one beside it, whose name begins like its own: its nearest neighbour."""
    config = config_of(name)
    account = config.account or ACCOUNT
    other = json.loads(re.sub(rf"\b{re.escape(config.name)}\b", f"{config.name}2", json.dumps(templates)))
    return (
        World(config.name, config, Resolved(templates, config.region, account)),
        World(f"{config.name}2", config, Resolved(other, config.region, account)),
    )
