"""Container images of what collects metrics under Kubernetes (`metrics_images.json`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ultracluster.catalog.files import catalog_file

__all__ = ["MetricsImage", "metrics_images"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsImage:
    """One image, and what a container of it takes of a node."""

    image: str
    """As its maker publishes it: `registry/path/name:tag`, with a digest where one is public."""
    cpu: int
    """Requested, in thousandths of a processor."""
    memory: int
    """Requested, in MiB."""
    limit: int
    """Memory in MiB beyond which the container is ended."""

    def reference(self, copies: str | None) -> str:
        """What nodes pull.

        Args:
            copies: `oci://registry/prefix` that holds a copy under the image's own name and tag.
        """
        if copies is None:
            return self.image
        tagged = self.image.partition("@")[0].rpartition("/")[2]
        return f"{copies.removeprefix('oci://').rstrip('/')}/{tagged}"


@cache
def metrics_images() -> Mapping[str, MetricsImage]:
    """By name; read-only."""
    rows = catalog_file("metrics_images")["images"]
    return {
        name: MetricsImage(image=row["image"], limit=row["limit"], **row["requests"])
        for name, row in rows.items()
    }
