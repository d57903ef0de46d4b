"""The prices of a team's own: a file that is read line by line, and written whole."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from depth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from project import ROOT

from ultracluster.catalog.prices import Figure
from ultracluster.config import load
from ultracluster.plan.price_file import COLUMNS, prices_of, read_prices, write_prices

TODAY = dt.date(2026, 11, 22)
HEADER = ",".join(COLUMNS)
GOOD = "ec2.p5.48xlarge,us-west-2,50,hour,2026-11-01,our contract"


def written(folder: Path, *lines: str) -> Path:
    path = folder / "prices.csv"
    path.write_text("\n".join([HEADER, *lines, ""]))
    return path


def made_up(key: str, usd: float, region: str = "us-west-2") -> Figure:
    return Figure(
        key=key, region=region, usd=usd, unit="hour", source='a "source", with a comma', date=TODAY,
        verified=True,
    )  # fmt: skip


def test_it_lies_beside_the_environment() -> None:
    environment = load(ROOT / "environments" / "prod.yaml").environment
    assert prices_of(environment) == ROOT / "environments" / "prices.csv"
    named = environment.model_copy(update={"prices": "../prices/mine.csv"})
    assert prices_of(named) == ROOT / "environments" / "../prices/mine.csv"


def test_no_file_has_no_prices_and_no_faults(tmp_path: Path) -> None:
    found = read_prices(tmp_path / "prices.csv", today=TODAY)

    assert (found.figures, found.faults) == ({}, [])


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    figures = [made_up("nat", 0.045), made_up("ec2.p5.48xlarge", 55.04), made_up("nat", 0.05, "eu-west-1")]
    write_prices(path, figures)

    found = read_prices(path, today=TODAY)
    assert found.faults == []
    assert found.figures == {(one.key, one.region): one for one in figures}
    assert [line.partition(",")[0] for line in path.read_text().splitlines()] == [
        "key", "ec2.p5.48xlarge", "nat", "nat",
    ]  # fmt: skip
    assert [file.name for file in tmp_path.iterdir()] == ["prices.csv"]  # and no part of it


def test_a_file_as_a_spreadsheet_saves_it(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_bytes(f"\ufeff{HEADER}\r\n{GOOD}\r\n\r\n".encode())

    found = read_prices(path, today=TODAY)
    assert found.faults == []
    assert found.figures["ec2.p5.48xlarge", "us-west-2"].usd == 50


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("ec2.p5.48xlarge,us-west-2,50,hour,2026-11-01", "it has 5 values, not 6"),
        ("ecs.p5.48xlarge,us-west-2,50,hour,2026-11-01,x", "nothing is priced by the key 'ecs.p5.48xlarge'"),
        (",us-west-2,50,hour,2026-11-01,x", "nothing is priced by the key ''"),
        ("nat,,50,hour,2026-11-01,x", "the region is missing"),
        ("nat,us-west-2,50,hour,2026-11-01,", "the source is missing"),
        ("nat,us-west-2,50,week,2026-11-01,x", "the unit 'week' is none of hour, day, month, gb"),
        ("nat,us-west-2,fifty,hour,2026-11-01,x", "'fifty' is not a price in USD"),
        ("nat,us-west-2,0,hour,2026-11-01,x", "0 is not a price"),
        ("nat,us-west-2,-3,hour,2026-11-01,x", "-3 is not a price"),
        ("nat,us-west-2,nan,hour,2026-11-01,x", "nan is not a price"),
        ("nat,us-west-2,inf,hour,2026-11-01,x", "inf is not a price"),
        ("nat,us-west-2,1e9,hour,2026-11-01,x", "at most 1,000,000 USD"),
        ("nat,us-west-2,50,hour,yesterday,x", "the date 'yesterday' must be written as 2026-11-21"),
        ("nat,us-west-2,50,hour,,x", "the date '' must be written as"),
        ("nat,us-west-2,50,hour,2026-11-23,x", "the date 2026-11-23 is in the future"),
        (GOOD, "ec2.p5.48xlarge in us-west-2 stands there twice"),
    ],
)
def test_a_damaged_line_is_named_and_the_others_count(tmp_path: Path, line: str, why: str) -> None:
    path = written(tmp_path, GOOD, line, "kms.key,us-west-2,1,month,2026-11-01,the price list")

    found = read_prices(path, today=TODAY)
    assert set(found.figures) == {("ec2.p5.48xlarge", "us-west-2"), ("kms.key", "us-west-2")}
    (fault,) = found.faults
    assert fault.startswith(f"{path}:3: ")
    assert why in fault
    assert fault.endswith("; the line is not used")


def test_another_table_is_no_file_of_prices(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("instance,price\np5.48xlarge,50\n")

    found = read_prices(path, today=TODAY)
    assert (found.figures, len(found.faults)) == ({}, 1)
    assert f"the first line must be {HEADER}" in found.faults[0]


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b""])
def test_a_file_that_is_no_text_or_empty(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "prices.csv"
    path.write_bytes(content)

    found = read_prices(path, today=TODAY)
    assert (found.figures, len(found.faults)) == ({}, 1)
    assert "the shipped prices are used" in found.faults[0]


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").mkdir()

    assert "cannot be read" in read_prices(tmp_path / "prices.csv").faults[0]


@settings(
    deadline=None, max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rest=st.one_of(st.binary(max_size=200), st.text(alphabet='a,."\n\r-0', max_size=80).map(str.encode)))
def test_no_content_raises_or_gives_a_price_of_nothing(tmp_path: Path, rest: bytes) -> None:
    path = tmp_path / "prices.csv"
    path.write_bytes(HEADER.encode() + b"\n" + rest)

    found = read_prices(path, today=TODAY)
    assert all(one.usd > 0 for one in found.figures.values())
    if rest.strip():
        assert found.faults or found.figures
