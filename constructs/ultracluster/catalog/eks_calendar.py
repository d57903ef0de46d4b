"""Kubernetes releases of EKS, and when they leave its support (`eks_calendar.json`)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from ultracluster.catalog.files import catalog_file


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesSupport:
    """When EKS supports a Kubernetes release."""

    release: str
    """`1.36`."""
    on_eks: dt.date
    standard_ends: dt.date
    """The first day (UTC) on which it is billed for extended support, or upgraded by itself."""
    extended_ends: dt.date
    """The first day without any support: no cluster is made from then on."""

    def phase(self, on: dt.date) -> Literal["standard", "extended", "ended"]:
        """The support on a day."""
        if on < self.standard_ends:
            return "standard"
        return "extended" if on < self.extended_ends else "ended"


def kubernetes_releases() -> tuple[str, ...]:
    """The releases for which every add-on and node image is known, oldest first: `("1.31", ...)`."""
    return tuple(_calendar())


def kubernetes_support(release: str) -> KubernetesSupport | None:
    """The support calendar of a release; None where the release is not known."""
    return _calendar().get(release)


def standard_support_ends(release: str) -> dt.date | None:
    """The first day (UTC) on which a release, `1.34`, is billed for extended support; None where unknown."""
    found = kubernetes_support(release)
    return found.standard_ends if found else None


def releases_in_standard_support(on: dt.date) -> tuple[str, ...]:
    """Releases in standard support on a day, oldest first."""
    return tuple(name for name, one in _calendar().items() if one.phase(on) == "standard")


def read_on() -> dt.date:
    """The day on which the calendar was read."""
    return dt.date.fromisoformat(catalog_file("eks_calendar")["about"]["date"])


@cache
def _calendar() -> Mapping[str, KubernetesSupport]:
    rows: dict[str, dict[str, str]] = catalog_file("eks_calendar")["releases"]
    return {
        release: KubernetesSupport(
            release=release, **{key: dt.date.fromisoformat(day) for key, day in row.items()}
        )
        for release, row in rows.items()
    }
