"""Service quotas by the names that AWS lists; `quotas.json` next to it holds them with source and date."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from ultracluster.catalog.files import catalog_file, record

_document = partial(catalog_file, "quotas")

Purchase = Literal["on-demand", "spot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """One quota of an account in a Region."""

    service: str
    """Service code of Service Quotas: "ec2", "vpc", "sagemaker" ..."""
    name: str
    """QuotaName."""
    code: str = ""
    """QuotaCode as it was seen; empty where published codes contradict each other."""
    match: Literal["name", "code"] = "name"
    """What identifies it in an account; a code that is not trusted is only a hint."""
    unit: str = ""
    """What it counts."""
    source: str = ""
    date: str = ""


def quota(key: str) -> Quota:
    """The quota that `quotas.json` calls `key` ("elastic-ips").

    Raises:
        KeyError: there is none.
    """
    return _quota(_document()["quotas"][key], "")


def quota_by_type(
    key: Literal["hyperpod-usage", "hyperpod-spot-usage", "reserved-capacity"], instance_type: str
) -> Quota:
    """SageMaker's quota of one instance type, given by its EC2 name."""
    row = _document()["by_type"][key]
    return _quota(row | row["codes"].get(instance_type, {}), instance_type)


def ec2_quota(family: str, purchase: Purchase) -> Quota | None:
    """The quota that counts the vCPUs of a family ("p5en"); None for families that the table lacks."""
    for row in _document()["ec2_families"]:
        if re.fullmatch(row["families"], family):
            return quota(row["on_demand" if purchase == "on-demand" else "spot"])
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadTime:
    """Time before the need at which an increase should be requested."""

    least_weeks: int
    most_weeks: int
    verified: bool
    """False where AWS publishes no figure."""
    official: str
    """AWS's own statement."""
    source: str
    date: str

    @property
    def words(self) -> str:
        """`AWS publishes none (...); 6 to 8 weeks by ...`."""
        doubt = "" if self.verified else ", not confirmed by AWS"
        return f"{self.official}; {self.least_weeks} to {self.most_weeks} weeks by {self.source}{doubt}"


def lead_time() -> LeadTime:
    """Return that of quotas of accelerated instances."""
    return LeadTime(**_document()["lead_time"])


def _quota(row: Mapping[str, Any], instance_type: str) -> Quota:
    return record(Quota, row, name=row["name"].format(type=instance_type))
