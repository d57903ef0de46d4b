"""Environments of a folder beside those of an account."""

from __future__ import annotations

from threading import Event

import pytest
from hyperpod_service import refusal
from live_environment import CLUSTER, DEV, Live

from ultracluster.account.status.overview import Filed, Listed, overview

OURS = Filed(name="dev", file=str(DEV), cluster=CLUSTER)
BROKEN = Filed(name="bad", file="environments/bad.yaml", cluster=None, why="is no environment (no name)")


def look(live: Live, *files: Filed) -> list[Listed]:
    return overview(files or (OURS,), lambda region: live.account, budget=60.0)


def test_a_deployed_environment() -> None:
    (row,) = look(Live())

    assert (row.name, row.state, row.account) == ("dev", "deployed", "111122223333")
    assert (row.stacks, row.stacks_wanted, row.running, row.nodes_wanted) == (6, 6, 4, 4)
    assert row.sources and not row.why


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("UPDATE_IN_PROGRESS", "at work"),
        ("ROLLBACK_COMPLETE", "failed"),
        ("DELETE_FAILED", "failed"),
        ("UPDATE_ROLLBACK_COMPLETE", "deployed"),
    ],
)
def test_states_of_stacks(status: str, state: str) -> None:
    live = Live()
    live.stacks["dev-cluster"] = status

    assert look(live)[0].state == state


def test_half_an_environment_and_none() -> None:
    live = Live()
    del live.stacks["dev-cluster"]
    assert look(live)[0].state == "in part"

    live.stacks = {}
    (row,) = look(live)
    assert (row.state, row.stacks, row.running) == ("not deployed", 0, None)


def test_a_file_that_is_none_and_an_environment_without_a_file() -> None:
    live = Live()
    live.stacks["old-cluster"] = "CREATE_COMPLETE"
    live.tags["old-cluster"] = "old"

    ours, bad, stray = look(live, OURS, BROKEN)

    assert ours.state == "deployed" and (bad.state, bad.why) == ("unknown", BROKEN.why)
    assert (stray.name, stray.file, stray.stacks) == ("old", None, 1) and "no file" in stray.why


def test_an_environment_of_another_account_is_not_asked() -> None:
    other = CLUSTER.environment.model_copy(update={"account": "444455556666"})
    cluster = type(CLUSTER)(**{**_fields(), "environment": other})

    (row,) = look(Live(), Filed(name="dev", file="x", cluster=cluster))

    assert (row.state, row.account, row.running) == ("unknown", "444455556666", None)
    assert "the credentials belong to 111122223333" in row.why


def _fields() -> dict[str, object]:
    return {name: getattr(CLUSTER, name) for name in CLUSTER.__dataclass_fields__ if name[0] != "_"}


def test_who_may_see_only_the_stacks_of_an_environment_sees_those() -> None:
    live = Live()
    live.unlisted = refusal("AccessDenied", "no")
    live.stacks["old-cluster"] = "CREATE_COMPLETE"

    (row,) = look(live)

    assert (row.state, row.stacks, row.running) == ("deployed", 6, 4)


def test_what_cannot_be_asked_is_unknown() -> None:
    live = Live()
    live.refused["DescribeStacks"] = refusal("AccessDenied", "no")
    (row,) = look(live)
    assert row.state == "unknown" and row.stacks is None and "access denied" in row.why

    live = Live()
    live.service.raising["ListClusterNodes"] = refusal("AccessDeniedException", "no")
    (row,) = look(live)
    assert (row.state, row.running) == ("deployed", None) and "access denied" in row.why


def test_a_slow_region_is_named() -> None:
    never = Event()
    times = iter([0.0])

    def slow(region: str) -> object:
        never.wait(60)
        raise AssertionError(region)

    (row,) = overview([OURS], slow, clock=lambda: next(times, 11.0))  # pyright: ignore[reportArgumentType]
    never.set()

    assert row.state == "unknown" and "no answer within 10 seconds" in row.why
