"""Prices asked of AWS. botocore's Stubber checks every request and answer against the services' models."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from botocore.stub import ANY, Stubber

from ultracluster.account.aws import Account
from ultracluster.account.live_prices import LivePrices, live_prices

TODAY = dt.date(2026, 11, 21)
INSTEAD = "; the table's figure is used, if there is one"


def product(
    usagetype: str, usd: str, *, unit: str = "Hrs", text: str = "", sku: str = "SKU1", **attributes: str
) -> str:
    """One product in the shape of the Price List API (AWS CLI, example of `pricing get-products`)."""
    rate = f"{sku}.JRTCKXETXF.6YS6EN2CT7"
    return json.dumps(
        {
            "product": {
                "productFamily": "Compute",
                "attributes": {"usagetype": usagetype, "locationType": "AWS Region", **attributes},
                "sku": sku,
            },
            "serviceCode": "AmazonEC2",
            "terms": {
                "OnDemand": {
                    f"{sku}.JRTCKXETXF": {
                        "priceDimensions": {
                            rate: {
                                "unit": unit,
                                "endRange": "Inf",
                                "description": text or f"${usd} per {unit}",
                                "appliesTo": [],
                                "rateCode": rate,
                                "beginRange": "0",
                                "pricePerUnit": {"USD": usd},
                            }
                        },
                        "sku": sku,
                        "effectiveDate": "2026-11-01T00:00:00Z",
                        "offerTermCode": "JRTCKXETXF",
                        "termAttributes": {},
                    }
                }
            },
            "version": "20261118005701",
            "publicationDate": "2026-11-18T00:57:01Z",
        }
    )


class Service:
    """The account with stubbed answers, given in the order of the questions."""

    def __init__(self, account: Account, stack: ExitStack) -> None:
        self.account = account
        self.pricing = stack.enter_context(Stubber(self.account.client("pricing", "us-east-1")))
        self.ec2 = stack.enter_context(Stubber(self.account.client("ec2")))
        self.plans = stack.enter_context(Stubber(self.account.client("savingsplans", "us-east-1")))

    def lists(
        self, service: str, *products: str, filters: Any = ANY, then: str = "", after: str = ""
    ) -> None:
        answer: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": list(products)}
        asked = {"ServiceCode": service, "Filters": filters, "FormatVersion": "aws_v1", "MaxResults": 100}
        self.pricing.add_response(
            "get_products",
            answer | ({"NextToken": then} if then else {}),
            asked | ({"NextToken": after} if after else {}),
        )

    def ask(self, *keys: str) -> LivePrices:
        found = live_prices(self.account, keys, zone_id="usw2-az2", today=TODAY)
        self.pricing.assert_no_pending_responses()
        self.ec2.assert_no_pending_responses()
        self.plans.assert_no_pending_responses()
        return found


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    """Made once: clients are slow to make."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "example")
        patch.delenv("AWS_PROFILE", raising=False)
        yield Account(region="us-west-2")


@pytest.fixture
def service(account: Account) -> Iterator[Service]:
    with ExitStack() as stack:
        yield Service(account, stack)


def equal(**attributes: str) -> list[dict[str, str]]:
    kinds = {"usagetype": "CONTAINS"}
    return [
        {"Type": kinds.get(name, "TERM_MATCH"), "Field": name, "Value": value}
        for name, value in attributes.items()
    ]


SSD = {"fileSystemType": "Lustre", "storageType": "SSD"}
TIERS = [
    product("USW2-Storage-125", "0.145", unit="GB-Mo", text="storage, 125 MBps/TiB", **SSD),
    product("USW2-Storage-250", "0.21", unit="GB-Mo", text="storage, 250 MBps/TiB", **SSD),
    product("USW2-Storage-1000", "0.6", unit="GB-Mo", text="storage, 1000 MBps/TiB", **SSD),
    product("USW2-BackupUsage", "0.05", unit="GB-Mo", text="backup storage, 250 MBps/TiB", **SSD),
    product("USW2-Meta", "0.055", unit="IOPS-Mo", text="metadata IOPS", **SSD),
    product("USW2-INT-Meta", "0.065", unit="IOPS-Mo", text="Intelligent-Tiering metadata IOPS"),
]
ANSWERS: list[tuple[str, str, dict[str, str] | None, list[str], float, str]] = [
    (
        "ec2.p5.48xlarge",
        "AmazonEC2",
        {
            "regionCode": "us-west-2", "instanceType": "p5.48xlarge", "operatingSystem": "Linux",
            "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used",
        },
        [
            product("USW2-BoxUsage:p5.48xlarge", "55.0400000000"),
            product("USW2-UnusedBox:p5.48xlarge", "55.1000000000"),
        ],
        55.04,
        "hour",
    ),
    (
        "hyperpod.g5.8xlarge",
        "AmazonSageMaker",
        {"regionCode": "us-west-2", "instanceType": "ml.g5.8xlarge-Cluster"},
        [
            product("USW2-Cluster:ml.g5.8xlarge", "3.06", unit="Hrs"),
            product("USW2-ReservedCluster:ml.g5.8xlarge", "0.0000000000"),
            product("USW2-ReservedCluster:ml.g5.8xlarge", "1.5"),
            product("USW2-Studio:ml.g5.8xlarge", "2.9"),
        ],
        3.06,
        "hour",
    ),
    (
        "nat",
        "AmazonEC2",
        {"regionCode": "us-west-2", "productFamily": "NAT Gateway"},
        [product("USW2-NatGateway-Hours", "0.045"), product("USW2-NatGateway-Bytes", "0.045", unit="GB")],
        0.045,
        "hour",
    ),
    ("nat.gb", "AmazonEC2", None, [product("NatGateway-Bytes", "0.045", unit="GB")], 0.045, "gb"),
    ("endpoint", "AmazonVPC", None, [product("USW2-VpcEndpoint-Hours", "0.01")], 0.01, "hour"),
    ("ipv4", "AmazonVPC", None, [product("USW2-PublicIPv4:InUseAddress", "0.005")], 0.005, "hour"),
    ("ebs.gp3", "AmazonEC2", None, [product("EBS:VolumeUsage.gp3", "0.08", unit="GB-Mo")], 0.08, "month"),
    (
        "eks.standard",
        "AmazonEKS",
        {"regionCode": "us-west-2"},
        [
            product("USW2-AmazonEKS-Hours:perCluster", "0.10", unit="hours"),
            product("USW2-AmazonEKS-Hours:extendedSupport", "0.50", unit="hours"),
        ],
        0.1,
        "hour",
    ),
    (
        "eks.extended",
        "AmazonEKS",
        {"regionCode": "us-west-2"},
        [
            product("USW2-AmazonEKS-Hours:perCluster", "0.10", unit="hours"),
            product("USW2-AmazonEKS-Hours:extendedSupport", "0.50", unit="hours"),
        ],
        0.5,
        "hour",
    ),
    (
        "ebs.gp3-throughput",
        "AmazonEC2",
        {"regionCode": "us-west-2", "volumeApiName": "gp3"},
        [
            product("USW2-EBS:VolumeUsage.gp3", "0.08", unit="GB-Mo"),
            product("USW2-EBS:VolumeP-IOPS.gp3", "0.005", unit="IOPS-Mo"),
            product("USW2-EBS:VolumeP-Throughput.gp3", "40.96", unit="GiBps-mo"),
        ],
        0.04,
        "month",
    ),
    (
        "hyperpod-volume",
        "AmazonSageMaker",
        {"regionCode": "us-west-2", "usagetype": "Cluster:VolumeUsage"},
        [product("USW2-Cluster:VolumeUsage.gp2", "0.125", unit="GB-Mo")],
        0.125,
        "month",
    ),
    (
        "rds.mysql-multi-az.m7g.large",
        "AmazonRDS",
        {
            "regionCode": "us-west-2", "instanceType": "db.m7g.large", "databaseEngine": "MySQL",
            "deploymentOption": "Multi-AZ",
        },
        [product("USW2-Multi-AZUsage:db.m7g.large", "0.336")],
        0.336,
        "hour",
    ),
    ("kms.key", "awskms", None, [product("us-west-2-KMS-Keys", "1.00", unit="Keys")], 1.0, "month"),
    ("lustre.persistent-2-ssd.125", "AmazonFSx", None, TIERS, 0.145, "month"),
    (
        "lustre.persistent-2-ssd.250",
        "AmazonFSx",
        {"regionCode": "us-west-2", "fileSystemType": "Lustre"},
        TIERS,
        0.21,
        "month",
    ),
    ("lustre.persistent-2-ssd.1000", "AmazonFSx", None, TIERS, 0.6, "month"),
    ("lustre.persistent-2-ssd.metadata", "AmazonFSx", None, TIERS, 0.055, "month"),
    ("lustre.intelligent-tiering.metadata", "AmazonFSx", None, TIERS, 0.065, "month"),
    ("lustre.persistent-2-ssd.500", "AmazonFSx", None, TIERS, 0, ""),
    (
        "openzfs.single-az-ha-2.throughput",
        "AmazonFSx",
        {"regionCode": "us-west-2", "fileSystemType": "OpenZFS"},
        [
            product("A", "0.26", unit="MBps-Mo", text="throughput", deploymentOption="Single-AZ_2"),
            product("B", "0.52", unit="MBps-Mo", text="throughput", deploymentOption="Single-AZ-HA_2"),
        ],
        0.52,
        "month",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "code", "filters", "products", "usd", "unit"), ANSWERS, ids=[row[0] for row in ANSWERS]
)
def test_an_answer(
    service: Service,
    key: str,
    code: str,
    filters: dict[str, str] | None,
    products: list[str],
    usd: float,
    unit: str,
) -> None:
    service.lists(code, *products, filters=equal(**filters) if filters else ANY)
    prices = service.ask(key)

    if not usd:
        assert prices.figures == {}
        assert prices.faults == [f"{key}: the price list of {code} has none for us-west-2{INSTEAD}"]
        return
    assert prices.faults == []
    figure = prices.figures[key]
    assert (figure.usd, figure.unit, figure.region) == (usd, unit, "us-west-2")
    assert (figure.live, figure.old(TODAY), figure.date) == (True, False, TODAY)
    assert figure.source.startswith(f"AWS Price List, {code} ")
    assert figure.source.endswith("of 2026-11-18")


def test_every_page_is_read(service: Service) -> None:
    service.lists("AmazonEC2", product("USW2-UnusedBox:m5.large", "1"), then="more")
    service.lists("AmazonEC2", product("USW2-BoxUsage:m5.large", "0.096"), after="more")

    assert service.ask("ec2.m5.large").figures["ec2.m5.large"].usd == 0.096


def test_two_prices_are_no_answer(service: Service) -> None:
    service.lists(
        "AmazonEC2",
        product("USW2-BoxUsage:m5.large", "0.096"),
        product("BoxUsage:m5.large", "0.1", sku="SKU2"),
    )
    prices = service.ask("ec2.m5.large")

    assert prices.figures == {}
    assert prices.faults == [
        f"ec2.m5.large: the price list of AmazonEC2 has several (0.096, 0.1){INSTEAD}",
    ]


@pytest.mark.parametrize("answer", ["{", "[]", '{"product": 3, "terms": {"OnDemand": []}}'])
def test_an_answer_that_makes_no_sense(service: Service, answer: str) -> None:
    service.lists("AmazonEC2", answer)
    prices = service.ask("ec2.m5.large")

    assert prices.figures == {}
    assert len(prices.faults) == 1


def test_spot_is_asked_in_the_zone(service: Service) -> None:
    def price(usd: str, hour: int) -> dict[str, Any]:
        return {
            "AvailabilityZone": "us-west-2b", "AvailabilityZoneId": "usw2-az2", "InstanceType": "p5.48xlarge",
            "ProductDescription": "Linux/UNIX", "SpotPrice": usd,
            "Timestamp": dt.datetime(2026, 11, 21, hour, tzinfo=dt.UTC),
        }  # fmt: skip

    service.ec2.add_response(
        "describe_spot_price_history",
        {"SpotPriceHistory": [price("21.5", 3), price("20.25", 9)]},
        {
            "AvailabilityZoneId": "usw2-az2",
            "InstanceTypes": ["p5.48xlarge"],
            "ProductDescriptions": ["Linux/UNIX"],
            "StartTime": ANY,
        },
    )
    prices = service.ask("spot.p5.48xlarge")

    figure = prices.figures["spot.p5.48xlarge"]
    assert (figure.usd, figure.source) == (20.25, "EC2 Spot price in usw2-az2")
    assert prices.table == {("spot.p5.48xlarge", "usw2-az2"): figure}


def rate(usd: str, *, usage: str = "USW2-BoxUsage:p5.48xlarge", years: int = 1) -> dict[str, Any]:
    """One rate of a Savings Plan (Savings Plans API reference, SavingsPlanOfferingRate)."""
    offering = {
        "paymentOption": "No Upfront", "planType": "Compute", "durationSeconds": years * 365 * 86400,
        "currency": "USD",
    }  # fmt: skip
    return {"savingsPlanOffering": offering, "rate": usd, "unit": "Hrs", "usageType": usage}


PLAN = "savings-1y.p5.48xlarge"


def test_a_savings_plan_is_asked_for_a_year_without_a_fee(service: Service) -> None:
    rows = [rate("37.5"), rate("25.0", years=3), rate("38.0", usage="USW2-DedicatedUsage:p5.48xlarge")]
    filters = {
        "region": "us-west-2", "instanceType": "p5.48xlarge", "tenancy": "shared",
        "productDescription": "Linux/UNIX",
    }  # fmt: skip
    service.plans.add_response(
        "describe_savings_plans_offering_rates",
        {"searchResults": rows},
        {
            "savingsPlanTypes": ["Compute"],
            "savingsPlanPaymentOptions": ["No Upfront"],
            "products": ["EC2"],
            "serviceCodes": ["AmazonEC2"],
            "filters": [{"name": name, "values": [value]} for name, value in filters.items()],
            "maxResults": 1000,
        },
    )
    figure = service.ask(PLAN).figures[PLAN]

    assert (figure.usd, figure.unit, figure.region, figure.live) == (37.5, "hour", "us-west-2", True)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "AWS has none in us-west-2"),
        ([rate("1"), rate("2")], "AWS has several (1, 2) in us-west-2"),
        ([rate("much")], "cannot be read"),
        ([{"usageType": "USW2-BoxUsage:p5.48xlarge"}], "cannot be read"),
    ],
)
def test_rates_that_are_not_one_are_not_used(service: Service, rows: list[dict[str, Any]], said: str) -> None:
    service.plans.add_response("describe_savings_plans_offering_rates", {"searchResults": rows})
    prices = service.ask(PLAN)

    assert prices.figures == {} and said in prices.faults[0]


def test_a_refused_savings_plan_costs_the_others_nothing(service: Service) -> None:
    service.plans.add_client_error("describe_savings_plans_offering_rates", "AccessDeniedException", "no")
    service.lists("AmazonEC2", product("USW2-BoxUsage:m5.large", "0.096"))
    prices = service.ask(PLAN, "savings-1y.m5.large", "ec2.m5.large")

    assert list(prices.figures) == ["ec2.m5.large"]
    assert prices.faults == [f"no live Savings Plans prices: {prices.faults[0].partition(': ')[2]}"]


def test_no_spot_price(service: Service) -> None:
    service.ec2.add_response("describe_spot_price_history", {"SpotPriceHistory": []})
    prices = service.ask("spot.p5e.48xlarge")

    assert prices.faults == [
        f"spot.p5e.48xlarge: EC2 has no Spot price in usw2-az2{INSTEAD}",
    ]


@pytest.mark.parametrize(
    "key",
    [
        "capacity-block.p5.48xlarge", "training-plan.p5.48xlarge", "pcs.controller.small", "eks.tier.xl",
        "hyperpod-spot.p5.48xlarge", "lustre.persistent-1-hdd.12-cached",
        "lustre.scratch-1",
    ],
)  # fmt: skip
def test_what_no_price_list_has_is_not_asked(service: Service, key: str) -> None:
    assert service.ask(key) == LivePrices()


def test_a_service_that_refuses_is_not_asked_again_and_the_others_are(service: Service) -> None:
    service.pricing.add_client_error("get_products", "AccessDeniedException", "no")
    service.ec2.add_client_error("describe_spot_price_history", "RequestLimitExceeded", "slow down")
    prices = service.ask("nat", "ec2.m5.large", "spot.p5.48xlarge", "spot.p4d.24xlarge", "ipv4")

    assert prices.figures == {}
    assert len(prices.faults) == 2
    assert prices.faults[0].startswith("no live list prices: ")
    assert "GetProducts" in prices.faults[0]
    assert prices.faults[1].startswith("no live Spot prices: ")
    assert "throttled" in prices.faults[1]


def test_a_question_that_is_refused_leaves_the_others(service: Service) -> None:
    service.pricing.add_client_error("get_products", "NotFoundException", "no such service")
    service.lists("AmazonVPC", product("USW2-PublicIPv4:InUseAddress", "0.005"))
    prices = service.ask("nat", "ipv4")

    assert list(prices.figures) == ["ipv4"]
    assert prices.faults[0].startswith("nat: ")


def test_expired_credentials_end_the_questions(service: Service) -> None:
    service.pricing.add_client_error("get_products", "ExpiredTokenException", "expired")
    prices = service.ask("nat", "spot.p5.48xlarge", "ipv4")

    assert len(prices.faults) == 1
    assert prices.faults[0].startswith("no live prices: ")


def test_no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    found = live_prices(Account(region="us-west-2"), ["nat", "spot.p5.48xlarge"], zone_id="usw2-az2")

    assert found.figures == {}
    (fault,) = found.faults
    assert fault.startswith("no live prices: no AWS credentials: run `aws configure` or `aws sso login`")


def test_who_waits_is_told_what_for(service: Service) -> None:
    service.lists("AmazonVPC", product("USW2-PublicIPv4:InUseAddress", "0.005"))
    told: list[str] = []
    live_prices(
        service.account, ["ipv4", "ipv4", "pcs.node"], zone_id="usw2-az2", today=TODAY, asking=told.append
    )

    assert told == ["ipv4"]
