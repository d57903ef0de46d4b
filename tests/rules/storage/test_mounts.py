"""Rules on mounts, each broken and mended; local disks are among the cases of ParallelCluster."""

from __future__ import annotations

import itertools

import pytest
from rules_support import OPENZFS
from rules_table import found

from ultracluster.rules.sets import MNT


@pytest.mark.parametrize(
    ("place", "base", "hidden"),
    [
        ("/opt/sagemaker/a", "prod", True),
        ("/opt/sagemaker/a", "parallelcluster-p5", False),
        ("/opt/parallelcluster/a", "parallelcluster-p5", True),
        ("/opt/parallelcluster/a", "pcs-p6-b200", False),
        ("/srv", "parallelcluster-p5", True),
        ("/srv/a", "parallelcluster-p5", False),
        ("/srv", "prod", False),
        ("/var/a", "pcs-p6-b200", True),
    ],
)
def test_what_is_hidden_depends_on_whose_nodes_they_are(place: str, base: str, hidden: bool) -> None:
    said = {one.code for one in found(MNT, {"storage.lustre.mount_path": place}, base)}
    assert said == ({"MNT002"} if hidden else set())


@pytest.mark.parametrize(("lustre", "home"), list(itertools.permutations(["/fsx", "/home", "/data/a"], 2)))
def test_ordinary_mounts_are_clean(lustre: str, home: str) -> None:
    changes = {
        "storage.lustre.mount_path": lustre,
        "storage.openzfs": {**OPENZFS, "mount_path": home},
    }
    assert found(MNT, changes) == []
