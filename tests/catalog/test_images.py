"""The records of machine images: their shape, and that none contradicts itself or its sources."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from ultracluster.catalog.files import catalog_file
from ultracluster.catalog.images import (
    Family,
    Mark,
    UnknownImageError,
    fields,
    image,
    images,
    newest,
    source,
)

DOCUMENT = catalog_file("images")
VERSION = re.compile(r"(>=)?\d[A-Za-z0-9.+~:-]*")
OTHER_VALUES = {
    "second_volume": re.compile(r"[a-z]+[.0-9]*"),  # an LVM volume group
    "nvidia_driver_kind": re.compile("open|proprietary"),
    "login_user": re.compile("ubuntu|ec2-user|rocky"),
    "cuda_all": re.compile(r"\d+\.\d+( \d+\.\d+)*"),
}
DATE = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")


def cells() -> Iterator[tuple[str, str, Any]]:
    """Every value as it stands in the file: whose, of which field, the cell."""
    for family, row in DOCUMENT["defaults"].items():
        yield from ((f"default of {family}", field, cell) for field, cell in row.items())
    for record in DOCUMENT["images"]:
        yield from ((record["id"], field, cell) for field, cell in record["values"].items())


def test_every_value_is_one_that_a_program_reads() -> None:
    wrong = []
    for owner, field, cell in cells():
        if cell is None:
            continue
        value, mark, key, as_of, *note = cell
        shape = OTHER_VALUES.get(field, VERSION)
        fits = isinstance(value, bool) or (isinstance(value, str) and shape.fullmatch(value))
        if not (fits and mark in get_args(Mark) and key in DOCUMENT["sources"] and DATE.fullmatch(as_of)):
            wrong.append((owner, field, cell))
        if len(note) > 1 or not all(isinstance(one, str) and one for one in note):
            wrong.append((owner, field, cell))

    assert not wrong


def test_a_record_has_nothing_but_what_a_record_has() -> None:
    keys = {
        "id", "family", "release", "date", "os", "arch", "kubernetes", "name", "advisories", "notes",
        "version",
        "values",
        "places",
    }  # fmt: skip
    for record in DOCUMENT["images"]:
        assert set(record) <= keys, record["id"]
        assert set(record["values"]) <= set(fields()), record["id"]
        assert record["family"] in get_args(Family), record["id"]
        assert record["arch"] in ("x86_64", "arm64"), record["id"]
        assert re.fullmatch(r"(ubuntu|al|rhel|rocky)\d[\d.]*", record["os"]), record["id"]
        for one in record.get("advisories", ()):
            assert set(one) == {"text", "by", "source"}
            assert one["by"] in ("maker", "field") and one["source"] in DOCUMENT["sources"]


def test_every_family_has_the_same_fields() -> None:
    assert {tuple(row) for row in DOCUMENT["defaults"].values()} == {fields()}
    assert set(DOCUMENT["defaults"]) == {one.family for one in images()} == set(get_args(Family))


def test_a_record_repeats_nothing_of_its_family() -> None:
    repeated = [
        (record["id"], field)
        for record in DOCUMENT["images"]
        for field, cell in record["values"].items()
        if cell == DOCUMENT["defaults"][record["family"]][field]
    ]

    assert not repeated


def test_ids_are_unique_and_say_system_and_processor() -> None:
    ids = Counter(one.id for one in images())

    assert [name for name, number in ids.items() if number > 1] == []
    for one in images():
        words = one.id.replace("_", "-").replace(".", "").split("-")
        assert one.arch in one.id, one.id
        if one.kubernetes:
            assert f"-{one.kubernetes}-" in one.id, one.id
        elif one.family != "hyperpod-eks":
            assert {one.os.replace(".", ""), "alinux2023"} & set(words), one.id


def test_sources_are_public_texts_and_all_used() -> None:
    used = {cell[2] for _, _, cell in cells() if cell} | {DOCUMENT["efa_installers"]["source"]}
    used |= {row["source"] for record in DOCUMENT["images"] for row in record.get("advisories", ())}
    used |= {place.source for one in images() for place in one.places.values()}

    assert used == set(DOCUMENT["sources"])
    for key, row in DOCUMENT["sources"].items():
        assert len(row["where"]) > 15 and DATE.fullmatch(row["as_of"]), key
        assert not re.search(r"\breview\b|\bthe project|/work|images\.md", row["where"]), key
        assert source(key) == f"{row['where']} ({row['as_of']})"


def test_places_are_absolute_and_of_known_fields() -> None:
    for one in images():
        for field, place in one.places.items():
            assert field in fields() and place.path.startswith("/"), one.id
            assert isinstance(place.enabled, bool) and DATE.fullmatch(place.as_of), one.id
    for row in DOCUMENT["places"]["rows"]:
        assert set(row) <= {"field", "families", "systems", "place"}
        assert set(row.get("families", ())) <= set(get_args(Family))


@pytest.mark.parametrize(
    ("id_", "field", "path", "enabled"),
    [
        ("parallelcluster-3.16.3-ubuntu2204-x86_64", "pyxis", "/usr/local/lib/slurm/spank_pyxis.so", False),
        ("hyperpod-slurm-ubuntu22.04-x86_64-20260917", "pyxis", "/opt/slurm/lib/slurm/spank_pyxis.so", True),
        (
            "hyperpod-eks-1.36-x86_64-20260917",
            "aws_ofi_nccl",
            "/opt/amazon/ofi-nccl/lib64/libnccl-net-ofi.so",
            True,
        ),
    ],
)
def test_a_record_says_where_a_component_is(id_: str, field: str, path: str, enabled: bool) -> None:
    place = image(id_).places[field]
    assert (place.path, place.enabled) == (path, enabled)


def test_the_field_report_is_on_kubernetes_up_to_1_35_only() -> None:
    bad = [one for one in images() if one.advisories]

    assert {one.release[-8:] for one in bad} == {"20260930", "20261003"}
    assert {one.kubernetes for one in bad} == {"1.33", "1.34", "1.35"}
    assert all(note.by == "field" for one in bad for note in one.advisories)


def test_the_newest_of_a_family() -> None:
    eks = newest(family="eks-al2023-nvidia", arch="x86_64", kubernetes="1.34")
    assert eks and eks.release == "1.34.?-20261012"
    slurm = newest(family="hyperpod-slurm", arch="arm64")
    assert slurm and slurm.date == "2026-09-17"
    assert newest(family="parallelcluster", arch="x86_64", os="ubuntu22.04", release="3.16.2") is None


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("20261012", "1.34.?-20261012"),
        ("1.34.12-20261012", "1.34.?-20261012"),
        ("1.34.11-20260930", "1.34.11-20260930"),
        ("1.34.10-20260930", None),
        ("12", None),
    ],
)
def test_an_eks_release_is_found_by_its_date(asked: str, found: str | None) -> None:
    one = newest(family="eks-al2023-nvidia", arch="x86_64", kubernetes="1.34", release=asked)

    assert (one.release if one else None) == found


def test_an_unknown_image_names_the_nearest() -> None:
    with pytest.raises(UnknownImageError, match=r"hyperpod-slurm-ubuntu22\.04-x86_64-20260917"):
        image("hyperpod-slurm-ubuntu22.04-x86_64-20260919")
    with pytest.raises(UnknownImageError, match="ultracluster software show --images"):
        image("zzz")


def test_an_unknown_value_is_none_and_a_no_is_false() -> None:
    one = image("eks-al2023-nvidia-1.34-x86_64-20261012")
    absent = one.fact("lustre_client")

    assert one.fact("efa_installer") is None
    assert absent and absent.value is False
    assert (one.node_family, one.login_user) == ("eks-al2023", "ec2-user")
