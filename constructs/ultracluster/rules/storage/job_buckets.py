"""Rules on: buckets that users' jobs reach by a role of their own, and those that pods mount."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from ultracluster.config import Environment
from ultracluster.config.base import s3_place
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.remedy import drop, either, write
from ultracluster.config.storage import JobBucket, Storage
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import DATA, EKS

Key = TypeVar("Key", int, str)
_DATE, _MOUNTS_DATE = "2026-11-22", "2026-11-28"
Place = tuple[str, str]


@DATA.error(40, "this file: the step `job_access` of the nodes of a Slurm cluster", _DATE)
def job_buckets_need_role(storage: Storage, cluster: Cluster) -> Breaches:
    """Buckets for jobs are named where nodes hand out the role that reaches them."""
    if not storage.job_buckets or (cluster.traits.slurm and cluster.runs_scripts):
        return
    if cluster.traits.kubernetes:
        why = (
            "pods get no role from their node: give a service account of the team's namespace one, by EKS "
            "Pod Identity (aws eks create-pod-identity-association)."
        )
    else:
        why = "with lifecycle: none no step of ours runs, and nothing would hand out the role."
    yield at("job_buckets").breach(why, drop())


@DATA.error(41, "this file: scripts and mirrored software run as root; access logs are evidence", _DATE)
def job_buckets_of_root_files(storage: Storage, environment: Environment) -> Breaches:
    """Jobs do not write what nodes run as root, or what tells of them."""
    for number, words in _kept_that_is_written(enumerate(storage.job_buckets), environment):
        yield at("job_buckets", number, "write").breach(
            f"{words}: every user who may start a job could change it.",
            either(write(False), drop()).noting("or name a folder apart from it"),
        )


@EKS.error(
    120, "this file: scripts and mirrored software run as root; access logs are evidence", _MOUNTS_DATE
)
def pod_volumes_of_root_files(settings: Eks | HyperPodEks, environment: Environment) -> Breaches:
    """Pods do not write what nodes run as root, or what states them."""
    for name, words in _kept_that_is_written(settings.mountpoint_s3.items(), environment):
        yield at("mountpoint_s3", name, "write").breach(
            f"{words}: every pod with the claim could change it.",
            either(write(False), drop()).noting("or name a folder apart from it"),
        )


def _kept_that_is_written(
    asked_for: Iterable[tuple[Key, JobBucket]], environment: Environment
) -> Iterator[tuple[Key, str]]:
    """Buckets that jobs may write where nobody but us should, and what is there."""
    storage = environment.storage
    kept: dict[str, Place] = {}
    if storage.scripts_bucket:
        kept["the lifecycle scripts, which nodes run as root"] = (
            storage.scripts_bucket.name,
            environment.cluster_name,
        )
    if environment.software.mirror:
        kept["the mirrored software, which nodes install as root"] = s3_place(environment.software.mirror)
    if storage.log_bucket:
        kept["access logs"] = (storage.log_bucket.name, "")
    for key, asked in asked_for:
        for what, place in kept.items():
            if asked.write and _overlap(_place(asked), place):
                yield key, f"s3://{'/'.join(part for part in place if part)} holds {what}"


@DATA.warning(42, "this file: the rights of a role add up", _DATE)
def job_buckets_unique(storage: Storage) -> Breaches:
    """No bucket for jobs is named twice for the same files."""
    for number, words in _written_after_all(dict(enumerate(storage.job_buckets))):
        yield at("job_buckets", number).breach(words, drop())


@EKS.warning(
    121,
    "awslabs/mountpoint-s3-csi-driver, docs/CONFIGURATION.md (Driver-Level Credentials): one role "
    "mounts every volume, and the rights of a role add up",
    _MOUNTS_DATE,
)
def pod_volumes_overlap(settings: Eks | HyperPodEks) -> Breaches:
    """No two volumes show the same files of S3, one of them to be written."""
    for name, words in _written_after_all(settings.mountpoint_s3):
        yield at("mountpoint_s3", name).breach(words, drop())


def _written_after_all(asked_for: Mapping[Key, JobBucket]) -> Iterator[tuple[Key, str]]:
    """Each that overlaps with one before it, where one of the two is to be written."""
    for number, (key, asked) in enumerate(asked_for.items()):
        for other in list(asked_for.values())[:number]:
            if asked.write != other.write and _overlap(_place(asked), _place(other)):
                reader = asked if not asked.write else other
                words = (
                    f"{_words(asked)} and {_words(other)} overlap, and one of them may be written: what is "
                    f"in both may, although {_words(reader)} is without write."
                )
                yield key, words


def _place(asked: JobBucket) -> Place:
    return asked.bucket, (asked.prefix or "").rstrip("/")


def _words(asked: JobBucket) -> str:
    return "s3://" + "/".join(part for part in _place(asked) if part)


def _overlap(one: Place, other: Place) -> bool:
    """Whether files can be below both."""
    first, second = (f"{prefix}/" if prefix else "" for _, prefix in (one, other))
    return one[0] == other[0] and (first.startswith(second) or second.startswith(first))
