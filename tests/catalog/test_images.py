"""The records of machine images: their shape, and that none contradicts itself or its sources."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

import pytest

from ultracluster.catalog import images as catalogue
from ultracluster.catalog.images import (
    Fact,
    Family,
    Image,
    Mark,
    UnknownImageError,
    fields,
    image,
    images,
    newest,
    source,
)
from ultracluster.catalog.lustre_kernels import lustre_kernels
from ultracluster.software.contradictions import contradictions
from ultracluster.software.fit import in_matrix
from ultracluster.software.versions import Version

DOCUMENT: dict[str, Any] = json.loads(catalogue.FILE.read_text())
VERSION = re.compile(r"(>=)?\d[A-Za-z0-9.+~:-]*")
OTHER_VALUES = {
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

    assert used == set(DOCUMENT["sources"])
    for key, row in DOCUMENT["sources"].items():
        assert len(row["where"]) > 15 and DATE.fullmatch(row["as_of"]), key
        assert not re.search(r"\breview\b|\bthe project|/work|images\.md", row["where"]), key
        assert source(key) == f"{row['where']} ({row['as_of']})"


@pytest.mark.parametrize("one", images(), ids=lambda one: one.id)
def test_a_record_does_not_contradict_itself(one: Image) -> None:
    assert contradictions(one) == ()


def edited(one: Image, **values: str | bool) -> Image:
    facts = {name: Fact(value, "confirmed", "os", "2026") for name, value in values.items()}
    return replace(one, values={**one.values, **facts})


@pytest.mark.parametrize(
    ("base", "values", "clause"),
    [
        ("hyperpod-slurm-ubuntu22.04-x86_64-20260917", {"fabric_manager": "580.65.06"}, "one version"),
        ("eks-al2023-standard-1.34-x86_64-20261012", {"gdrdrv": "2.5.2"}, "without an NVIDIA driver"),
        ("hyperpod-slurm-ubuntu22.04-x86_64-20260917", {"efa_kmod": "2.17.3"}, "1.50.0 brings 3.3.0"),
        ("hyperpod-slurm-ubuntu22.04-x86_64-20260917", {"kernel": "6.12.1-1.1"}, "is none of ubuntu22.04"),
        ("hyperpod-slurm-ubuntu22.04-x86_64-20260917", {"kernel": "6.9.0-1001-aws"}, "lacks kernel"),
        ("hyperpod-slurm-ubuntu22.04-x86_64-20260917", {"cuda_default": "12.4"}, "not one of"),
        ("eks-al2023-nvidia-1.34-x86_64-20261012", {"login_user": "ubuntu"}, "none of al2023"),
    ],
)
def test_a_contradiction_is_named(base: str, values: dict[str, str], clause: str) -> None:
    (found,) = contradictions(edited(image(base), **values))

    assert clause in found


def test_a_release_of_another_day_or_kubernetes_is_a_contradiction() -> None:
    one = image("eks-al2023-nvidia-1.34-x86_64-20260930")

    assert contradictions(replace(one, date="2026-09-29")) == ("release 1.34.11-20260930 is of 2026-09-29",)
    assert contradictions(replace(one, kubernetes="1.35")) == (
        "release 1.34.11-20260930 is not of Kubernetes 1.35",
    )


@pytest.mark.parametrize(
    ("os", "kernel", "inside"),
    [
        ("ubuntu24.04", "6.17.0-1020-aws", True),
        ("ubuntu24.04", "6.17.0-1021-aws", False),
        ("ubuntu24.04", "7.0.0-1011-aws", False),
        ("ubuntu24.04", "7.0.0-1014-aws", True),
        ("ubuntu24.04", "7.1.0-1001-aws", False),
        ("ubuntu22.04", "6.8.0-1100-aws", True),
        ("al2023", "6.12.110-135.201", True),
        ("al2023", "6.1.70-1.1", False),
        ("rhel9", "5.14.0-503.40.1", True),
        ("ubuntu26.04", "7.0.0-1014-aws", False),
    ],
)
def test_kernels_of_fsx(os: str, kernel: str, inside: bool) -> None:
    assert in_matrix(os, kernel) is inside


def test_ranges_of_kernels_rise() -> None:
    for os in ("al2023", "ubuntu22.04", "ubuntu24.04", "rhel8", "rhel9", "rhel10"):
        ranges = lustre_kernels(os)
        assert ranges
        for low, high in ranges:
            assert Version(low) <= Version(high) or low.startswith((high + ".", high + "-")), (os, low, high)


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
    with pytest.raises(UnknownImageError, match="ultracluster image list"):
        image("zzz")


def test_an_unknown_value_is_none_and_a_no_is_false() -> None:
    one = image("eks-al2023-nvidia-1.34-x86_64-20261012")
    absent = one.fact("lustre_client")

    assert one.fact("efa_installer") is None
    assert absent and absent.value is False
    assert (one.node_family, one.login_user) == ("eks-al2023", "ec2-user")
