# pyright: basic
# An object of Kubernetes has any form: what another program wrote is looked at, not believed.
"""A working folder in the pods of a job: an init container unpacks it from the volume of the jobs' bucket."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ultracluster.kubernetes.storage import s3_claims
from ultracluster.model.job_access import WORKDIRS, WorkdirPlace

Manifest = dict[str, Any]

FOLDER = "/ultracluster/workdir"
"""In each container of a job, read-only."""
_BUCKET = "/ultracluster/bucket"
_NAME = "ultracluster-workdir"
_UNPACK = f"""\
set -eu
cp "$1" {FOLDER}/.archive.tar
if [ "$(sha256sum <{FOLDER}/.archive.tar | cut -d " " -f 1)" != "$2" ]; then
  echo "workdir: $1 is not what was submitted" >&2
  exit 1
fi
tar -xf {FOLDER}/.archive.tar -C {FOLDER}
rm {FOLDER}/.archive.tar
"""
_RESOURCES = {"cpu": "1", "memory": "1Gi"}
"""Requests and limits, which a team's quota requires; the job's own containers have them afterwards."""


def put_workdir(templates: Iterable[Manifest], place: WorkdirPlace, digest: str) -> list[str]:
    """Let each pod begin in the folder; what to know about it.

    Args:
        templates: of the pods of a job, which are changed.
        place: where the archive is.
        digest: of it, SHA-256.

    Raises:
        ValueError: there are no pods, or they have no containers.
    """
    specs: list[Any] = [template.get("spec") for template in templates]
    if not specs:
        raise ValueError("--workdir: the job has no pods in its text into which a folder could be put")
    for spec in specs:
        if not isinstance(spec, dict):
            raise ValueError("--workdir: the pods of the job have no containers")
        containers = spec.get("containers")
        if not isinstance(containers, list) or not all(isinstance(one, dict) for one in containers):
            raise ValueError("--workdir: the pods of the job have no containers")
        if not containers or not containers[0].get("image"):
            raise ValueError("--workdir: the first container of a pod has no image, which unpacks the folder")
        bucket = _bucket_volume(spec, next(iter(s3_claims({place.volume: place.bucket}))))
        spec["volumes"] = [*(spec.get("volumes") or []), {"name": _NAME, "emptyDir": {}}]
        spec["initContainers"] = [
            _init_container(containers[0], bucket, digest), *(spec.get("initContainers") or []),
        ]  # fmt: skip
        for container in containers:
            mount = {"name": _NAME, "mountPath": FOLDER, "readOnly": True}
            container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]
            container.setdefault("workingDir", FOLDER)
    return [f"workdir: {FOLDER} in each container, read-only"]


def _init_container(container: Manifest, bucket: str, digest: str) -> Manifest:
    made: Manifest = {
        "name": _NAME,
        "image": container["image"],
        "command": ["sh", "-c", _UNPACK, "workdir", f"{_BUCKET}/{WORKDIRS}/{digest}.tar", digest],
        "resources": {"requests": dict(_RESOURCES), "limits": dict(_RESOURCES)},
        "volumeMounts": [
            {"name": bucket, "mountPath": _BUCKET, "readOnly": True},
            {"name": _NAME, "mountPath": FOLDER},
        ],
    }
    for key in ("imagePullPolicy", "securityContext"):
        if key in container:
            made[key] = container[key]
    return made


def _bucket_volume(spec: Manifest, claim: str) -> str:
    """Name of the volume of a claim: that of the pod where it has one, else a new one."""
    for one in spec.get("volumes") or []:
        source = one.get("persistentVolumeClaim") if isinstance(one, dict) else None
        if isinstance(source, dict) and source.get("claimName") == claim:
            return str(one.get("name"))
    name = f"{_NAME}-bucket"
    volume = {"name": name, "persistentVolumeClaim": {"claimName": claim}}
    spec["volumes"] = [*(spec.get("volumes") or []), volume]
    return name


__all__ = ["FOLDER", "put_workdir"]
