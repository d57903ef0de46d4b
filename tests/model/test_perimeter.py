"""What passes because the environment file names it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from rules_support import changed, environment_data, loaded

from ultracluster.config import Environment
from ultracluster.config.base import BucketName
from ultracluster.model import resolve
from ultracluster.model.perimeter import foreign_arns, foreign_registries, perimeter_of

DEV = environment_data()
LINK = "storage.lustre.data_repositories./data"
CLOSED = {"account": "111122223333", "network.egress": "closed"}
INFERENCE = {
    f"{name}_role_arn": f"arn:aws:iam::111122223333:role/{name}"
    for name in ("execution", "load_balancer", "autoscaler")
} | {"certificate_bucket": "certificates-of-endpoints"}


def environment(changes: dict[str, Any], base: str = "dev") -> Environment:
    data = DEV if base == "dev" else environment_data(base)
    return loaded(changed(data, copy.deepcopy(changes))).environment


@pytest.mark.parametrize(
    ("changes", "bucket"),
    [
        ({LINK: {"bucket": "partner-data"}}, "partner-data"),
        ({"storage.scripts_bucket": {"name": "sagemaker-scripts"}}, "sagemaker-scripts"),
        ({"storage.log_bucket": {"name": "access-logs"}}, "access-logs"),
        ({"software.mirror": "s3://software-of-another/release"}, "software-of-another"),
        ({"network.perimeter": {"buckets": ["results"]}}, "results"),
        ({"storage.job_buckets": [{"bucket": "jobs-write", "write": True}]}, "jobs-write"),
    ],
)
def test_named_buckets_pass(changes: dict[str, Any], bucket: str) -> None:
    assert bucket in perimeter_of(resolve(environment(changes))).buckets


def test_what_jobs_only_read_is_only_read() -> None:
    jobs = [{"bucket": "jobs-read"}, {"bucket": "both"}, {"bucket": "both", "prefix": "out", "write": True}]
    found = perimeter_of(resolve(environment({"storage.job_buckets": jobs})))

    assert found.read_buckets == ("jobs-read",) and "jobs-read" not in found.buckets
    assert "both" in found.buckets


def test_the_inference_operators_bucket_passes() -> None:
    asked = environment({"orchestrator.inference": INFERENCE}, "hyperpod-eks-p5")

    assert "certificates-of-endpoints" in perimeter_of(resolve(asked)).buckets


def test_the_buckets_of_restricted_groups_pass() -> None:
    restricted = {"reads": ["data-of-nova"], "writes": ["results-of-nova"]}
    asked = environment({"node_groups.train.restricted": restricted}, "hyperpod-eks-p5")

    found = perimeter_of(resolve(asked))

    assert "results-of-nova" in found.buckets
    assert "data-of-nova" in found.read_buckets


def test_the_bucket_of_tiered_checkpoints_passes() -> None:
    asked = environment(
        {"orchestrator.checkpoint_tier": {"bucket": "example-checkpoints"}}, "hyperpod-eks-p5"
    )

    assert "example-checkpoints" in perimeter_of(resolve(asked)).buckets


@pytest.mark.parametrize(
    ("changes", "base"),
    [
        ({"orchestrator.inference": {"model_buckets": ["models"]}}, "hyperpod-eks-p5"),
        ({"orchestrator.mountpoint_s3": {"models": {"bucket": "models"}}}, "eks-p5en"),
    ],
)
def test_buckets_that_pods_mount_are_only_read(changes: dict[str, Any], base: str) -> None:
    found = perimeter_of(resolve(environment(changes, base)))
    assert found.read_buckets == ("models",) and "models" not in found.buckets


def test_a_bucket_that_pods_write_passes() -> None:
    written = {"orchestrator.mountpoint_s3": {"runs": {"bucket": "runs", "write": True}}}
    assert "runs" in perimeter_of(resolve(environment(written, "eks-p5en"))).buckets


def models(model: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    if model in seen:
        return
    seen.add(model)
    yield model
    for field in model.model_fields.values():
        yield from _within(field.annotation, seen)


def _within(annotation: Any, seen: set[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from models(annotation, seen)
    for argument in get_args(annotation):
        yield from _within(argument, seen)


def test_no_field_that_names_a_bucket_is_forgotten() -> None:
    pattern = next(one.pattern for one in get_args(BucketName)[1].metadata if hasattr(one, "pattern"))
    naming = {
        f"{model.__name__}.{name}"
        for model in models(Environment, set())
        for name, field in model.model_fields.items()
        if pattern in f"{field.annotation!r} {field.metadata!r}"
    }

    # each is in `named_buckets`, or is the perimeter itself; a new one gets its line there and a case above
    assert naming == {
        "CheckpointTier.bucket",
        "DataRepository.bucket",
        "ExistingBucket.name",
        "HyperPodInference.certificate_bucket",
        "HyperPodInference.model_buckets",
        "JobBucket.bucket",
        "Perimeter.buckets",
        "Perimeter.readable_buckets",
        "RestrictedGroup.reads",
        "RestrictedGroup.writes",
    }


def test_reads_pass_everywhere_only_with_a_nat_gateway() -> None:
    assert perimeter_of(resolve(environment({}))).reads_anywhere
    assert not perimeter_of(resolve(environment(CLOSED))).reads_anywhere


def registries(changes: dict[str, Any]) -> list[str]:
    return [account for _, account in foreign_registries(environment(CLOSED | changes, "eks-p5en"))]


def test_registries_of_other_accounts_are_found_in_values_of_charts() -> None:
    image = "444455556666.dkr.ecr.us-east-2.amazonaws.com/nvidia/k8s-device-plugin"
    values = {"nvidia-device-plugin": {"image": {"repository": image}}}

    assert registries({"orchestrator.chart_values": values}) == ["444455556666"]
    assert registries({"orchestrator.chart_values": {}}) == []
    own = {"nvidia-device-plugin": {"image": {"repository": image.replace("444455556666", "111122223333")}}}
    assert registries({"orchestrator.chart_values": own}) == []


@pytest.mark.parametrize(
    "known", [{"account": ...}, {"network.perimeter": {"organization": "o-a1b2c3d4e5"}}], ids=str
)
def test_what_cannot_be_known_is_not_foreign(known: dict[str, Any]) -> None:
    key = {"arn": "arn:aws:kms:us-west-2:444455556666:key/0f5f4d9e-0000-4000-8000-000000000000"}

    assert [arn for _, arn in foreign_arns(environment(CLOSED | {"storage.key": key}))] == [key["arn"]]
    assert list(foreign_arns(environment(CLOSED | {"storage.key": key} | known))) == []
