"""Every constraint, broken once and satisfied once; and what is unknown is never a breach."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from ultracluster.catalog import instance_types
from ultracluster.software import Release, breaches, instance_breaches, load_release, release_names, solve
from ultracluster.software.constraints import constraints
from ultracluster.software.lock import release_file


@dataclass(frozen=True)
class Case:
    """Changes of release 2026.11 that break one constraint, and what mends it."""

    id: str
    broken: dict[str, Any]
    says: str
    mended: dict[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        return f"{self.id} {' '.join(self.broken)}"


OLD_EFA = {
    "efa-installer.version": "1.43.2",
    "efa-installer.provides": {"aws-ofi-nccl": "1.16.3", "libfabric": "2.1.0amzn5.0", "efa": "2.17.2"},
    "libfabric.version": "2.1.0amzn5.0",
    "aws-ofi-nccl.version": "1.16.3",
}
CASES = [
    Case(
        "SWC001", {"nvidia-driver.version": "575.57.08"}, "must be >= 580", {"cuda-runtime.version": "12.8"}
    ),
    Case(
        "SWC001",
        {"cuda-runtime.version": "12.8", "nvidia-driver.version": "470.82"},
        "must be >= 525",
        {"nvidia-driver.version": "525.60.13"},
    ),
    Case(
        "SWC002",
        {"nvidia-driver.version": "570.172.08"},
        "must be >= 580",
        {"nccl.provides": {"cuda": "12.9"}},
    ),
    Case(
        "SWC002",
        {"nccl.provides": {"cuda": "12.9"}, "nvidia-driver.version": "510"},
        "must be >= 525",
        {"nvidia-driver.version": "525"},
    ),
    Case(
        "SWC003",
        {"fabric-manager.version": "595.112.07"},
        "must be 595.91.07",
        {"nvidia-driver.version": "595.112.07"},
    ),
    Case(
        "SWC004",
        {"nvidia-driver.version": "590.48.01"},
        "must be >= 595.45.04",
        {"cuda-runtime.version": "13.1"},
    ),
    Case("SWC010", {"nccl.version": "2.16.2"}, "must be >= 2.17.1", {"nccl.version": "2.17.1-1"}),
    Case("SWC011", {"nccl.version": "2.32.3"}, "must be <= 2.31.2-1", {"nccl.version": "2.31.2-1"}),
    Case("SWC011", {"aws-ofi-nccl.version": "1.20.0"}, "must be <= 2.30.4", {"nccl.version": "2.30.4-1"}),
    Case(
        "SWC012",
        {"nccl.version": "2.28.7", "aws-ofi-nccl.version": "1.17.1"},
        "must be >= 1.17.2",
        {"nccl.version": "2.27.7"},
    ),
    Case(
        "SWC013", {"aws-ofi-nccl.version": "1.16.3"}, "must be >= 1.17.1", {"nccl.provides": {"cuda": "12.9"}}
    ),
    Case("SWC020", {"libfabric.version": "1.17.0"}, "must be >= 1.22.0", {"libfabric.version": "1.22.0"}),
    Case(
        "SWC020",
        {"aws-ofi-nccl.version": "1.18.0", "libfabric.version": "1.22.0amzn3.0"},
        "1.22.0amzn4.0",
        {"libfabric.version": "1.22.0amzn4.0"},
    ),
    Case(
        "SWC020",
        {"aws-ofi-nccl.version": "1.16.3", "libfabric.version": "1.10"},
        "must be >= 1.11",
        {"libfabric.version": "1.11.0"},
    ),
    Case(
        "SWC021",
        {"efa-installer.version": "1.49.0"},
        "must be 2.4.0amzn5.0",
        {
            "efa-installer.provides": {
                "libfabric": "2.4.0amzn5.0",
                "aws-ofi-nccl": "1.20.0",
                "efa": "3.1.0",
                "rdma-core": "63.0",
            }
        },
    ),
    Case(
        "SWC021",
        {"efa-installer.version": "1.51.0"},
        "must be 2.7.0amzn2.0",
        {
            "efa-installer.provides": {
                "libfabric": "2.7.0amzn2.0",
                "aws-ofi-nccl": "1.22.0",
                "efa": "3.3.1",
                "rdma-core": "65.0",
            }
        },
    ),
    Case(
        "SWC021",
        {"efa-installer.version": "1.45.1"},
        "must be 1.17.2",
        {"efa-installer.provides": {"aws-ofi-nccl": "1.17.2", "libfabric": "2.3.1amzn3.0"}},
    ),
    Case("SWC021", {"efa-installer.version": "1.43.2"}, "must be 2.17.2", OLD_EFA),
    Case(
        "SWC021",
        {"efa-installer.version": "1.43.3"},
        "must be 2.17.3",
        {"efa-installer.provides": {"aws-ofi-nccl": "1.16.3", "efa": "2.17.3"}},
    ),
    Case(
        "SWC021",
        {"efa-installer.version": "1.44.0"},
        "must be 1.17.1",
        {"efa-installer.provides": {"aws-ofi-nccl": "1.17.1", "libfabric": "2.3.1amzn1.0"}},
    ),
    Case(
        "SWC021",
        {"efa-installer.version": "1.46.0"},
        "must be 2.3.1amzn4.0",
        {"efa-installer.provides": {"libfabric": "2.3.1amzn4.0"}},
    ),
    Case(
        "SWC022", {"libfabric.version": "2.4.0amzn5.0"}, "must be 2.6.0amzn1.0", {"libfabric.kind": "source"}
    ),
    Case("SWC023", {"aws-ofi-nccl.version": "1.21.0"}, "must be 1.21.1", {"aws-ofi-nccl.kind": "source"}),
    Case(
        "SWC024",
        {"efa-installer.artifacts.0.os": ["al2", "al2023"]},
        "without al2",
        {"efa-installer.version": "1.49.0"},
    ),
    Case(
        "SWC024",
        {"efa-installer.version": "1.51.0", "efa-installer.artifacts.0.os": ["debian11"]},
        "debian11",
        {"efa-installer.version": "1.50.0"},
    ),
    Case(
        "SWC024",
        {"efa-installer.artifacts.0.os": ["ubuntu20.04"]},
        "ubuntu20.04",
        {"efa-installer.version": "1.42.0"},
    ),
    Case(
        "SWC024",
        {"efa-installer.version": "1.32.0", "efa-installer.artifacts.0.os": ["ubuntu24.04"]},
        "without ubuntu24.04",
        {"efa-installer.version": "1.33.0"},
    ),
    Case(
        "SWC024",
        {"efa-installer.version": "1.24.1", "efa-installer.artifacts.0.os": ["al2023"]},
        "without al2023",
        {"efa-installer.version": "1.42.0"},
    ),
    Case(
        "SWC024",
        {"efa-installer.version": "1.17.3", "efa-installer.artifacts.0.os": ["ubuntu22.04"]},
        "without ubuntu22.04",
        {"efa-installer.version": "1.42.0"},
    ),
    Case(
        "SWC025",
        {"aws-ofi-nccl.provides": {"library": "libnccl-net.so"}},
        "must be libnccl-net-ofi.so",
        {"efa-installer.version": "1.43.3"},
    ),
    Case(
        "SWC025",
        {"efa-installer.version": "1.41.0"},
        "must be libnccl-net.so",
        {"efa-installer.version": "1.42.0"},
    ),
    Case(
        "SWC025",
        {"aws-ofi-nccl.install_path": "/opt/aws-ofi-nccl"},
        "must be /opt/amazon/ofi-nccl",
        {"aws-ofi-nccl.install_path": "/opt/amazon/ofi-nccl"},
    ),
    Case(
        "SWC026",
        {"efa-installer.version": "1.40.0", "aws-ofi-nccl.version": "1.7.1"},
        "must be >= 1.7.2",
        {"aws-ofi-nccl.version": "1.7.2"},
    ),
    Case(
        "SWC027",
        {"efa-installer.version": "1.43.2"},
        "must be >= 1.43.3",
        {"nvidia-driver.version": "575.57.08"},
    ),
    Case(
        "SWC027",
        {"efa-installer.provides": {"efa": "2.17.2"}},
        "must be >= 2.17.3",
        {"efa-installer.provides": {"efa": "2.17.3"}},
    ),
    Case(
        "SWC030",
        {"efa-installer.provides.efa": "2.12.0"},
        "must be >= 2.12.1",
        {"efa-installer.provides.efa": "2.12.1"},
    ),
    Case(
        "SWC031",
        {"kernel.provides": {"ubuntu22.04": "6.8.0-1010..6.8.0"}},
        "6.8.0-1017",
        {"kernel.provides": {"ubuntu22.04": "6.8.0-1039"}},
    ),
    Case(
        "SWC031",
        {"kernel.provides": {"ubuntu24.04": "6.11.0-1001"}},
        "within 6.8.0-1024",
        {"kernel.provides": {"ubuntu24.04": "6.14.0-1012..6.14.0-1018"}},
    ),
    Case(
        "SWC031",
        {"kernel.provides": {"al2023": "6.1.75-99.163"}},
        "6.1.79-99.167",
        {"kernel.provides": {"al2023": "6.18.3"}},
    ),
    Case(
        "SWC032",
        {"kernel.provides": {"ubuntu22.04": "6.5.0-1023"}},
        "within 6.8",
        {"kernel.provides": {"ubuntu22.04": "6.8.0-1017"}},
    ),
    Case("SWC033", {"nvidia-fs.version": "2.24.1"}, "must be >= 2.24.2", {"nvidia-fs.version": "2.24.2"}),
    Case(
        "SWC040",
        {"nccl.version": "2.31.2", "gdrcopy.version": "2.4.4"},
        "must be >= 2.5",
        {"gdrcopy.version": "2.5"},
    ),
    Case(
        "SWC041",
        {"gdrcopy.provides": {"gdrdrv": "optional"}},
        "must be >= 13.3",
        {"nvidia-driver.provides": {"cuda": "13.3"}},
    ),
    Case(
        "SWC041",
        {
            "gdrcopy.provides": {"gdrdrv": "optional"},
            "nvidia-driver.provides": {"cuda": "13.3"},
            "gdrcopy.version": "2.5.2",
        },
        "must be >= 2.6",
        {"gdrcopy.version": "2.6"},
    ),
    Case(
        "SWC050",
        {"pyxis.provides": {"slurm": "24.11.6"}},
        "must be a 25.11",
        {"pyxis.provides": {"slurm": "25.11.8"}},
    ),
    Case("SWC051", {"enroot.version": "3.0.2"}, "must be >= 3.1.0", {"enroot.version": "3.1.0"}),
    Case(
        "SWC060",
        {"neuron-runtime.version": "2.33.10.0"},
        "must be 2.34.10.0",
        {"neuron-runtime.version": "2.34.10.0"},
    ),
    Case(
        "SWC061",
        {"neuron-collectives": ...},
        "neuron-collectives must be present",
        {"neuron-driver": ..., "neuron-runtime": ...},
    ),
]


def release(changes: dict[str, Any], base: str = "2026.11") -> Release:
    content = json.loads(release_file(base).read_text())
    for path, value in changes.items():
        *parents, last = _parts(path)
        target: Any = content["components"]
        for part in parents:
            target = target[int(part)] if part.isdigit() else target[part]
        if value is ...:
            target.pop(last)
        else:
            target[last] = copy.deepcopy(value)
    for part in content["components"].values():  # needs are another test's
        part["needs"] = [need for need in part.get("needs", ()) if need in content["components"]]
    return Release.model_validate(content)


def _parts(path: str) -> list[str]:
    return path.split(".")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_broken(case: Case) -> None:
    found = {verdict.constraint.id: verdict for verdict in breaches(release(case.broken))}
    assert case.id in found, found
    verdict = found[case.id]
    assert case.says in verdict.detail
    assert verdict.constraint.source
    assert verdict.blocks == (verdict.constraint.severity == "error")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_satisfied(case: Case) -> None:
    states = {v.constraint.id: v.state for v in solve(release({**case.broken, **case.mended}))}
    assert states[case.id] in ("satisfied", "not-applicable"), states[case.id]


def test_every_constraint_is_broken_once() -> None:
    assert {row.id for row in constraints().constraints} == {case.id for case in CASES}


@pytest.mark.parametrize("name", release_names())
def test_the_shipped_releases_break_nothing(name: str) -> None:
    assert breaches(load_release(name)) == []


def test_the_newest_release_leaves_nothing_undecided() -> None:
    assert [v.constraint.id for v in solve(load_release("2026.11")) if v.state == "unknown"] == []


def test_what_is_unknown_is_never_a_breach() -> None:
    bare = {name: ... for name in load_release("2026.11").components if name not in ("pyxis", "enroot")}
    assert breaches(release(bare)) == []
    silent = {f"{name}.provides": {} for name in load_release("2026.11").components}
    assert breaches(release(silent)) == []
    words = {
        "libfabric.version": "bundled",
        "efa-installer.provides": {},
        "kernel.provides": {"al2023": "image"},
    }
    states = {v.constraint.id: v.state for v in solve(release(words))}
    assert states["SWC020"] == "unknown"
    assert states["SWC031"] == "unknown"


def test_a_plugin_may_be_built_from_source_where_a_pin_forces_it() -> None:
    own = {"aws-ofi-nccl.version": "1.20.0", "aws-ofi-nccl.kind": "source", "nccl.version": "2.30.4"}
    assert breaches(release(own)) == []


@pytest.mark.parametrize(
    ("accelerator", "driver", "says"),
    [
        ("B200", "570.124.06", "must be >= 570.133.20"),
        ("GB200", "580.105.08", "must be >= 580.126.20"),
        ("B300", "570.172.08", "must be >= 580"),
    ],
)
def test_accelerators_ask_for_a_driver(accelerator: str, driver: str, says: str) -> None:
    (found,) = instance_breaches(release({"nvidia-driver.version": driver}), accelerator)
    assert says in found.detail
    assert instance_breaches(load_release("2026.11"), accelerator) == []
    assert instance_breaches(release({"nvidia-driver": ..., "fabric-manager": ...}), accelerator) == []


def test_every_accelerator_with_a_minimum_is_one_of_ec2() -> None:
    names = {kind.accelerator.name for kind in instance_types().values() if kind.accelerator}
    assert {name for row in constraints().instances for name in row.accelerators} <= names


def test_ids_are_unique_and_in_order() -> None:
    ids = [row.id for row in constraints().constraints]
    assert ids == sorted(set(ids))


def test_facts_are_named_as_components_are() -> None:
    known = set(load_release("2026.11").components)
    for row in constraints().constraints:
        assert set(row.components) <= known, row.id
        for case in row.cases:
            for condition in (*case.when, *case.require):
                assert condition.fact.replace("@", ":").split(":")[0] in known, row.id
