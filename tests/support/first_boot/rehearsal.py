"""The first boot of every node group of an environment, rehearsed: the real entry script, run in a folder.

`make rehearse ENV=prod` prints for every group what each node kept, installed and lacks. Nothing here knows
the CDK.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from first_boot.contents import UnknownSystemError, Variant, contents
from first_boot.faults import Faults
from first_boot.sandbox import Sandbox, in_memory
from first_boot.world import NodeOf, make_world, mount_shared, os_release

from ultracluster.catalog.images import Image, newest
from ultracluster.config import Environment
from ultracluster.config.instance_types import instance_type_of
from ultracluster.config.storage import ExistingLustre, ExistingOpenZfs
from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configuration
from ultracluster.model.job_access import job_access_roles
from ultracluster.model.mounts import LustreMount, Mounts, OpenZfsMount, as_arguments, told
from ultracluster.model.own_steps import steps_of_group
from ultracluster.model.state_documents import state_documents
from ultracluster.slurm.configuration import slurm_configuration
from ultracluster.software import Release, load_release
from ultracluster.software.first_boot import first_boot, scripts_run

ENTRIES: dict[str, tuple[str, ...]] = {
    "hyperpod-eks": ("hyperpod_eks_on_create",),
    "parallelcluster": ("parallelcluster_on_node_start", "parallelcluster_on_node_configured"),
    "pcs": ("pcs_node",),
    "eks": ("eks_user_data",),
}
_HYPERPOD_SLURM = {"on-init-complete": "hyperpod_on_init_complete", "on-create": "hyperpod_on_create"}
_PATIENCE_SECONDS = 300
_JOB_ROLE = "arn:aws:iam::111122223333:role/jobs"
_STATE_URI = "s3://example-scripts/cluster/state"
METRICS_URL = "https://aps-workspaces.us-east-2.amazonaws.com/workspaces/ws-0123/api/v1/remote_write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """What is rehearsed: one node of a group on one image."""

    config: Environment
    group: str
    node: NodeOf
    image: Image
    release: Release
    variant: Variant
    entries: tuple[str, ...]
    faults: Faults = field(default_factory=Faults)

    @property
    def key(self) -> str:
        """The same for boots that differ in nothing but names."""
        found = found_on(self)
        groups = list(self.node.cluster["node_groups"].values())
        seen = {
            "cluster": self.node.cluster | {"environment": "", "cluster": "", "node_groups": groups},
            "mounts": self.node.mounts,
            "group": [self.node.role, self.node.kind.name],
            "image": [self.image.id, self.image.os, found, str(self.image.places)],
            # they are asked for the Lustre client only where the image has none
            "repositories": "" if found["lustre_client"] else self.variant.repositories,
            "entries": self.entries,
            "faults": asdict(self.faults),
        }
        return hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        return f"{self.config.name}/{self.group} on {self.image.id} ({self.variant})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a rehearsal ended."""

    status: int
    last_line: str
    log: str
    console: tuple[str, ...]
    """What an operator reads: the file that the orchestrator ships."""
    report: tuple[dict[str, Any], ...]
    checks: dict[str, dict[str, Any]]
    """What each health check of the boot said, by its name."""

    @property
    def said(self) -> dict[str, tuple[str, str]]:
        """State and message of each step."""
        lines = (line for line in self.report if "step" in line)
        return {line["step"]: (line["state"], line["message"]) for line in lines}

    @property
    def components(self) -> dict[str, dict[str, str]]:
        """What the node reports of each component."""
        found: dict[str, dict[str, str]] = {}
        for line in self.report:
            found |= line.get("components") or {}
        return found

    def steps(self, boot: Boot) -> dict[str, tuple[str, str]]:
        """State and message of each of the team's own steps that ran."""
        own = {step.name for step in steps_of_group(boot.config, boot.group)}
        return {step: words for step, words in self.said.items() if step in own}


class NoRecordError(ValueError):
    """Nothing is known of the image that a group would boot."""


def boots(environment: Environment, *, variants: Sequence[Variant] = (Variant(),)) -> Iterator[Boot]:
    """Every boot of the environment: each group with scripts, on the image that it would get."""
    release = load_release(environment.software.release)
    for one in first_boot(environment):
        entries = entries_of(environment, one.group)
        if not entries:
            continue
        if not one.image:
            raise NoRecordError(
                f"{environment.name}/{one.group}: {one.image_text}; `ultracluster software record` asks one "
                "node of it, and docs/own-images.md says where the record goes"
            )
        try:
            os_release(one.image)
            contents(one.image, release, variants[0])
        except UnknownSystemError as error:
            raise NoRecordError(f"{environment.name}/{one.group}: {error}") from None
        for variant in variants:
            yield Boot(
                config=environment,
                group=one.group,
                node=node_of(environment, one.group),
                image=one.image,
                release=release,
                variant=variant,
                entries=entries,
            )


def on_newest(boot: Boot) -> Boot | None:
    """The same node on the newest image of its family, system and Kubernetes release; None: it has that."""
    image = newest(
        family=boot.image.family, arch=boot.image.arch, os=boot.image.os, kubernetes=boot.image.kubernetes
    )
    return replace(boot, image=image) if image and image.id != boot.image.id else None


def entries_of(environment: Environment, group: str) -> tuple[str, ...]:
    """The entry scripts that a node of the group runs, in their order; none where no scripts run."""
    orchestrator = environment.orchestrator
    if not scripts_run(environment, environment.node_groups[group]):
        return ()
    if orchestrator.kind == "hyperpod-slurm":
        return (_HYPERPOD_SLURM[orchestrator.lifecycle],)
    return ENTRIES[orchestrator.kind]


def node_of(environment: Environment, group: str) -> NodeOf:
    """A node of the group, as its cluster.json and what is known at deploy make it."""
    wanted = environment.node_groups[group]
    kind = instance_type_of(environment, wanted)
    assert kind, f"{wanted.instance_type} is in no catalogue"
    mounts = _mounts(environment)
    cluster = dict(script_configuration(resolve(environment), group))
    if environment.orchestrator.kind in ("hyperpod-slurm", "parallelcluster"):
        shown = (
            mounts
            if environment.orchestrator.kind == "hyperpod-slurm"
            else {k: v for k, v in mounts.items() if k in ("lustre", "further_lustre")}
        )
        cluster |= {"mounts": shown}
        if wanted.role in job_access_roles(resolve(environment)):
            cluster |= {"job_role": _JOB_ROLE}
        if wanted.role == "controller" and (
            slurm := slurm_configuration(resolve(environment)).for_controller
        ):
            cluster |= {"slurm": slurm}
        if state_documents(resolve(environment)):
            cluster |= {"state_uri": _STATE_URI}
        if isinstance(settings := cluster.get("metrics"), dict):
            cluster |= {"metrics": {**settings, "remote_write_url": METRICS_URL}}
    return NodeOf(
        group=group,
        role=wanted.role,
        kind=kind,
        orchestrator=environment.orchestrator.kind,
        cluster=cluster,
        mounts=mounts,
    )


def found_on(boot: Boot) -> dict[str, str | None]:
    """What the image of this rehearsal brings, by field of its record."""
    return contents(boot.image, boot.release, boot.variant, boot.node.kind.name)


def rehearse(boot: Boot, folder: Path) -> Outcome:
    """Run the entry scripts of the boot in a sandbox below `folder`."""
    box = make_world(
        folder,
        node=boot.node,
        image=boot.image,
        found=found_on(boot),
        release=boot.release,
        lustre_module=boot.variant.repositories == "offer",
        faults=boot.faults,
    )
    status, log = 0, ""
    for entry in boot.entries:
        done = subprocess.run(
            ["setsid", "--wait", str(box.scripts / f"{entry}.sh"), *_arguments(boot)],
            env=box.environment(),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
        status, log = done.returncode, log + done.stdout
        if status:
            break
        if entry == "parallelcluster_on_node_start":
            mount_shared(box, boot.node)  # ParallelCluster does, between its two actions
    file = box.root / "var/log/ultracluster/report.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    written = (box.root / "var/log/provision/provisioning.log").read_text().splitlines()
    everything = box.root / "var/log/ultracluster/run.log"
    return Outcome(
        status=status,
        last_line=written[-1] if written else "",
        log=log + (everything.read_text() if everything.exists() else ""),
        console=tuple(written),
        report=tuple(map(json.loads, lines)),
        checks=_checks(box),
    )


def _checks(box: Sandbox) -> dict[str, dict[str, Any]]:
    """What the health loop keeps of each check that ran (health_loop/loop.py)."""
    files = sorted((box.root / "var/lib/ultracluster/health").glob("*.json"))
    said = {file.stem: json.loads(file.read_text()) for file in files}
    return {name: line for name, line in said.items() if isinstance(line, dict) and "result" in line}


def rehearsed(boot: Boot) -> Outcome:
    """The same in a temporary folder, which is kept and named where REHEARSAL_KEEP is set."""
    folder = Path(tempfile.mkdtemp(prefix="first-boot-", dir=in_memory()))
    try:
        return rehearse(boot, folder)
    finally:
        if os.environ.get("REHEARSAL_KEEP"):
            print(f"kept: {folder}  {boot.title}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _arguments(boot: Boot) -> list[str]:
    kind = boot.node.orchestrator
    if kind.startswith("hyperpod"):
        return []
    arguments: list[str] = []
    if kind == "pcs":
        arguments = as_arguments(boot.node.mounts)
        if boot.node.cluster["node_groups"][boot.group].get("job_access"):
            arguments += ["--job-role", _JOB_ROLE]
        arguments += ["--state", _STATE_URI]
        if "metrics" in boot.node.cluster:
            arguments += ["--metrics-url", METRICS_URL]
    return [*arguments, "--group", boot.group]


def _mounts(environment: Environment) -> Mounts:
    """As deploy would tell them; the names are AWS's to make."""
    lustre, openzfs = environment.storage.lustre, environment.storage.openzfs
    return told(
        lustre
        and LustreMount(
            path=lustre.mount_path,
            dns_name=lustre.dns_name
            if isinstance(lustre, ExistingLustre)
            else "fs-0123.fsx.example.amazonaws.com",
            mount_name="abcdefgh",
            efa=bool(getattr(lustre, "efa", False)),
        ),
        openzfs
        and OpenZfsMount(
            path=openzfs.mount_path,
            dns_name=openzfs.dns_name
            if isinstance(openzfs, ExistingOpenZfs)
            else "fs-4567.fsx.example.amazonaws.com",
        ),
        {
            name: LustreMount(
                path=one.mount_path,
                dns_name=f"fs-{number:04d}.fsx.example.amazonaws.com",
                mount_name=f"further{number}",
                efa=one.efa,
            )
            for number, (name, one) in enumerate(environment.lustres.items())
            if name in environment.storage.further_lustre
        },
    )
