"""Rules on file systems, mounts, keys and the accounting database."""

from ultracluster.rules.storage import (
    existing,
    fsx,
    lustre,
    lustre_efa,
    mounts,
    openzfs,
    protection,
    repositories,
)

__all__ = ["existing", "fsx", "lustre", "lustre_efa", "mounts", "openzfs", "protection", "repositories"]
