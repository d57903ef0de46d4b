"""MIG profiles of each GPU, and layouts that have a place on one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from botocore.session import get_session
from hypothesis import given
from hypothesis import strategies as st

from ultracluster.catalog import instance_type, instance_types, mig
from ultracluster.catalog.instance_facts import InstanceType

# aws/sagemaker-hyperpod-cli 011ca92 (2026-06-22), gpu-operator/config/default-mig-config.yaml: numbers of 1g,
# 2g, 3g and 4g on one GPU, each as AWS ships it for A100, H100, H200 and B300
SHIPPED = [
    (0, 0, 1, 1), (1, 1, 0, 1), (3, 0, 0, 1), (1, 1, 1, 0), (3, 0, 1, 0), (0, 2, 1, 0), (2, 1, 1, 0),
    (4, 0, 1, 0), (1, 3, 0, 0), (3, 2, 0, 0), (5, 1, 0, 0),
]  # fmt: skip
TYPES = [
    "p4d.24xlarge",
    "p4de.24xlarge",
    "p5.48xlarge",
    "p5en.48xlarge",
    "p6-b200.48xlarge",
    "p6-b300.48xlarge",
]


def gpu(name: str) -> InstanceType:
    known = instance_type(name)
    assert known
    return known


def of_slices(known: InstanceType, counts: tuple[int, ...]) -> dict[str, int]:
    """Profiles by their compute slices, 1 to 4."""
    names = {
        profile.partition("g")[0]: profile
        for profile in reversed(list(mig.mig_profiles(known)))
        if "+" not in profile
    }
    small = next(iter(mig.mig_profiles(known)))
    every = (small, names["2"], names["3"], names["4"])
    return {name: count for name, count in zip(every, counts, strict=True) if count}


def test_profiles_divide_a_gpu_and_other_types_have_none() -> None:
    h100, plain = gpu("p5.48xlarge"), gpu("m5.large")
    assert (mig.mig_profiles(h100)["1g.10gb"], mig.mig_profiles(h100)["1g.10gb+me"]) == (7, 1)
    assert mig.mig_devices(h100) and not set(mig.mig_devices(h100)) & set(
        mig.mig_devices(gpu("p4de.24xlarge"))
    )
    assert (dict(mig.mig_profiles(plain)), dict(mig.balanced_profiles(plain)), mig.mig_devices(plain)) == (
        {},
        {},
        (),
    )
    assert not mig.fits_on_gpu(plain, {"1g.10gb": 1})


@pytest.mark.parametrize("name", TYPES)
def test_what_aws_and_nvidia_ship_fits_and_one_more_does_not(name: str) -> None:
    known = gpu(name)
    for counts in SHIPPED:
        assert mig.fits_on_gpu(known, of_slices(known, counts)), counts
    balanced = dict(mig.balanced_profiles(known))
    assert mig.fits_on_gpu(known, balanced)
    for profile, most in mig.mig_profiles(known).items():
        assert mig.fits_on_gpu(known, {profile: most})
        assert not mig.fits_on_gpu(known, {profile: most + 1})
        assert not mig.fits_on_gpu(known, {**balanced, profile: balanced.get(profile, 0) + 1})


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ((1, 0, 2, 0), "two of 3g have all eight slices of memory"),
        ((0, 1, 0, 2), "4g begins at the first slice only"),
        ((2, 3, 0, 0), "eight compute slices"),
        ((0, 2, 0, 1), "2g begins at 0, 2 or 4"),
    ],
)
def test_what_has_no_place(counts: tuple[int, ...], why: str) -> None:
    known = gpu("p5.48xlarge")
    assert not mig.fits_on_gpu(known, of_slices(known, counts)), why


def test_double_memory_and_media_engines_take_their_place() -> None:
    known = gpu("p5.48xlarge")
    assert mig.fits_on_gpu(known, {"1g.20gb": 2, "3g.40gb": 1})
    assert not mig.fits_on_gpu(known, {"1g.20gb": 3, "3g.40gb": 1})
    assert mig.fits_on_gpu(known, {"1g.10gb+me": 1, "1g.10gb": 6})
    assert not mig.fits_on_gpu(known, {"1g.10gb+me": 1, "1g.10gb": 7})


@given(counts=st.tuples(*[st.integers(0, 7)] * 4), less=st.integers(0, 3))
def test_what_fits_still_fits_with_less(counts: tuple[int, ...], less: int) -> None:
    known = gpu("p5.48xlarge")
    fewer = tuple(max(0, count - (number == less)) for number, count in enumerate(counts))
    if mig.fits_on_gpu(known, of_slices(known, counts)):
        assert mig.fits_on_gpu(known, of_slices(known, fewer))


def test_partitions_are_those_of_the_api() -> None:
    shape = get_session().get_service_model("sagemaker").shape_for("MIGProfileType")
    rows = json.loads(Path(mig.__file__).with_name("mig_profiles.json").read_text())["partitions"]
    assert [f"mig-{one}" for one in rows] == list(shape.enum)
    assert mig.is_partition("1g.10gb") and not mig.is_partition("1g.10gb+me")


def test_each_type_with_a_gpu_of_the_table_has_profiles_of_its_memory() -> None:
    for known in instance_types().values():
        profiles = mig.mig_profiles(known)
        if profiles:
            assert known.accelerator
            each = known.accelerator.memory_gib / known.accelerator.count
            whole = next(name for name in profiles if name.startswith("7g"))
            assert abs(int(whole.removeprefix("7g.").removesuffix("gb")) - each * 1.0737) < 0.12 * each, (
                known.name
            )
