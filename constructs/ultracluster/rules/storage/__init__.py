"""Rules on file systems, mounts, keys and the accounting database."""

from ultracluster.rules.storage import (
    backups,
    checkpoints,
    database,
    existing,
    job_buckets,
    log_buckets,
    lustre,
    lustre_efa,
    mounts,
    offers,
    openzfs,
    protection,
    repositories,
    root_squash,
    several,
    tiering,
)

__all__ = [
    "backups",
    "checkpoints",
    "database",
    "existing",
    "job_buckets",
    "log_buckets",
    "lustre",
    "lustre_efa",
    "mounts",
    "offers",
    "openzfs",
    "protection",
    "repositories",
    "root_squash",
    "several",
    "tiering",
]
