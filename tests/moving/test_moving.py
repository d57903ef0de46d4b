"""A move: the second environment, what becomes of each part, the order, and the way back."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path
from typing import Any

import pytest
from project import ROOT
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from ultracluster.cli.move_text import as_text, unsold
from ultracluster.config import load
from ultracluster.moving import (
    Bought,
    Move,
    MoveError,
    Target,
    capacity_named,
    checked,
    hours_text,
    plan_move,
    target_of,
)
from ultracluster.plan.price_file import prices_of
from ultracluster.rules import check

pytestmark = pytest.mark.slow

SHIPPED = sorted((ROOT / "environments").glob("*.yaml"))
WISHES = sorted((ROOT / "environments" / "wishes").glob("*.yaml"))
TODAY = dt.date(2026, 11, 23)
BLOCK = Bought(
    kind="capacity-block",
    id="cr-0fedcba9876543210",
    region="us-east-2",
    zone_id="use2-az1",
    instance_type="p6-b200.48xlarge",
    count=4,
    starts=dt.datetime(2027, 1, 1, 11, 30, tzinfo=dt.UTC),
)


def moved(file: str, to: str, **options: Any) -> Move:
    loaded = load(ROOT / "environments" / f"{file}.yaml")
    return plan_move(loaded, target_of(to, loaded.environment), today=TODAY, **options)


def becomes(move: Move) -> dict[str, str]:
    return {part.what: part.becomes for part in move.parts}


def elsewhere(name: str) -> str:
    """A Region that `name` is not in, and that AWS is known to have its types in."""
    return {"parallelcluster-p5": "us-east-1", "dev": "us-east-1"}.get(name, "us-west-2")


@pytest.mark.parametrize("file", [*SHIPPED, *WISHES], ids=lambda file: file.stem)
def test_every_environment_moves_to_a_zone_beside_it(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ULTRACLUSTER_EXTENDS_FROM", str(ROOT / "environments"))
    loaded = load(file)
    zone = {"us-east-2": "use2-az1", "us-west-2": "usw2-az4", "us-east-1": "use1-az6"}[
        loaded.environment.region
    ]
    if zone == loaded.environment.network.zone_id:
        zone = {"use2-az1": "use2-az2", "usw2-az4": "usw2-az1", "use1-az6": "use1-az2"}[zone]
    place = tmp_path / "second.yaml"
    move = plan_move(loaded, target_of(zone, loaded.environment), file=place, today=TODAY)
    place.write_text(move.text)
    second = load(place)  # it is an environment, and the one that was judged
    paths = {"prices", "lifecycle_steps"}  # from another folder they are called otherwise
    assert second.environment.model_dump(exclude=paths) == move.both.second.environment.model_dump(
        exclude=paths
    )
    assert {one.code for one in check(second)} >= {one.code for one in move.wrong}
    assert not set(second.environment.stack_names) & set(loaded.environment.stack_names)
    assert {group.what for group in move.parts if group.becomes == "bought again"} == {
        part.what for part in move.parts if "takes its place" in part.how
    }


@pytest.mark.parametrize(
    "name", ["prod", "dev", "eks-p5en", "hyperpod-eks-p5", "pcs-p6-b200", "parallelcluster-p5"]
)
def test_nothing_is_deleted_before_the_second_has_passed(name: str) -> None:
    move = moved(name, elsewhere(name))
    order = [("gate" if step.gate else "deletes" if step.deletes else "") for step in move.steps]
    assert order.count("gate") == order.count("deletes") == 1
    assert order[-1] == "deletes" and order.index("gate") < order.index("deletes")
    first = move.both.first.environment.asked_as
    destroying = [n for n, step in enumerate(move.steps) if f"ultracluster destroy {first}" in step.commands]
    assert destroying == [len(move.steps) - 1]
    assert all(step.back for step in move.steps)
    stops = [n for n, step in enumerate(move.steps) if step.downtime]
    assert stops and stops[0] > order.index("gate")


def test_prod_to_another_zone() -> None:
    move = moved("prod", "use2-az1")
    second = move.both.second.environment
    assert (second.name, second.region, second.network.zone_id) == ("prod-use2-az1", "us-east-2", "use2-az1")
    assert second.network.cidr == "10.65.0.0/16"
    database: Any = second.storage.accounting_database
    assert database.second_zone_id == "use2-az2"  # the other one was the target
    assert [blank.path[-1] for blank in move.blanks] == ["bucket", "arn"]
    assert "# stands in for the ARN of a plan in use2-az1" in move.text
    found = becomes(move)
    assert found["/fsx/datasets"] == found["/fsx/checkpoints"] == "carries over"
    assert found["16 x p5en.48xlarge (train)"] == "bought again"
    homes = next(part for part in move.parts if part.what.startswith("homes"))
    assert homes.least_hours == pytest.approx(1024 * 2**30 / 320e6 / 3600)
    assert not move.wrong and not move.problems
    first, after = move.cost
    assert move.usd_together == pytest.approx(
        sum(
            line.per_hour
            for found in (first, after)
            for line in found.standing
            if not line.prepaid and line.per_hour
        )
        * 72
    )


@pytest.mark.parametrize(
    ("name", "to", "parent"),
    [
        ("dev", "usw2-lax1-az1", "usw2-az2"),
        ("prod", "use1-dfw2-az1", "use1-az4"),
        ("trainium", "usw2-phx2-az1", "usw2-az2"),
        ("pcs-p6-b200", "use1-dfw2-az1", "use1-az4"),
        ("parallelcluster-p5", "use1-atl2-az1", "use1-az5"),
        ("parallelcluster-gb200", "usw2-lax1-az1", "usw2-az2"),
    ],
)
def test_what_a_local_zone_may_not_have_moves_to_the_zone_it_is_connected_to(
    name: str, to: str, parent: str
) -> None:
    move = moved(name, to)
    second = move.both.second.environment
    assert not move.wrong
    assert list(second.network.further_zones) == [parent]
    places = {one: group.zone_id for one, group in second.node_groups.items() if group.role != "compute"}
    assert places and set(places.values()) == {parent}
    assert {group.zone_id for group in second.groups("compute").values()} == {None}
    assert f"{parent}:" in move.text


def test_out_of_a_local_zone_nothing_of_it_is_left() -> None:
    move = moved("parallelcluster-gb200", "use1-az2")  # use1-az4 had the head and login nodes
    second = move.both.second.environment
    assert not second.network.further_zones
    assert {group.zone_id for group in second.node_groups.values()} == {None}
    assert "GRP040" not in {finding.code for finding in move.findings}


def test_prod_to_another_region() -> None:
    move = moved("prod", "us-west-2")
    second = move.both.second.environment
    assert second.region == "us-west-2" and second.network.zone_id.startswith("usw2-")
    assert {part.what for part in move.parts if part.early} == {
        "/fsx/datasets", "/fsx/checkpoints", "software mirror s3://example-software-mirror/ultracluster",
    }  # fmt: skip
    buckets = [link.bucket for link in second.data_repositories.values()]
    assert buckets == ["example-training-datasets-us-west-2", "data-bucket-of-prod-us-west-2"]
    commands = [command for step in move.steps for command in step.commands]
    mirror = next(n for n, one in enumerate(commands) if "software mirror" in one)
    assert mirror < next(n for n, one in enumerate(commands) if "ultracluster deploy" in one)


@pytest.mark.parametrize(
    ("nodes", "cidrs"),
    [
        ("10.1.0.0/16", ("10.2.0.0/16", "10.3.0.0/16")),
        ("100.64.0.0/17", ("10.1.0.0/16", "100.65.0.0/17")),
    ],
)
def test_both_blocks_of_a_vpc_move_to_free_ones(tmp_path: Path, nodes: str, cidrs: tuple[str, str]) -> None:
    text = (ROOT / "environments" / "dev.yaml").read_text()
    (file := tmp_path / "dev.yaml").write_text(
        text.replace("network:\n", f"network:\n  node_cidr: {nodes}\n")
    )
    loaded = load(file)
    second = plan_move(loaded, target_of("us-east-1", loaded.environment), today=TODAY).both.second
    assert (second.environment.network.cidr, second.environment.network.node_cidr) == cidrs


def test_ids_of_the_old_region_are_marked(tmp_path: Path) -> None:
    dev = (ROOT / "environments" / "dev.yaml").read_text()
    file = tmp_path / "dev.yaml"
    file.write_text(
        dev.replace("network:\n", "network:\n  vpc:\n    id: vpc-0a1b2c3d4e5f60718\n    cidr: 10.0.0.0/16\n")
        .replace("storage:\n", "storage:\n  key: {arn: 'arn:aws:kms:us-west-2:111122223333:key/abc'}\n")
        .replace("count: 2", "count: 2\n    image: ami-0a1b2c3d4e5f60718")
    )
    loaded = load(file)
    move = plan_move(loaded, target_of("us-east-1", loaded.environment), today=TODAY)
    second = move.both.second.environment
    assert second.network.vpc and second.network.vpc.id == "vpc-0123456789abcdef0"
    assert second.storage.key and second.storage.key.arn.startswith("arn:aws:kms:us-east-1:")
    assert {"what ami-0a1b2c3d4e5f60718 is in us-west-2", "what vpc-0a1b2c3d4e5f60718 is in us-west-2"} <= {
        blank.blank for blank in move.blanks
    }
    assert becomes(move)["image ami-0a1b2c3d4e5f60718"] == "copied"
    here = plan_move(loaded, target_of("usw2-az1", loaded.environment), today=TODAY)
    assert (
        becomes(here)["image ami-0a1b2c3d4e5f60718"] == becomes(here)["keys made elsewhere"] == "carries over"
    )


def test_to_capacity_that_is_bought() -> None:
    loaded = load(ROOT / "environments" / "pcs-p6-b200.yaml")
    target = Target(region="us-east-2", zone_id="use2-az1", bought=BLOCK)
    move = plan_move(loaded, target, today=TODAY)
    capacity: Any = move.both.second.environment.node_groups["train"].capacity
    assert (capacity.id, capacity.starts) == (BLOCK.id, "2027-01-01T11:30:00Z")
    assert not move.problems and not [blank for blank in move.blanks if "capacity" in blank.path]
    small = Target(region="us-east-2", zone_id="use2-az1", bought=Bought(**{**_fields(BLOCK), "count": 2}))
    assert plan_move(loaded, small, today=TODAY).problems == (
        "cr-0fedcba9876543210 holds 2 x p6-b200.48xlarge, and train has 4",
    )


def _fields(bought: Bought) -> dict[str, Any]:
    return {name: getattr(bought, name) for name in Bought.__slots__}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"zone_id": "use2-az2"}, "nothing has to move"),
        ({"instance_type": "p5.48xlarge"}, "no group takes it"),
    ],
)
def test_capacity_that_no_move_leads_to(changed: dict[str, str], says: str) -> None:
    loaded = load(ROOT / "environments" / "pcs-p6-b200.yaml")
    bought = Bought(**{**_fields(BLOCK), **changed})
    target = checked(Target(region="us-east-2", zone_id=bought.zone_id, bought=bought), loaded.environment)
    with pytest.raises(MoveError, match=says):
        plan_move(loaded, target, today=TODAY)


@pytest.mark.parametrize(
    ("to", "says"),
    [
        ("use2-az2", "already; other zones of us-east-2: use2-az1"),
        ("us-east-2", "already"),
        ("use2-az9", "has no zone"),
        ("us-east-2a", "write its id"),
        ("cn-north-1", "another partition"),
        ("us-west-22", "did you mean us-west-2"),
        ("", "neither a zone id nor a Region"),
    ],
)
def test_there_is_no_such_move(to: str, says: str) -> None:
    with pytest.raises(MoveError, match=says):
        moved("prod", to)


def test_names_of_capacity() -> None:
    plan = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/q1"
    assert capacity_named("use2-az1") is None
    assert capacity_named("capacity:cr-0123456789abcdef0") == ("cr-0123456789abcdef0", "")
    assert capacity_named(f"capacity:{plan}") == (plan, "us-west-2")
    with pytest.raises(MoveError, match="names no capacity"):
        capacity_named("capacity:cbo-1")
    assert capacity_named("capacity:us-west-2/cr-0123456789abcdef0") == ("cr-0123456789abcdef0", "us-west-2")
    with pytest.raises(MoveError, match="`us-west-9` is no Region; did you mean us-west-"):
        capacity_named("capacity:us-west-9/cr-0123456789abcdef0")


def test_a_second_environment_has_a_name_of_its_own() -> None:
    assert moved("prod", "use2-az1", name="other").both.second.name == "other"
    with pytest.raises(MoveError, match="called like the first"):
        moved("prod", "use2-az1", name="prod")
    long = load(ROOT / "environments" / "parallelcluster-gb200.yaml")
    assert len(plan_move(long, target_of("use1-az6", long.environment), today=TODAY).both.second.name) <= 30


@pytest.mark.parametrize(
    ("hours", "text"), [(0.001, "1 minute"), (0.5, "30 minutes"), (5.21, "5.2 hours"), (72, "3.0 days")]
)
def test_hours_in_words(hours: float, text: str) -> None:
    assert hours_text(hours) == text


@pytest.mark.parametrize("away", [False, True], ids=["zone", "region"])
@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_an_environment_that_extends_another_moves(file: Path, away: bool, tmp_path: Path) -> None:
    """The second file says itself what differs, and each value that stands in says for what."""
    for one in SHIPPED:
        shutil.copy(one, tmp_path / one.name)
    shutil.copytree(ROOT / "environments" / "announced", tmp_path / "announced")
    over = tmp_path / "over.yaml"
    over.write_text(f"extends: {file.name}\nname: over\n# a comment of mine\nprotect: false\n")
    loaded = load(over)
    zones = {
        "us-east-2": ["use2-az1", "use2-az3"],
        "us-west-2": ["usw2-az4", "usw2-az1"],
        "us-east-1": ["use1-az6"],
    }
    here = loaded.environment
    zone = next(one for one in zones[here.region] if one != here.network.zone_id)
    move = plan_move(
        loaded, target_of(elsewhere(file.stem) if away else zone, here), name="second", today=TODAY
    )
    place = tmp_path / "second.yaml"
    place.write_text(move.text)
    second = load(place)
    assert second.environment.model_dump() == move.both.second.environment.model_dump()
    assert "# a comment of mine" in move.text
    data = YAML().load(move.text)
    for blank in move.blanks:
        *parents, last = blank.path
        held = data
        for part in parents:
            held = held[part]
        (line,) = (
            [one for number, one in enumerate(move.text.splitlines()) if number == held.lc.value(last)[0]]
            if isinstance(held, CommentedMap)
            else [""]
        )
        assert f"stands in for {blank.blank}" in line, (blank, line)


def folder(tmp_path: Path, name: str = "here") -> Path:
    """A folder with prod, its own step and prices, and what it extends."""
    here = tmp_path / name
    (here / "steps").mkdir(parents=True)
    (here / "steps" / "50-mine.sh").write_text("#!/bin/bash\nmine_detect() { :; }\n")
    (here / "prices.csv").write_text("key,region,usd,unit,date,source\n")
    for one in ("prod", "dev"):
        shutil.copy(ROOT / "environments" / f"{one}.yaml", here / f"{one}.yaml")
    (here / "over.yaml").write_text("extends: prod.yaml\nname: over\n")
    return here


def test_paths_are_right_from_another_folder(tmp_path: Path) -> None:
    """Also what a base names, and the prices that lie beside the file without being named."""
    here, there = folder(tmp_path), tmp_path / "there" / "deep" / "second.yaml"
    prod = here / "prod.yaml"
    prod.write_text(prod.read_text() + "lifecycle_steps: [steps/50-mine.sh]\n")
    loaded = load(prod)
    move = plan_move(loaded, target_of("use2-az1", loaded.environment), file=there, today=TODAY)
    there.parent.mkdir(parents=True)
    there.write_text(move.text)
    second = load(there).environment
    assert second.lifecycle_steps == ("../../here/steps/50-mine.sh",)
    assert prices_of(second).resolve() == (here / "prices.csv").resolve()
    assert f"--write {there}" in move.steps[0].commands[0]


def test_a_file_that_extends_another_is_not_written_where_it_could_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = folder(tmp_path), tmp_path / "there" / "second.yaml"
    loaded = load(here / "over.yaml")
    target = target_of("use2-az1", loaded.environment)
    with pytest.raises(MoveError, match=r"lies outside .*write it into .*here.*ULTRACLUSTER_EXTENDS_FROM"):
        plan_move(loaded, target, file=there, today=TODAY)
    monkeypatch.setenv("ULTRACLUSTER_EXTENDS_FROM", str(here))
    move = plan_move(loaded, target, file=there, today=TODAY)
    there.parent.mkdir()
    there.write_text(move.text)
    second = load(there).environment
    assert second.name == "over-use2-az1" and prices_of(second).resolve() == (here / "prices.csv").resolve()
    # an overlay in a folder below environments/ may extend those above it
    below = tmp_path / "environments"
    shutil.move(here, below)
    monkeypatch.delenv("ULTRACLUSTER_EXTENDS_FROM")
    again = load(below / "over.yaml")
    inner = below / "teams" / "second.yaml"
    inner.parent.mkdir()
    inner.write_text(plan_move(again, target, file=inner, today=TODAY).text)
    assert load(inner).environment.network.zone_id == "use2-az1"


def test_what_a_base_names_is_named_by_the_second_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = folder(tmp_path), tmp_path / "there" / "second.yaml"
    prod = here / "prod.yaml"
    prod.write_text(prod.read_text() + "lifecycle_steps: [steps/50-mine.sh]\n")
    monkeypatch.setenv("ULTRACLUSTER_EXTENDS_FROM", str(here))
    loaded = load(here / "over.yaml")
    move = plan_move(loaded, target_of("use2-az1", loaded.environment), file=there, today=TODAY)
    there.parent.mkdir()
    there.write_text(move.text)
    second = load(there).environment
    assert second.lifecycle_steps == move.both.second.environment.lifecycle_steps
    assert (there.parent / second.lifecycle_steps[0]).is_file()


def test_capacity_that_is_held_is_not_bought_again() -> None:
    loaded = load(ROOT / "environments" / "pcs-p6-b200.yaml")
    target = Target(region="us-east-2", zone_id="use2-az1", bought=BLOCK)
    move = plan_move(loaded, target, today=TODAY, name="second")
    commands = [command for step in move.steps for command in step.commands]
    assert not [command for command in commands if "capacity" in command and "move" not in command]
    assert (
        f"ultracluster move {loaded.environment.asked_as} --to capacity:{BLOCK.id} --name second"
        in commands[0]
    )
    deploy = next(step for step in move.steps if step.what.startswith("Deploy"))
    assert "cr-0fedcba9876543210 begins on 2027-01-01 11:30 UTC" in deploy.why
    (bought,) = [part for part in move.parts if part.becomes == "bought again"]
    assert "the Capacity Block cr-0fedcba9876543210 takes its place" in bought.how
    zone = moved("pcs-p6-b200", "use2-az1")
    assert "one in the new zone takes its place" in next(
        part.how for part in zone.parts if part.becomes == "bought again"
    )
    assert "one in the new zone takes its place" in next(
        part.how for part in moved("prod", "use2-az1").parts if part.becomes == "bought again"
    )


def test_several_groups_are_bought_for_one_by_one(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    text = (ROOT / "environments" / "pcs-p6-b200.yaml").read_text()
    start = text.index("  train:\n    role: compute")
    group = text[start : text.index("\nsoftware:", start) + 1]
    second = group.replace("  train:\n", "  more:\n", 1).replace("abcdef0", "abcdef1")
    file.write_text(text.replace(group, f"{group}{second}"))
    loaded = load(file)
    move = plan_move(loaded, target_of("use2-az1", loaded.environment), today=TODAY)
    commands = [command for step in move.steps for command in step.commands]
    assert [command.rpartition("--group ")[2] for command in commands if "capacity buy" in command] == [
        "train",
        "more",
    ]
    target = Target(region="us-east-2", zone_id="use2-az1", bought=BLOCK)
    commands = [command for step in plan_move(loaded, target, today=TODAY).steps for command in step.commands]
    assert [command for command in commands if "capacity buy" in command] and not [
        command for command in commands if "--group" in command
    ]


def test_the_zone_of_capacity_that_is_held_is_not_doubted() -> None:
    """AWS has said that the nodes are there, whatever the catalogue has seen."""
    loaded = load(ROOT / "environments" / "prod.yaml")
    arn = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/q2"
    plan = {"kind": "training-plan", "id": arn, "region": "us-west-2", "zone_id": "usw2-az1", "count": 16}
    bought = Bought(**{**_fields(BLOCK), **plan, "instance_type": "p5en.48xlarge"})
    move = plan_move(loaded, Target(region="us-west-2", zone_id="usw2-az1", bought=bought), today=TODAY)
    assert [finding.code for finding in move.findings if finding.code == "GRP026"] and not unsold(move)


@pytest.mark.parametrize("name", [file.stem for file in SHIPPED])
def test_the_plan_fits_on_eighty_columns_and_commands_can_be_copied(name: str) -> None:
    move = moved(name, elsewhere(name))
    lines = as_text(move, 80).splitlines()
    long = [line for line in lines if len(line) > 80 and not line.lstrip().startswith("$ ")]
    assert not [line for line in long if len(max(line.split(), key=len)) < 60], long
    for step in move.steps:
        for command in step.commands:
            assert f"      $ {command}" in lines


def test_a_lock_is_made_for_the_second_environment(tmp_path: Path) -> None:
    here = folder(tmp_path)
    loaded = load(here / "prod.yaml")
    target = target_of("use2-az1", loaded.environment)
    assert not [
        become for become in becomes(plan_move(loaded, target, today=TODAY)) if become.startswith("lock ")
    ]
    (here / "prod.lock").write_text("{}")
    move = plan_move(loaded, target, today=TODAY)
    assert becomes(move)["lock prod.lock"] == "made again"
    assert [command for command in move.steps[0].commands if "ultracluster software lock --for " in command]
