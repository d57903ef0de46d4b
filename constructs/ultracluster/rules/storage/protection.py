"""Rules on: what keys and protection from deletion do not cover."""

from __future__ import annotations

from ultracluster.config import Environment
from ultracluster.config.remedy import write
from ultracluster.config.storage import DataRepository, ScratchLustre, Storage
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.lustre_changes import other_deployment
from ultracluster.rules.sets import DATA
from ultracluster.rules.sources import BOTOCORE


@DATA.warning(1, f"{BOTOCORE} fsx: CreateFileSystemLustreConfiguration, DeploymentType")
def scratch_protected(settings: ScratchLustre, environment: Environment) -> Breaches:
    """A protected environment keeps no data on scratch storage."""
    if environment.protect:
        yield at("deployment").breach(
            f"protect is on and {settings.deployment} keeps one copy of the data: FSx does not "
            "replace a file server that fails, and what it held is lost. Protection from "
            "deletion does not help.",
            other_deployment(settings, "persistent-2-ssd").noting("or protect: false"),
        )


@DATA.warning(5, f"{BOTOCORE} fsx: CreateFileSystem, KmsKeyId")
def scratch_key(settings: ScratchLustre, storage: Storage) -> Breaches:
    """storage.key is not given for a scratch file system, which cannot use it."""
    if storage.key:
        yield at("deployment").breach(
            f"storage.key is given, and FSx encrypts {settings.deployment} with a key of its own: "
            "this file system is the one thing here that the key does not cover.",
            other_deployment(settings, "persistent-2-ssd").noting("or acknowledge it"),
        )


@DATA.warning(6, f"{BOTOCORE} fsx: AutoExportPolicy, EventType DELETED")
def deletion_exported(link: DataRepository, environment: Environment) -> Breaches:
    """Deleting a protected file does not delete its last copy."""
    if environment.protect and link.bucket and "deleted" in link.export_events:
        kept = [event for event in link.export_events if event != "deleted"]
        yield at("export_events").breach(
            f"protect is on, and deleting a file in this folder deletes its object in {link.bucket}. "
            "Unless that bucket keeps versions, one `rm -r` removes both copies.",
            write(kept).noting("or acknowledge that the bucket keeps versions"),
        )
