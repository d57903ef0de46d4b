"""Minimum software of each GPU family, made from AWS's two tables: a version older in any column is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import ultracluster as run

import ultracluster.catalog
from ultracluster.catalog.instances import instance_types
from ultracluster.software import Release, every_instance_breach, instance_breaches, load_release
from ultracluster.software.constraints import constraints
from ultracluster.software.lock import release_file
from ultracluster.software.versions import Version

COLUMNS = ("nvidia-driver", "cuda-runtime", "gdrcopy", "efa-installer", "nccl")
MINIMUM = {
    "g7.48xlarge": "595 13.2 2.5.1 1.48.0 2.29.7 0.5.10",
    "g7e.48xlarge": "575 12.9 2.5 1.45.0 2.28.3 0.5.10",
    "p5.48xlarge": "530 12.1 2.3 1.24.1 2.18.3 0.4.4",
    "p5.4xlarge": "530 12.1 2.3 1.43.1 2.18.3 0.4.4",
    "p5e.48xlarge": "550 12.1 2.3 1.24.1 2.18.3 0.5.5",
    "p5en.48xlarge": "550 12.1 2.3 1.24.1 2.18.3 0.5.6",
    "p6-b200.48xlarge": "570 12.8 2.5 1.41.0 2.26.2 0.5.10",
    "p6e-gb200.36xlarge": "570 12.8 2.5 1.41.0 2.26.2 0.5.10",
    "p6-b300.48xlarge": "580 13.0 2.5 1.44.0 2.28.3 0.5.10",
}
"""EC2 User Guide, gpu-instances-started: a type of each line, as read on 2026-11-28.

The last column is the device plugin of EFA, a chart here and no part of a release.
"""
DRIVERS = {
    **{kind: line.split()[0] for kind, line in MINIMUM.items() if not kind.startswith("g7.")},
    "g5.48xlarge": "470",
    "g6.48xlarge": "525",
    "g6e.48xlarge": "535",
}
"""EC2 User Guide, public-nvidia-driver: the minimum driver of each line with one, as read on 2026-11-28."""
CELLS = [
    (kind, fact, version)
    for kind, line in MINIMUM.items()
    for fact, version in zip(COLUMNS, line.split()[:-1], strict=True)
]


def release(versions: dict[str, str]) -> Release:
    """Release 2026.11 with other versions."""
    content = json.loads(release_file("2026.11").read_text())
    for name, version in versions.items():
        content["components"][name]["version"] = version
    return Release.model_validate(content)


def older(version: str) -> str:
    """The version before: 1.41.0 -> 1.40.99, 570 -> 569.99."""
    parts = [int(part) for part in version.split(".")]
    while parts[-1] == 0:
        parts.pop()
    return ".".join(map(str, [*parts[:-1], parts[-1] - 1, 99]))


def named(changed: Release, kind: str) -> dict[str, str]:
    """Id -> what is missing, of the rows that refuse a release for an instance type."""
    accelerator = instance_types()[kind].accelerator
    assert accelerator
    return {v.constraint.id: v.detail for v in instance_breaches(changed, accelerator.name, kind) if v.blocks}


@pytest.mark.parametrize(("kind", "fact", "version"), CELLS)
def test_one_version_older_in_any_column_names_the_row(kind: str, fact: str, version: str) -> None:
    found = named(release({fact: older(version)}), kind)
    assert any(f"{fact} is {older(version)} and must be >= " in detail for detail in found.values()), found
    assert not any(
        fact in detail for row, detail in named(release({fact: version}), kind).items() if row != "SWI001"
    )


@pytest.mark.parametrize(("kind", "driver"), DRIVERS.items())
def test_the_driver_of_each_family_is_the_one_of_ec2s_table(kind: str, driver: str) -> None:
    accelerator = instance_types()[kind].accelerator
    assert accelerator
    rows = [
        condition
        for row in constraints().instances
        if "Install NVIDIA public drivers" in row.source and accelerator.name in row.accelerators
        if not row.families or kind.partition(".")[0] in row.families
        for condition in row.require
    ]
    assert [(row.fact, row.op, row.value) for row in rows] == [("nvidia-driver", ">=", driver)]


def test_no_row_has_a_figure_that_ec2s_tables_lack() -> None:
    """A row of these pages is made of their cells, no more."""
    figures = {(fact, version) for _, fact, version in CELLS}
    figures |= {("nvidia-driver", version) for version in DRIVERS.values()}
    for row in constraints().instances:
        if "minimum software versions" in row.source or "Install NVIDIA public drivers" in row.source:
            assert {(one.fact, one.value) for one in row.require} <= figures, row.id


def test_the_device_plugin_that_is_installed_meets_every_line() -> None:
    charts = json.loads(Path(ultracluster.catalog.__file__).with_name("charts.json").read_text())["charts"]
    plugin = charts["aws-efa-k8s-device-plugin"]
    for line in MINIMUM.values():
        assert Version(line.split()[-1]) <= Version(plugin["least"]["version"]) <= Version(plugin["version"])


def test_what_is_recommended_ends_no_node() -> None:
    """Floors of nodes are the drivers of EC2's table of minimum versions; a recommendation only informs."""
    floors = load_release("2026.11").components["nvidia-driver"].floors
    assert "g7" not in floors
    assert {name for name in floors if name.startswith("p6")} == {"p6-b200", "p6-b300", "p6e-gb200"}
    assert {floors[kind.partition(".")[0]].version for kind in DRIVERS if kind.startswith("p5.")} == {"530"}


def test_release_check_names_the_row_and_whom_it_binds(tmp_path: Path) -> None:
    content = json.loads(release_file("2026.11").read_text())
    content["components"]["gdrcopy"]["version"] = "2.4"
    file = tmp_path / "2026.11.lock"
    file.write_text(json.dumps(content))
    result = run("software", "show", "--check", str(file))
    assert "SWI016  too old         P6-B200 has the minimum software that EC2 names" in result.stdout
    assert "gdrcopy is 2.4 and must be >= 2.5" in result.stdout
    assert "SWI012" not in result.stdout  # P5 takes 2.3
    rows = json.loads(run("software", "show", "--check", str(file), "--json").stdout)["instance_types"]
    assert {row["id"] for row in rows} == {"SWI016", "SWI017", "SWI018", "SWI019", "SWI020"}
    assert every_instance_breach(load_release("2026.11")) == []
