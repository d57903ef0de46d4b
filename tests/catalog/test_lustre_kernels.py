"""Kernels for which FSx for Lustre has a client."""

from __future__ import annotations

import pytest

from ultracluster.catalog.lustre_kernels import lustre_kernels
from ultracluster.software.fit import in_matrix
from ultracluster.software.versions import Version


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
