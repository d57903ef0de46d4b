"""Kernels for which FSx for Lustre has a client."""

from __future__ import annotations

import pytest

from ultracluster.catalog.lustre_kernels import lustre_client, lustre_kernels, lustre_servers
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


@pytest.mark.parametrize(
    ("os", "client", "servers"),
    [
        ("al2023", "2.15.6", ("2.12", "2.15")),
        ("ubuntu22.04", "2.12.8", ("2.10", "2.12", "2.15")),
        ("rhel10", "2.15", ("2.15",)),
        ("ubuntu24.04", "2.16.1", ()),
    ],
)
def test_servers_of_a_client(os: str, client: str, servers: tuple[str, ...]) -> None:
    assert lustre_servers(os, client) == servers


def test_a_client_that_depends_on_the_kernel_is_not_known() -> None:
    assert (lustre_client("ubuntu22.04"), lustre_client("al2023"), lustre_client("plan9")) == (
        None,
        "2.15",
        None,
    )
