"""Images of what collects metrics: pinned, and found among copies by their own name."""

from __future__ import annotations

import re

from project import ROOT

from ultracluster.catalog.metrics import exporters
from ultracluster.catalog.metrics_images import metrics_images


def test_images_are_pinned_and_say_what_they_take() -> None:
    for row in metrics_images().values():
        assert re.fullmatch(r"[a-z0-9./-]+:v?[0-9][a-z0-9.-]+(@sha256:[0-9a-f]{64})?", row.image)
        assert 0 < row.cpu <= 1000
        assert 0 < row.memory < row.limit


def test_programs_are_of_the_release_that_slurm_nodes_have() -> None:
    """Their metrics have one set of names then."""
    pinned = {name: one.pinned["version"] for name, one in exporters().items() if one.pinned}
    for image, exporter in (("prometheus", "prometheus-agent"), ("node-exporter", "node_exporter")):
        tag = metrics_images()[image].image.partition("@")[0].rpartition(":")[2]
        assert tag == f"v{pinned[exporter]}"


def test_the_page_on_closed_networks_names_each() -> None:
    page = (ROOT / "docs" / "metrics-kubernetes.md").read_text(encoding="utf-8")
    for row in metrics_images().values():
        assert row.image.partition("@")[0] in page
        assert row.reference("<repository>") in page


def test_a_copy_has_the_name_and_the_tag() -> None:
    row = metrics_images()["kube-state-metrics"]
    assert row.reference(None) == row.image
    tag = row.image.partition("@")[0].rpartition(":")[2]
    for copies in ("oci://example.com/mirror", "oci://example.com/mirror/"):
        assert row.reference(copies) == f"example.com/mirror/kube-state-metrics:{tag}"
