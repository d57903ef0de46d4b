"""When EKS supports a Kubernetes release."""

from __future__ import annotations

import datetime as dt

import pytest

from ultracluster.catalog.eks_calendar import (
    kubernetes_releases,
    kubernetes_support,
    releases_in_standard_support,
    standard_support_ends,
)

DAY = dt.timedelta(days=1)


@pytest.mark.parametrize("release", kubernetes_releases())
def test_standard_support_goes_before_extended_support(release: str) -> None:
    support = kubernetes_support(release)
    assert support and support.on_eks < support.standard_ends < support.extended_ends
    assert support.phase(support.standard_ends - DAY) == "standard"
    assert support.phase(support.standard_ends) == "extended"
    assert support.phase(support.extended_ends) == "ended"


def test_releases_are_oldest_first_and_leave_in_that_order() -> None:
    releases = kubernetes_releases()
    assert list(releases) == sorted(releases, key=lambda name: [int(part) for part in name.split(".")])
    last = standard_support_ends(releases[-1])
    assert last and releases_in_standard_support(last - DAY) == releases[-1:]
    assert releases_in_standard_support(last) == ()


def test_of_an_unknown_release_nothing_is_known() -> None:
    assert (kubernetes_support("1.99"), standard_support_ends("1.99")) == (None, None)
