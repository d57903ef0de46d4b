"""Prices asked of AWS: the Price List API for what has a list price, EC2 for Spot.

What is asked for is named by the keys of `catalog/service_prices.json`. An answer that does not name exactly
one price is not used: the table's figure stays, and a row says why.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, code, explain, is_credentials
from ultracluster.catalog.prices import Figure, PriceUnit

PRICE_LIST_REGION = "us-east-1"
"""The Price List API answers in few Regions, for all (AWS Billing User Guide, "AWS Price List")."""


@dataclass(slots=True)
class LivePrices:
    """What AWS answered."""

    figures: dict[str, Figure] = field(default_factory=dict[str, Figure])
    """By key."""
    faults: list[str] = field(default_factory=list[str])
    """What could not be asked or was not answered, one line each."""

    @property
    def table(self) -> dict[tuple[str, str], Figure]:
        """The figures by key and place."""
        return {(key, one.region): one for key, one in self.figures.items()}


def live_prices(
    account: Account,
    keys: Iterable[str],
    *,
    zone_id: str,
    today: dt.date | None = None,
    asking: Callable[[str], None] = lambda key: None,
) -> LivePrices:
    """Ask for the prices of `keys` in the account's Region.

    Keys without a price list (Capacity Blocks, training plans, PCS ...) are passed over. Nothing is raised
    for an answer that does not come: `faults` says so.

    Args:
        zone_id: where Spot prices are asked for.
        today: the date of the figures.
        asking: told each key before it is asked for.
    """
    prices = LivePrices()
    on = today or dt.date.today()
    refused: set[str] = set()  # services that will not answer any more
    for key in dict.fromkeys(keys):
        kind = key.partition(".")[0]
        service = {"spot": "ec2", "savings-1y": "savingsplans"}.get(kind, "pricing")
        query = _query(key, account.region)
        if service in refused or (query is None and service == "pricing"):
            continue
        asking(key)
        try:
            if query:
                prices.figures[key] = _listed(account, key, query, on)
            elif service == "ec2":
                prices.figures[key] = _spot(account, key, zone_id, on)
            else:
                prices.figures[key] = _savings_plan(account, key, on)
        except _NotOneError as error:
            prices.faults.append(f"{key}: {error}; the table's figure is used, if there is one")
        except (*AWS_ERRORS, AccountError) as error:
            if is_credentials(error) or isinstance(error, AccountError):
                prices.faults.append(f"no live prices: {explain(error)}")
                break
            if code(error) in _ABOUT_THE_KEY:
                prices.faults.append(f"{key}: {explain(error)}")
                continue
            refused.add(service)  # it would answer the next question no better
            prices.faults.append(f"no live {_SOLD[service]} prices: {explain(error)}")
    return prices


_SOLD = {"ec2": "Spot", "pricing": "list", "savingsplans": "Savings Plans"}
_ABOUT_THE_KEY = {"NotFoundException", "InvalidParameterException", "InvalidParameterValue"}


class _NotOneError(Exception):
    """The answer is empty, or names more than one price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    service: str
    filters: dict[str, str]
    usage: str
    """Regular expression of the usage type, behind its Region's prefix (`USW2-`); any where empty."""
    unit: PriceUnit
    words: tuple[str, ...] = ()
    """Regular expressions that all occur in the product's attributes or the price's description."""


_UNITS: dict[PriceUnit, str] = {
    "hour": r"hr|hour",
    "month": r"mo|key|secret",
    "day": r"day",
    "gb": r"gb|gigabyte",
}


def _query(key: str, region: str) -> _Query | None:
    """The question for a key; None where the price list is not known to have it."""
    kind, _, name = key.partition(".")
    if key in _SIMPLE:
        service, filters, usage, unit = _SIMPLE[key]
        return _Query(service=service, filters={"regionCode": region, **filters}, usage=usage, unit=unit)
    here = {"regionCode": region}
    exact = re.escape(name)
    if kind == "ec2":
        used = {
            "operatingSystem": "Linux",
            "tenancy": "Shared",
            "preInstalledSw": "NA",
            "capacitystatus": "Used",
        }
        return _Query(
            service="AmazonEC2", filters={**here, "instanceType": name, **used}, usage=f"BoxUsage:{exact}",
            unit="hour",
        )  # fmt: skip
    if kind == "hyperpod":
        # `ReservedCluster:` is another product: the usage type decides (third parties' live records, 2026-09)
        return _Query(
            service="AmazonSageMaker", filters={**here, "instanceType": f"ml.{name}-Cluster"},
            usage=rf"Cluster:ml\.{exact}", unit="hour",
        )  # fmt: skip
    if key.startswith(("rds.mysql.", "rds.mysql-multi-az.")):
        engine, _, of = name.partition(".")
        zones = "Multi-AZ" if engine.endswith("multi-az") else "Single-AZ"
        return _Query(
            service="AmazonRDS",
            filters={
                **here, "instanceType": f"db.{of}", "databaseEngine": "MySQL", "deploymentOption": zones,
            },
            usage=rf"(Multi-AZUsage|InstanceUsage):db\.{re.escape(of)}", unit="hour",
        )  # fmt: skip
    words = _fsx_words(kind, name)
    if not words:
        return None
    return _Query(
        service="AmazonFSx", filters={**here, "fileSystemType": "Lustre" if kind == "lustre" else "OpenZFS"},
        usage="", unit="month", words=words,
    )  # fmt: skip


_SIMPLE: dict[str, tuple[str, dict[str, str], str, PriceUnit]] = {
    "nat": ("AmazonEC2", {"productFamily": "NAT Gateway"}, "NatGateway-Hours", "hour"),
    "nat.gb": ("AmazonEC2", {"productFamily": "NAT Gateway"}, "NatGateway-Bytes", "gb"),
    "endpoint": ("AmazonVPC", {"productFamily": "VpcEndpoint"}, "VpcEndpoint-Hours", "hour"),
    "endpoint.gb": ("AmazonVPC", {"productFamily": "VpcEndpoint"}, "VpcEndpoint-Bytes", "gb"),
    "ipv4": ("AmazonVPC", {}, "PublicIPv4:InUseAddress", "hour"),
    "ebs.gp3": ("AmazonEC2", {"volumeApiName": "gp3"}, r"EBS:VolumeUsage\.gp3", "month"),
    "ebs.gp3-throughput": ("AmazonEC2", {"volumeApiName": "gp3"}, r"EBS:VolumeP-Throughput\.gp3", "month"),
    "ebs.gp3-iops": ("AmazonEC2", {"volumeApiName": "gp3"}, r"EBS:VolumeP-IOPS\.gp3", "month"),
    "ebs.io2": ("AmazonEC2", {"volumeApiName": "io2"}, r"EBS:VolumeUsage\.io2", "month"),
    "ebs.io2-iops": ("AmazonEC2", {"volumeApiName": "io2"}, r"EBS:VolumeP-IOPS\.io2", "month"),
    "ebs.io2-iops-2": ("AmazonEC2", {"volumeApiName": "io2"}, r"EBS:VolumeP-IOPS\.io2\.tier2", "month"),
    "ebs.io2-iops-3": ("AmazonEC2", {"volumeApiName": "io2"}, r"EBS:VolumeP-IOPS\.io2\.tier3", "month"),
    "hyperpod-volume": (
        "AmazonSageMaker", {"usagetype": "Cluster:VolumeUsage"}, r"Cluster:VolumeUsage\.gp\d", "month",
    ),
    "eks.standard": ("AmazonEKS", {}, "AmazonEKS-Hours:perCluster", "hour"),
    "eks.extended": ("AmazonEKS", {}, "AmazonEKS-Hours:extendedSupport", "hour"),
    "rds.storage": ("AmazonRDS", {"productFamily": "Database Storage"}, "RDS:GP3-Storage", "month"),
    "rds.storage-multi-az": (
        "AmazonRDS", {"productFamily": "Database Storage"}, "RDS:Multi-AZ-GP3-Storage", "month",
    ),
    "nlb": (
        "AWSELB", {"productFamily": "Load Balancer-Network"}, r"LoadBalancerUsage", "hour",
    ),
    "kms.key": ("awskms", {}, "KMS-Keys", "month"),
    "secret": ("AWSSecretsManager", {}, "AWSSecretsManager-Secrets", "month"),
}  # fmt: skip


def _fsx_words(kind: str, name: str) -> tuple[str, ...]:
    """Return words that only one product of FSx has; empty where they are not known.

    The list has no documented attribute for it, so all that it says is searched; see `_listed` for what is
    done with an answer that is not clear.
    """
    deployment, _, part = name.partition(".")
    no_backup = "^(?!.*backup)"
    if kind == "openzfs":
        spelled = deployment.replace("-", "[-_ ]?")
        return (
            rf"(?<![\w-]){spelled}(?![\w-])",
            "throughput" if part == "throughput" else "storage",
            no_backup,
        )
    if kind != "lustre" or part.endswith("-cached"):
        return ()
    if part in ("metadata", "throughput", "cache"):
        return (part, "intelligent" if deployment == "intelligent-tiering" else "^(?!.*intelligent)")
    if part:  # the tiers of both generations and of disks are different numbers
        return (rf"(?<!\d){part}\s*-?mb", "storage", no_backup)
    return ("scratch", "storage", no_backup) if deployment == "scratch-2" else ()


def _listed(account: Account, key: str, query: _Query, today: dt.date) -> Figure:
    """The one list price that fits a question.

    Raises:
        _NotOneError: none fits, or several that differ.
    """
    try:
        hits = {hit for item in _products(account, query) for hit in _prices(item, query)}
    except ValueError:
        raise _NotOneError(f"the price list of {query.service} cannot be read") from None
    prices = sorted({usd for usd, _, _ in hits})
    if not prices:
        raise _NotOneError(f"the price list of {query.service} has none for {account.region}")
    if len(prices) > 1:
        some = ", ".join(f"{usd:g}" for usd in prices[:4])
        raise _NotOneError(f"the price list of {query.service} has several ({some})")
    usd, sku, day = min(hits)
    return _figure(
        key, account.region, usd, query.unit, f"AWS Price List, {query.service} {sku} of {day}", today
    )


def _products(account: Account, query: _Query) -> Iterator[dict[str, Any]]:
    pricing = account.client("pricing", PRICE_LIST_REGION)
    filters = [
        # usage types begin with the Region's prefix, which is no documented one
        {"Type": "CONTAINS" if name == "usagetype" else "TERM_MATCH", "Field": name, "Value": value}
        for name, value in query.filters.items()
    ]
    pages = pricing.get_paginator("get_products").paginate(
        ServiceCode=query.service, Filters=filters, FormatVersion="aws_v1", MaxResults=100
    )
    for page in pages:
        for product in page.get("PriceList", ()):
            yield _object(json.loads(product))


def _prices(item: dict[str, Any], query: _Query) -> Iterator[tuple[float, str, str]]:
    """On-demand prices of a product that fits: USD, SKU, day of publication."""
    product = _object(item.get("product"))
    attributes = _object(product.get("attributes"))
    usage = str(attributes.get("usagetype", ""))
    if query.usage and not re.fullmatch(_PREFIX + query.usage, usage):
        return
    for term in _object(_object(item.get("terms")).get("OnDemand")).values():
        for price in _object(_object(term).get("priceDimensions")).values():
            dimension = _object(price)
            text = " ".join(str(word) for word in (*attributes.values(), dimension.get("description", "")))
            fits = re.search(_UNITS[query.unit], str(dimension.get("unit", "")), re.IGNORECASE)
            usd = float(_object(dimension.get("pricePerUnit")).get("USD", 0))
            if (
                str(dimension.get("unit", "")).lower().startswith("gibps")
            ):  # throughput of gp3; ours is by the MB/s
                usd /= 1024
            first = float(dimension.get("beginRange", 0)) == 0  # discounts for volume come after
            named = all(re.search(word, text, re.IGNORECASE | re.DOTALL) for word in query.words)
            if fits and usd and first and named:
                yield usd, str(product.get("sku", "")), str(item.get("publicationDate", ""))[:10]


_PREFIX = r"(?:[A-Z0-9]+-|[a-z]{2}(?:-[a-z]+)+-\d-)?"
"""Of the Region, in a usage type: `USW2-`, with some services `us-west-2-`; in us-east-1 mostly none."""


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _spot(account: Account, key: str, zone_id: str, today: dt.date) -> Figure:
    """The current Spot price in a zone.

    Raises:
        _NotOneError: there is none: the type is not offered there on Spot.
    """
    name = key.partition(".")[2]
    answer = account.client("ec2").describe_spot_price_history(
        AvailabilityZoneId=zone_id,
        InstanceTypes=[name],
        ProductDescriptions=["Linux/UNIX"],
        StartTime=dt.datetime.now(dt.UTC),
    )
    prices: list[dict[str, Any]] = answer.get("SpotPriceHistory", [])
    if not prices:
        raise _NotOneError(f"EC2 has no Spot price in {zone_id}")
    newest = max(prices, key=lambda price: price["Timestamp"])
    return _figure(key, zone_id, float(newest["SpotPrice"]), "hour", f"EC2 Spot price in {zone_id}", today)


def _savings_plan(account: Account, key: str, today: dt.date) -> Figure:
    """The rate of a type with a Compute Savings Plan of one year, nothing upfront.

    Raises:
        _NotOneError: there is none, or several that differ.
    """
    name, region = key.partition(".")[2], account.region
    wanted = {
        "region": region, "instanceType": name, "tenancy": "shared", "productDescription": "Linux/UNIX",
    }  # fmt: skip
    # a global service, which answers in this Region (AWS General Reference, Savings Plans endpoints)
    answer = account.client("savingsplans", PRICE_LIST_REGION).describe_savings_plans_offering_rates(
        savingsPlanTypes=["Compute"],
        savingsPlanPaymentOptions=["No Upfront"],
        products=["EC2"],
        serviceCodes=["AmazonEC2"],
        filters=[{"name": one, "values": [value]} for one, value in wanted.items()],
        maxResults=1000,
    )
    try:
        rates = {
            float(row["rate"])
            for row in answer.get("searchResults", ())
            if re.fullmatch(f"{_PREFIX}BoxUsage:{re.escape(name)}", str(row.get("usageType", "")))
            and row["savingsPlanOffering"].get("durationSeconds") == _YEAR
            and row["savingsPlanOffering"].get("currency") == "USD"
        }
    except (LookupError, ValueError):
        raise _NotOneError("the rates of Savings Plans cannot be read") from None
    if len(rates) != 1:
        some = f"several ({', '.join(f'{rate:g}' for rate in sorted(rates)[:4])})" if rates else "none"
        raise _NotOneError(f"rates of Compute Savings Plans of one year: AWS has {some} in {region}")
    source = f"Compute Savings Plan of one year, nothing upfront, in {region}"
    return _figure(key, region, rates.pop(), "hour", source, today)


_YEAR = 365 * 24 * 3600
"""Seconds, as durations of offerings are written."""


def _figure(key: str, region: str, usd: float, unit: PriceUnit, source: str, today: dt.date) -> Figure:
    return Figure(
        key=key, region=region, usd=usd, unit=unit, source=source, date=today, verified=True, live=True,
    )  # fmt: skip
