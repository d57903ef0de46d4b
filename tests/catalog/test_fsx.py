"""The FSx facts against botocore's model, and the arithmetic on them."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any, get_args

import botocore.session
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from ultracluster.catalog import region
from ultracluster.catalog.fsx import (
    Series,
    limits,
    lustre,
    lustre_deployments,
    openzfs,
    openzfs_deployments,
    read_cache,
)
from ultracluster.config import storage


@cache
def model() -> Any:
    return botocore.session.get_session().get_service_model("fsx")


def shape(name: str) -> Any:
    return model().shape_for(name)


def said_of(structure: str, member: str) -> str:
    """What the model says of a member, as plain text with numbers without commas."""
    text = re.sub(r"<[^>]+>", " ", shape(structure).members[member].documentation)
    text = re.sub(r"\s+(?=[,.:;])", "", " ".join(text.split()))
    return re.sub(r"(?<=\d),(?=\d)", "", text)


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def names(*models: type[BaseModel]) -> set[str]:
    return {n for one in models for n in get_args(one.model_fields["deployment"].annotation)}


def test_every_deployment_of_the_configuration_has_facts() -> None:
    assert set(lustre_deployments()) == names(
        storage.ScratchLustre,
        storage.Persistent1SsdLustre,
        storage.Persistent1HddLustre,
        storage.Persistent2SsdLustre,
        storage.IntelligentTieringLustre,
    )
    assert set(openzfs_deployments()) == names(storage.NewOpenZfs)


def test_deployment_types_are_the_models() -> None:
    types = {one.api_type for one in lustre_deployments().values()}
    assert types == set(shape("LustreDeploymentType").enum)
    stored = {one.storage_type for one in lustre_deployments().values()}
    assert stored == set(shape("StorageType").enum)
    zfs = {one.api_type for one in openzfs_deployments().values()}
    assert zfs == set(shape("OpenZFSDeploymentType").enum) - {"MULTI_AZ_1"}


def test_throughput_tiers_are_the_models() -> None:
    text = said_of("CreateFileSystemLustreConfiguration", "PerUnitStorageThroughput")
    for name, words in {
        "persistent-1-ssd": "PERSISTENT_1 SSD storage",
        "persistent-1-hdd": "PERSISTENT_1 HDD storage",
        "persistent-2-ssd": "PERSISTENT_2 SSD storage",
    }.items():
        found = re.search(rf"For {words}: ([\d, ]+) MB/s/TiB", text)
        assert found, (words, text)
        assert lustre(name).throughput == Series(tuple(numbers(found[1])))
    tiers = [t for d in lustre_deployments().values() if d.capacities for t in _first(d.throughput)]
    limit = shape("PerUnitStorageThroughput").metadata
    assert (min(tiers), max(tiers)) == (limit["min"], limit["max"])


def _first(series: Series | None) -> tuple[int, ...]:
    return series.first if series else ()


def test_capacities_are_the_models() -> None:
    text = said_of("CreateFileSystemRequest", "StorageCapacity")
    assert re.search(
        r"SCRATCH_2, PERSISTENT_2, and PERSISTENT_1 deployment types using SSD storage type, "
        r"the valid values are 1200 GiB, 2400 GiB, and increments of 2400 GiB",
        text,
    )
    for name in ("scratch-2", "persistent-1-ssd", "persistent-2-ssd"):
        assert lustre(name).capacity(None) == Series((1200,), 2400)
    assert "increments of 6000 GiB for 12 MB/s/TiB" in text
    assert "increments of 1800 GiB for 40 MB/s/TiB" in text
    assert lustre("persistent-1-hdd").capacity(12) == Series((), 6000)
    assert lustre("persistent-1-hdd").capacity(40) == Series((), 1800)
    assert re.search(r"SCRATCH_1 .*1200 GiB, 2400 GiB, and increments of 3600 GiB", text)
    assert lustre("scratch-1").capacity() == Series((1200, 2400), 3600)
    assert "from 64 GiB up to 524288 GiB" in text
    assert openzfs("single-az-1").capacity == Series((), 1, 64, 524288)


def test_elastic_storage_and_an_unknown_tier_have_no_capacity() -> None:
    assert lustre("intelligent-tiering").capacity(4000) is None
    assert lustre("persistent-1-hdd").capacity(50) is None
    assert lustre("persistent-2-ssd").capacity(50, efa=True) is None


def test_metadata_iops_are_the_models() -> None:
    text = said_of("CreateFileSystemLustreMetadataConfiguration", "Iops")
    assert "1500, 3000, 6000, 12000, and multiples of 12000 up to a maximum of 192000" in text
    assert lustre("persistent-2-ssd").metadata_iops == Series((1500, 3000, 6000), 12000, 1, 192000)
    assert re.search(r"Intelligent-Tiering file systems, valid values are 6000 and 12000", text)
    assert lustre("intelligent-tiering").metadata_iops == Series((6000, 12000))
    limit = shape("MetadataIops").metadata
    assert (limit["min"], limit["max"]) == (1500, 192000)


def test_intelligent_tiering_is_the_models() -> None:
    steps = lustre("intelligent-tiering").throughput
    limit = shape("ThroughputCapacityMbps").metadata
    assert steps
    assert (steps.above(0), steps.below(10**9)) == (limit["min"], limit["max"])
    assert "multiples of 4000" in said_of("CreateFileSystemLustreConfiguration", "ThroughputCapacity")
    text = said_of("LustreReadCacheConfiguration", "SizeGiB")
    assert "minimum of 32 GiB and maximum of 131072 GiB" in text
    assert "for every 4000 MB/s" in text
    assert read_cache(8000) == Series((), 1, 64, 262144)


def test_versions_are_the_models() -> None:
    text = said_of("CreateFileSystemRequest", "FileSystemTypeVersion")
    assert "2.10 is supported by the Scratch and Persistent_1 Lustre deployment types" in text
    assert "2.12 is supported by all Lustre deployment types, except for PERSISTENT_2" in text
    assert "2.15 is supported by all Lustre deployment types" in text
    for one in lustre_deployments().values():
        assert ("2.10" in one.versions) == (one.api_type != "PERSISTENT_2")
        assert one.versions[-1] == "2.15"
        assert set(one.metadata_versions) <= {"2.15"}


def test_openzfs_throughput_is_the_models() -> None:
    text = said_of("CreateFileSystemOpenZFSConfiguration", "ThroughputCapacity")
    second = re.search(r"MULTI_AZ_1 and SINGLE_AZ_2, valid values are (.*?) MBps", text)
    first = re.search(r"For SINGLE_AZ_1, valid values are (.*?) MBps", text)
    assert first
    assert second
    assert openzfs("single-az-1").throughput == Series(tuple(numbers(first[1])))
    assert openzfs("single-az-2").throughput == Series(tuple(numbers(second[1])))
    ranges = said_of("CreateFileSystemOpenZFSConfiguration", "DeploymentType")
    for one in openzfs_deployments().values():
        found = re.search(rf"{one.api_type} - Creates .*? (\d+) - (\d+) MB", ranges)
        assert found, one.api_type
        ends = (one.throughput.first[0], one.throughput.first[-1])
        assert ends == (int(found[1]), int(found[2]))


def test_limits_of_links_are_the_models() -> None:
    assert shape("EventTypes").metadata["max"] == 3
    assert {event.upper() for event in get_args(storage.Event)} == set(shape("EventType").enum)
    said = model().operation_model("CreateDataRepositoryAssociation").documentation
    assert f"maximum of {limits().data_repositories} data repository associations" in said
    assert "all FSx for Lustre 2.12 and 2.15 file systems" in said
    assert limits().data_repository_versions == ("2.12", "2.15")
    without = {n for n, one in lustre_deployments().items() if not one.data_repositories}
    assert without == {"scratch-1", "intelligent-tiering"}


def test_a_client_that_root_squash_exempts_is_the_models() -> None:
    assert limits().nid_pattern == shape("LustreNoSquashNid").metadata["pattern"]
    listed = storage.RootSquash.model_fields["exempt_clients"].metadata
    assert any(getattr(one, "max_length", 0) for one in listed)
    assert shape("LustreNoSquashNids").metadata["max"] == 64


def test_every_region_that_is_named_exists() -> None:
    named = {r for one in openzfs_deployments().values() for r in one.regions_without}
    named |= set(_places()["regions"])
    assert not [name for name in named if region(name) is None]


def test_every_deployment_that_a_place_names_exists() -> None:
    rows = [*_places()["regions"].values(), *_places()["local_zones"].values()]
    assert {name for row in rows for name in row["deployments"]} <= set(lustre_deployments())
    tiers = lustre_deployments()["persistent-2-ssd"].throughput
    assert tiers is not None
    assert {tier for row in rows for tier in row.get("limited", ())} <= set(tiers.first)


def _places() -> dict[str, Any]:
    return json.loads((files("ultracluster.catalog") / "fsx.json").read_text("utf-8"))["places"]


def test_every_row_has_a_source_and_a_date() -> None:
    document = json.loads((files("ultracluster.catalog") / "fsx.json").read_text("utf-8"))
    rows = [*document["lustre"].values(), *document["openzfs"].values()]
    rows += [row for key, row in document.items() if key not in {"about", "lustre", "openzfs"}]
    for row in rows:
        assert row["sources"], row
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", row["date"]), row


@pytest.mark.parametrize(
    ("series", "text"),
    [
        (Series((50,)), "50"),
        (Series((12, 40)), "12 or 40"),
        (Series((50, 100, 200)), "50, 100 or 200"),
        (Series((1200,), 2400), "1200 or a multiple of 2400"),
        (Series((), 4000, 1, 2_000_000), "a multiple of 4000 up to 2000000"),
        (Series((), 1, 64, 524288), "64 to 524288"),
    ],
)
def test_a_series_in_words(series: Series, text: str) -> None:
    assert str(series) == text


@st.composite
def some_series(draw: st.DrawFn) -> Series:
    first = draw(st.lists(st.integers(1, 50), max_size=3).map(lambda them: tuple(sorted(them))))
    step = draw(st.none() | st.integers(1, 40)) if first else draw(st.integers(1, 40))
    minimum = draw(st.integers(1, 60))
    maximum = draw(st.none() | st.integers(minimum, 200))
    return Series(first, step, minimum, maximum)


@given(series=some_series(), value=st.integers(0, 250))
def test_neighbours_are_accepted_and_nearest(series: Series, value: int) -> None:
    accepted = [number for number in range(1, 400) if number in series]
    assert series.below(value) == max((n for n in accepted if n < value), default=None)
    assert series.above(value) == min((n for n in accepted if n > value), default=None)
    assert all(number in series for number in series.neighbours(value))


@given(value=st.integers(1, 10**6))
def test_every_capacity_has_a_neighbour(value: int) -> None:
    for one in lustre_deployments().values():
        for series in (*one.capacities.values(), *one.efa_capacities.values()):
            near = series.neighbours(value)
            assert near
            assert all(number in series for number in near)
