"""Settings of slurm.conf: what each cluster gets, and that yours always win."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_schema import faults
from hypothesis import given, settings
from hypothesis import strategies as st
from rules_support import changed, environment_data, loaded

from ultracluster.catalog.parallelcluster import parallelcluster
from ultracluster.catalog.pcs import pcs_settings
from ultracluster.catalog.slurm import hyperpod_slurm, hyperpod_slurm_versions, slurm_settings, words
from ultracluster.catalog.slurm_refusals import slurm_defaults
from ultracluster.model import Cluster, resolve
from ultracluster.model.cluster_json import script_configurations
from ultracluster.model.slurm_reading import Given, refusals
from ultracluster.slurm.configuration import SlurmConfiguration, slurm_configuration

pytestmark = pytest.mark.slow

SLURM = ("dev", "prod", "trainium", "parallelcluster-p5", "parallelcluster-gb200", "pcs-p6-b200")
TEAMS = {"teams": {"research": {"users": ["alice"], "quota": 8}}}
RACK = {"node_groups.train": {
    "role": "compute", "instance_type": "p6e-gb200.36xlarge", "count": 18, "partition": "train",
    "image": "ami-0123456789abcdef0", "capacity": {"kind": "capacity-block", "id": "cr-0123456789abcdef0"},
}}  # fmt: skip


def cluster(base: str, changes: dict[str, Any] | None = None) -> Cluster:
    return resolve(loaded(changed(environment_data(base), changes or {})).environment)


def made(base: str, changes: dict[str, Any] | None = None, **more: Any) -> SlurmConfiguration:
    return slurm_configuration(cluster(base, changes), **more)


def value(of: SlurmConfiguration, name: str) -> str | None:
    setting = of.get(name)
    return setting.value if setting else None


def denied(of: Cluster) -> set[str]:
    """Names, in lower case, that the service refuses or keeps to itself."""
    match of.traits.kind:
        case "hyperpod-slurm":
            return {name.lower() for name in hyperpod_slurm().denied}
        case "parallelcluster":
            tables = parallelcluster().slurm_settings
            database = of.environment.storage.accounting_database is not None
            both = (*tables["cluster"], *(tables["accounting"] if database else ()))
            return {name.lower() for name in both}
        case _:
            return set()


@pytest.mark.parametrize("base", SLURM)
@pytest.mark.parametrize("changes", [{}, TEAMS])
@pytest.mark.parametrize("checks", [False, True])
def test_nothing_is_handed_over_that_the_service_refuses(
    base: str, changes: dict[str, Any], checks: bool
) -> None:
    of = cluster(base, changes)
    given_over = slurm_configuration(of, checks=checks).handed_over

    assert not denied(of) & {name.lower() for name in given_over}
    if of.traits.kind == "pcs":
        taken = pcs_settings("cluster")
        assert all(name in taken for name in given_over)
        late = [taken.since_of(name, one.value)[1] for name, one in given_over.items()]
        assert all(since <= "25.11" for since in late)
    assert all(one.value and one.why and one.source for one in given_over.values())


@pytest.mark.parametrize(
    ("base", "changes", "expected"),
    [
        ("dev", {}, "Alloc,Contain,DeferBatch"),
        ("pcs-p6-b200", {}, "Alloc,Contain,DeferBatch"),
        ("parallelcluster-gb200", {}, "Alloc,NoHold"),
        ("pcs-p6-b200", RACK, "Alloc,NoHold"),
        # the domain is someone else's to set up
        ("pcs-p6-b200", {**RACK, "orchestrator.imex": False}, None),
        ("parallelcluster-gb200", {"orchestrator.imex": False}, None),
    ],
)
def test_prolog_flags_follow_the_fabric(base: str, changes: dict[str, Any], expected: str | None) -> None:
    flags = value(made(base, changes), "PrologFlags")

    assert flags == expected
    assert not {"NoHold", "Contain"} <= set(words(flags or ""))  # slurmctld does not start with both


@pytest.mark.parametrize(
    ("base", "changes", "words_of_it"),
    [
        ("dev", {}, {"bf_window=10080", "bf_resolution=300", "permit_job_expansion"}),
        ("parallelcluster-p5", {}, {"bf_window=10080", "nohold_on_prolog_fail", "requeue_delay=30"}),
        (
            "pcs-p6-b200",
            {"orchestrator.partitions.train.slurm_settings.MaxTime": "2-00:00:00"},
            {"bf_continue", "bf_window=2880"},
        ),
        ("pcs-p6-b200", {"orchestrator.partitions.train.slurm_settings.MaxTime": "90"}, {"bf_window=1440"}),
        ("prod", {"node_groups.train.count": 500}, {"bf_max_job_test=2000"}),
    ],
)
def test_backfill_looks_as_far_as_jobs_may_run(
    base: str, changes: dict[str, Any], words_of_it: set[str]
) -> None:
    given_words = set(words(value(made(base, changes), "SchedulerParameters") or ""))

    assert words_of_it <= given_words
    if "bf_window=2880" in words_of_it:
        assert not any(word.startswith("bf_resolution") for word in given_words)


def test_teams_bring_limits_and_preemption_and_their_absence_brings_none() -> None:
    names = ("AccountingStorageEnforce", "PreemptType", "PreemptMode", "PreemptExemptTime")
    for base in ("prod", "parallelcluster-p5", "pcs-p6-b200"):
        without, having = made(base), made(base, TEAMS)
        assert [value(without, name) for name in names] == [None] * 4
        assert [value(having, name) for name in names] == [
            "associations,limits,qos,safe", "preempt/qos", "REQUEUE", "00:30:00",
        ]  # fmt: skip


def test_without_accounting_nothing_asks_for_it() -> None:
    for base, changes in (
        ("parallelcluster-gb200", {}),
        ("pcs-p6-b200", {"orchestrator.accounting": {"mode": "none"}}),
    ):
        assert not [one.name for one in made(base, changes).handed_over.values() if one.needs_accounting]
    assert [line for line in made("prod").lines(accounting=False) if "Priority" in line] == []


def test_checks_name_their_programs_where_they_may() -> None:
    programs = ("Prolog", "Epilog", "HealthCheckProgram")
    off = {"health": {"mode": "off"}}
    assert [value(made("pcs-p6-b200", off), name) for name in programs] == [None, None, None]
    # nodes that run lack the programs, and slurmd drains a node without its prolog: a dry run drains nothing
    assert [value(made("pcs-p6-b200"), name) for name in programs] == [
        None, None, "/opt/ultracluster/health/program",
    ]  # fmt: skip
    enforced = {"health": {"mode": "enforce"}}
    assert [value(made("pcs-p6-b200", enforced), name) for name in programs] == [
        "/opt/ultracluster/prolog", "/opt/ultracluster/epilog", "/opt/ultracluster/health/program",
    ]  # fmt: skip
    # sent to the nodes with slurm.conf, since nodes take jobs before our scripts have finished there
    assert [value(made("prod", checks=True), name) for name in programs[:2]] == [
        "ultracluster_prolog", "ultracluster_epilog",
    ]  # fmt: skip
    given_over = made("parallelcluster-p5", checks=True).handed_over
    assert [name for name in programs if name in given_over] == ["HealthCheckProgram"]


def test_metrics_come_with_25_11_and_not_past_private_data() -> None:
    assert value(made("pcs-p6-b200"), "MetricsType") == "metrics/openmetrics"
    assert value(made("pcs-p6-b200"), "CommunicationParameters") == "enable_http"
    older = made("pcs-p6-b200", {"orchestrator.slurm_version": "25.05"})
    assert [value(older, name) for name in ("MetricsType", "CommunicationParameters")] == [None, None]
    private = made("pcs-p6-b200", {"orchestrator.slurm_settings": {"PrivateData": "jobs"}})
    assert [value(private, name) for name in ("MetricsType", "CommunicationParameters")] == [None, None]
    # HyperPod's nodes decide by the Slurm that their image has
    assert "MetricsType=metrics/openmetrics" not in made("prod").lines()
    assert "MetricsType=metrics/openmetrics" in made("prod").lines("25.11")


def test_unkillable_steps_wait_for_five_messages() -> None:
    assert (
        value(made("prod", {"orchestrator.slurm_settings": {"messagetimeout": 100}}), "UnkillableStepTimeout")
        == "500"
    )
    assert value(made("parallelcluster-gb200"), "UnkillableStepTimeout") == "1200"
    assert value(made("parallelcluster-gb200"), "MessageTimeout") == "240"


def test_what_yours_takes_away_is_said() -> None:
    of = made("prod", {**TEAMS, "orchestrator.slurm_settings": {
        "schedulerparameters": "bf_continue,bf_window=60", "KillWait": 90, "PreemptType": "preempt/none",
    }})  # fmt: skip
    notes = {name.lower(): one.note for name, one in of.settings.items() if one.origin == "yours"}

    assert notes["schedulerparameters"].startswith("without bf_resolution=300, nohold_on_prolog_fail")
    assert notes["killwait"] == "instead of 60"
    assert notes["preempttype"].endswith("PreemptExemptTime, PreemptMode, PreemptParameters left out")
    assert of.get("PreemptMode") is None


@pytest.mark.parametrize("mode", ["OFF", "off", "GANG"])
def test_switching_preemption_off_takes_all_of_it(mode: str) -> None:
    of = made("prod", {**TEAMS, "orchestrator.slurm_settings": {"PreemptMode": mode}})

    assert [name for name in of.settings if name.startswith("Preempt")] == ["PreemptMode"]


def test_classic_hyperpod_respects_its_strategy() -> None:
    for strategy, way in (("merge", "file"), ("managed", "none"), ("overwrite", "none")):
        changes = {"orchestrator": {
            "kind": "hyperpod-slurm", "provisioning": "classic", "slurm_config_strategy": strategy,
        }}  # fmt: skip
        of = made("dev", changes)
        assert (of.way, bool(of.handed_over), bool(of.why_not)) == (way, way == "file", way == "none")
        assert (of.for_controller is None) == (way == "none")


@pytest.mark.parametrize("base", ["dev", "prod", "trainium"])
@pytest.mark.parametrize("yours", [{}, {"KillWait": 90, "SlurmctldDebug": '"debug 2"'}])
def test_a_controller_of_hyperpod_is_told_and_no_other_node(base: str, yours: dict[str, Any]) -> None:
    of = cluster(base, {**TEAMS, "orchestrator.slurm_settings": yours})
    told = script_configurations(of, slurm=slurm_configuration(of).for_controller).by_group

    assert {name for name, one in told.items() if "slurm" in one} == {"controller"}
    assert faults(told["controller"]) == []


def test_kubernetes_has_none() -> None:
    with pytest.raises(ValueError, match="has no Slurm"):
        made("eks-p5en")


OURS = sorted({row.name for row in slurm_settings()})
NAMES = st.sampled_from(OURS).flatmap(lambda name: st.sampled_from([name, name.lower(), name.upper()]))
VALUES = st.one_of(
    st.integers(0, 10_000), st.from_regex(r"[a-z/_]{1,12}(,[a-z_]{1,8}=[0-9]{1,3}){0,2}", fullmatch=True)
)


@settings(max_examples=150, deadline=None)
@given(
    base=st.sampled_from(SLURM),
    yours=st.dictionaries(NAMES, VALUES, max_size=4).filter(
        lambda one: len({name.lower() for name in one}) == len(one)
    ),
    teams=st.booleans(),
    checks=st.booleans(),
)
def test_yours_always_win(base: str, yours: dict[str, Any], teams: bool, checks: bool) -> None:
    of = made(base, {**(TEAMS if teams else {}), "orchestrator.slurm_settings": yours}, checks=checks)

    for name, given_value in yours.items():
        setting = of.get(name)
        assert setting and (setting.name, setting.value, setting.origin) == (name, str(given_value), "yours")
        assert of.handed_over[name].value == str(given_value)
    lower = [name.lower() for name in of.settings]
    assert len(lower) == len(set(lower))


@pytest.mark.parametrize("base", SLURM)
@pytest.mark.parametrize("changes", [{}, TEAMS])
@pytest.mark.parametrize("checks", [False, True])
def test_slurm_of_each_release_starts_with_what_is_ours(
    base: str, changes: dict[str, Any], checks: bool
) -> None:
    whole = made(base, changes, checks=checks)
    releases = hyperpod_slurm_versions() if whole.way == "file" else (whole.version,)
    for release in releases:
        lines = dict(line.split("=", 1) for line in whole.lines(release, service=True))
        beside: Given = {name.lower(): value for name, value in slurm_defaults().items()}
        assert not list(refusals("slurm.conf", lines, release, beside)), release
        for name, one in whole.cgroup.items():
            assert not list(refusals("cgroup.conf", {name: one.value}, release))
        for name, settings_of in whole.partitions.items():
            assert not list(refusals("PartitionName", settings_of, release)), name
