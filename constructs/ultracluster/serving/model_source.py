"""Source of a model that is served: S3, a folder on Lustre, or Hugging Face."""

from __future__ import annotations

import re

from ultracluster.config.hyperpod_eks import HyperPodInference
from ultracluster.model import Cluster
from ultracluster.serving.endpoint import Source

_HUB = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_FILE_SYSTEM = re.compile(r"fs-[0-9a-f]{8,17}")
_FOLDER = re.compile(r"[A-Za-z0-9/._=+@:-]{1,800}")


def source_of(
    cluster: Cluster,
    wanted: HyperPodInference,
    model: str,
    group: str,
    file_system: str | None,
    secret: str | None,
) -> Source:
    if file_system is not None and not model.startswith("/"):
        raise ValueError(f"--file-system is for a folder on Lustre, and --model is {model}")
    if model.startswith("s3://"):
        bucket, _, folder = model.removeprefix("s3://").rstrip("/").partition("/")
        if not folder:
            raise ValueError(
                f"--model {model} names a bucket and no folder in it: s3://{bucket or '<bucket>'}/<folder>"
            )
        _check_folder(model, folder)
        if not wanted.model_reader_role_arn and bucket not in wanted.model_buckets:
            raise ValueError(
                f"pods may not read {bucket}: orchestrator.inference.model_buckets names "
                f"{', '.join(map(str, wanted.model_buckets)) or 'none'}"
            )
        return Source(kind="s3", place=bucket, folder=folder, region=cluster.region)
    if model.startswith("/"):
        return _on_lustre(cluster, model, group, file_system)
    return Source(kind="huggingface", place=_hub(cluster, model), token_secret=secret)


def _on_lustre(cluster: Cluster, model: str, group: str, file_system: str | None) -> Source:
    folder = _folder(cluster, model, group)
    if file_system is None or not _FILE_SYSTEM.fullmatch(file_system):
        raise ValueError(
            "the operator mounts the file system by its id: --file-system fs-... (`aws fsx "
            "describe-file-systems`, or the output LustreId of the storage stack)"
        )
    return Source(kind="fsx", place=file_system, folder=folder)


def _folder(cluster: Cluster, model: str, group: str) -> str:
    """Of a model on a Lustre file system that the group mounts, below its mount path."""
    mounts = [str(one.mount_path) for one in cluster.lustres_of(group).values()]
    if not mounts:
        raise ValueError(f"--model {model} is a folder, and there is no Lustre file system")
    folders = {mount: model.removeprefix(f"{mount}/").strip("/") for mount in mounts}
    found = [mount for mount in mounts if model.startswith(f"{mount}/") and folders[mount]]
    if not found or ".." in model.split("/"):
        there = " and ".join(mounts)
        raise ValueError(
            f"--model {model} is not on Lustre, which is mounted at {there}: {mounts[0]}/<folder>"
        )
    folder = folders[max(found, key=len)]
    _check_folder(model, folder)
    return folder


def _check_folder(model: str, folder: str) -> None:
    if not _FOLDER.fullmatch(folder) or ".." in folder.split("/"):
        raise ValueError(f"--model {model!r} has characters that are not allowed there")


def _hub(cluster: Cluster, model: str) -> str:
    name = model.removeprefix("hf:")
    if not model.startswith("hf:") or not _HUB.fullmatch(name):
        raise ValueError(
            f"--model {model!r} is no s3://bucket/folder, no folder, and no hf:organisation/model"
        )
    if cluster.environment.network.egress == "closed":
        raise ValueError(
            "Hugging Face is in the internet, which `egress: closed` does not reach: S3 or Lustre"
        )
    return name


def plain_model(cluster: Cluster, model: str, group: str) -> str:
    if model.startswith("s3://"):
        raise ValueError(
            "a plain server reads folders and Hugging Face: link the bucket to Lustre "
            "(storage.lustre.data_repositories), or serve it with --endpoint on HyperPod"
        )
    if model.startswith("/"):
        _folder(cluster, model, group)
        return model
    return _hub(cluster, model)
