"""What is done about a node's fault, as a table; and properties that hold for any cluster."""

from __future__ import annotations

from typing import Any

import pytest
from depth import examples
from health_modules import health_module
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NOW = 1_800_000_000
OLD, NEW = "aaaaaaaa", "bbbbbbbb"


known, decide = health_module("known"), health_module("decide")


def node(name: str = "n1", states: str = "IDLE", reason: str = "", comment: str = "", at: int = 0) -> Any:
    return known.Node(
        name=name, states=frozenset(states.split("+")), reason=reason, comment=comment, reason_at=at
    )


def finding(
    result: str = "critical",
    action: str = "replace",
    when_idle: str = "",
    check: str = "xid",
    **more: Any,
) -> Any:
    return known.Finding(
        check=check, result=result, code="xid-79", action=action, when_idle=when_idle, job="7", **more
    )


def policy(**changes: Any) -> Any:
    return known.Policy(**{"mode": "enforce", "orchestrator": "pcs", **changes})


def others(count: int) -> list[Any]:
    return [node(f"o{number}") for number in range(count)]


def answered(found: Any, me: Any, rules: Any, beside: list[Any] | None = None) -> Any:
    nodes = [me, *(others(19) if beside is None else beside)]
    return decide.answer(found, me, nodes, rules, boot=OLD, now=NOW)


def followed(me: Any, rules: Any, **facts: Any) -> Any:
    usual: dict[str, Any] = {"jobs": [], "boot": OLD, "now": NOW, "passes": 0, "warned": None}
    return decide.follow(me, rules, **{**usual, **facts})


def held(
    action: str, *, by: str = "xid:xid-79", boot: str = OLD, states: str = "IDLE+DRAIN", **memory: Any
) -> Any:
    comment = known.Memory(boot=boot, action=action, by=by, **{"drained": (NOW - 600,), **memory}).text
    return node(states=states, reason=f"ultracluster:{by}", comment=comment, at=NOW - 600)


OURS = "ultracluster:xid:xid-79"


@pytest.mark.parametrize(
    ("found", "changes", "steps"),
    [
        (finding("ok"), {}, ()),
        (finding("unknown"), {}, ()),
        (finding("warn", "none"), {}, ()),
        (finding("warn", "reboot"), {}, ()),  # a warning ends nothing, unless it says `when_idle`
        (finding("critical", "replace"), {"mode": "off"}, ()),
        (finding("critical", "none"), {}, (("drain", OURS),)),
        (finding("critical", "nonsense"), {}, (("drain", OURS),)),
        (finding("critical", "replace"), {}, (("drain", OURS),)),
        (finding("critical", "reset"), {}, (("drain", OURS),)),
        (finding("critical", "requeue"), {}, (("requeue", "7"),)),
        (finding("critical", "requeue", "reset"), {}, (("requeue", "7"), ("drain", OURS))),
        (finding("warn", "requeue", "reset"), {}, (("requeue", "7"), ("drain", OURS))),
        (finding("warn", "requeue"), {}, (("requeue", "7"),)),
        (finding("warn", "none", "reset"), {}, (("drain", OURS),)),
        (finding("unknown", "none", "reset"), {}, ()),
        # ParallelCluster terminates what is drained and idle, and leaves alone what Slurm reboots.
        (finding("critical", "reboot"), {"orchestrator": "parallelcluster"}, (("drain", OURS),)),
        (
            finding("critical", "reboot"),
            {"orchestrator": "parallelcluster", "slurm_reboots": True},
            (("reboot", OURS),),
        ),
        (
            finding("critical", "replace"),
            {"orchestrator": "parallelcluster", "slurm_reboots": True},
            (("drain", OURS),),
        ),
    ],
)
def test_what_is_done_at_once(found: Any, changes: dict[str, Any], steps: tuple[Any, ...]) -> None:
    assert answered(found, node(), policy(**changes)).steps == steps


@pytest.mark.parametrize(
    ("me", "refused"),
    [
        (node(states="IDLE+DRAIN", reason="bad fan, ask Anna"), "foreign"),
        (node(states="MIXED+DRAIN", reason=""), "foreign"),
        (node(states="DOWN", reason="Not responding"), "foreign"),
        (node(states="IDLE+FAIL", reason="Action:Reboot"), "foreign"),
        (node(states="IDLE", reason="Action:Replace"), "foreign"),
        (node(states="ALLOCATED+DRAIN+REBOOT_REQUESTED", reason="kernel update"), "foreign"),
        (node(states="IDLE+CLOUD+POWERING_DOWN"), "foreign"),
        (held("replace"), "ours"),
        # a reason that stayed behind on a node that works is nobody's hold (Slurm 24.11 keeps it)
        (node(states="IDLE", reason="Prolog error"), ""),
        (node(states="IDLE", reason="ultracluster:efa:down"), ""),
        (node(states="IDLE", comment="rack 7"), ""),
    ],
)
def test_what_is_someone_elses_is_left_alone(me: Any, refused: str) -> None:
    plan = answered(finding(), me, policy())
    assert (plan.refused, bool(plan.steps)) == (refused, not refused)


def test_a_foreign_comment_stays_and_ours_remembers() -> None:
    assert answered(finding(), node(comment="rack 7"), policy()).memory is None
    memory = answered(finding(), node(), policy()).memory
    assert known.memory_of(memory.text) == memory
    assert (memory.boot, memory.action, memory.by, memory.drained) == (OLD, "replace", "xid:xid-79", (NOW,))


def test_a_worse_fault_of_a_drained_node_changes_only_what_follows() -> None:
    plan = answered(finding(), held("reboot"), policy())
    assert plan.steps == (("remember", ""),)
    assert plan.memory.action == "replace"
    assert plan.memory.drained == (NOW - 600,)


@pytest.mark.parametrize(("drains", "action"), [(0, "reboot"), (1, "reboot"), (2, "replace")])
def test_a_node_that_comes_back_too_often_is_replaced(drains: int, action: str) -> None:
    memory = known.Memory(drained=tuple(NOW - 3700 - number for number in range(drains)))
    plan = answered(finding(action="reboot"), node(comment=memory.text), policy())
    assert plan.memory.action == action
    assert answered(finding(action="replace"), node(), policy(replace=False)).memory.action == "hold"


HYPERPOD = {"orchestrator": "hyperpod-slurm", "recovery": True}


@pytest.mark.parametrize(
    ("me", "changes", "facts", "steps"),
    [
        # jobs first: told, given time, queued again
        (held("replace"), {}, {"jobs": ["7"]}, (("warn", ""),)),
        (held("replace"), {}, {"jobs": ["7"], "warned": False}, ()),
        (held("replace"), {}, {"jobs": ["7"], "warned": True}, (("requeue", ""),)),
        (held("drain"), {}, {"jobs": ["7"]}, ()),
        (held("reboot-idle"), {}, {"jobs": ["7"], "warned": True}, ()),
        (held("replace", boot=NEW), {}, {"jobs": ["7"]}, ()),  # it has been replaced already
        # then the machine, by who can
        (held("replace"), HYPERPOD, {}, (("fail", "Action:Replace"),)),
        (held("reboot"), HYPERPOD, {}, (("fail", "Action:Reboot"),)),
        (held("reboot-idle"), HYPERPOD, {}, (("fail", "Action:Reboot"),)),
        (held("replace"), {"orchestrator": "hyperpod-slurm"}, {}, ()),
        (held("replace"), {"orchestrator": "parallelcluster"}, {}, ()),
        (held("reboot"), {"orchestrator": "parallelcluster", "slurm_reboots": True}, {}, (("reboot", OURS),)),
        (held("replace"), {}, {}, (("power-down", OURS),)),
        (held("reboot"), {}, {}, (("reboot-here", ""),)),
        (held("reboot"), {"slurm_reboots": True}, {}, (("reboot", OURS),)),
        (held("reboot"), {"orchestrator": "unknown"}, {}, ()),
        # and back: passed twice, rebooted where that was asked for, and not for ever
        (held("drain"), {}, {"passes": 1}, ()),
        (held("drain"), {}, {"passes": 2}, (("resume", ""),)),
        (held("drain", event=True), {}, {"passes": 2}, ()),
        (held("drain", event=True), {}, {"passes": 2, "boot": NEW}, (("resume", ""),)),
        (held("reboot"), {}, {"passes": 2, "boot": NEW}, (("resume", ""),)),
        (held("reboot"), {}, {"passes": 1, "boot": NEW}, ()),
        (held("reboot", resumed=(NOW - 9, NOW - 99)), {}, {"passes": 2, "boot": NEW}, (("remember", ""),)),
        (held("reboot", resumed=(NOW - 9, NOW - 99)), {"replace": False}, {"passes": 2, "boot": NEW}, ()),
        # no machine is replaced for a file system that came and went three times: all have it
        (held("drain", by="lustre:silent", resumed=(NOW - 9, NOW - 99)), {}, {"passes": 2}, ()),
        (held("drain", resumed=(NOW - 9, NOW - 90_000)), {}, {"passes": 2}, (("resume", ""),)),
        # never what is not ours, or on its way
        (node(states="IDLE+DRAIN", reason="bad fan"), {}, {"passes": 9}, ()),
        (node(states="IDLE+FAIL", reason="Action:Replace"), HYPERPOD, {"passes": 9}, ()),
        (node(states="IDLE", reason=OURS), {}, {"passes": 9}, ()),
        (held("reboot", states="IDLE+DRAIN+REBOOT_ISSUED"), {}, {"passes": 9, "boot": NEW}, ()),
        (held("replace", states="IDLE+DRAIN+POWERING_DOWN"), {}, {}, ()),
        # without memory (the comment is another's) a person resumes it
        (node(states="IDLE+DRAIN", reason=OURS, comment="rack 7"), {}, {"passes": 9, "boot": NEW}, ()),
        (node(states="IDLE+DRAIN", reason=OURS), {}, {"passes": 9, "boot": NEW}, ()),
    ],
)
def test_what_follows_a_drain(me: Any, changes: dict[str, Any], facts: dict[str, Any], steps: Any) -> None:
    assert followed(me, policy(**changes), **facts).steps == steps


def test_what_is_resumed_is_remembered() -> None:
    memory = followed(held("reboot"), policy(), passes=2, boot=NEW).memory
    assert (memory.resumed, memory.action) == ((NOW,), "")


@pytest.mark.parametrize(
    ("changes", "out", "refused"),
    [
        ({}, 1, ""),
        ({}, 2, "share"),
        ({"max_drained_percent": 20}, 3, ""),
        ({"max_drained_percent": 20}, 4, "share"),
        ({"max_drained_percent": 50, "max_drained_per_hour": 3}, 2, ""),
        ({"max_drained_percent": 50, "max_drained_per_hour": 3}, 3, "hour"),
    ],
)
def test_at_most_a_share_is_drained(changes: dict[str, Any], out: int, refused: str) -> None:
    beside = [*others(19 - out), *(node(f"d{number}", "IDLE+DRAIN", OURS, at=NOW) for number in range(out))]
    assert answered(finding(), node(), policy(**changes), beside).refused == refused


@pytest.mark.parametrize(
    ("beside", "refused"),
    [
        ([], ""),  # of the smallest cluster one node
        ([node("d1", "IDLE+DRAIN", OURS)], "share"),
        ([node("d1", "IDLE+FAIL", "Action:Replace")], "share"),
        ([node("d1", "IDLE+DRAIN", "bad fan")], ""),  # what others drain is not ours to count
        ([node("d1", "IDLE+CLOUD+POWERED_DOWN", OURS)], ""),
        # one that was replaced within the hour counts by its comment
        ([node("d1", "IDLE", comment=f"ultracluster drained={NOW - 60}")], "hour"),
        ([node("d1", "IDLE", comment=f"ultracluster drained={NOW - 3700}")], ""),
        ([node("d1", "IDLE+CLOUD+POWERED_DOWN", comment=f"ultracluster drained={NOW - 60}")], "hour"),
        # nodes that are not there make the share no larger
        (
            [node("d1", "IDLE+DRAIN", OURS), *(node(f"p{n}", "IDLE+CLOUD+POWERED_DOWN") for n in range(99))],
            "share",
        ),
    ],
)
def test_what_counts_as_drained(beside: list[Any], refused: str) -> None:
    assert answered(finding(), node(), policy(), beside).refused == refused


IDLING = known.Memory(boot=OLD, action="reboot-idle", by="xid:63", idled=(NOW - 60,)).text
WAITING = known.Memory(boot=OLD, action="reboot", by="xid:95", waiting=True).text


def taken(comment: str, count: int) -> list[Any]:
    return [node(f"t{number}", "MIXED+DRAIN", OURS, comment, NOW - 60) for number in range(count)]


@pytest.mark.parametrize(
    ("found", "beside", "refused"),
    [
        # four of forty wait for an idle moment: a lost GPU is drained all the same
        (finding(action="reboot"), [*taken(IDLING, 4), *others(35)], ""),
        # and they have a budget of their own
        (finding("warn", "none", "reset"), [*taken(IDLING, 3), *others(36)], ""),
        (finding("warn", "none", "reset"), [*taken(IDLING, 4), *others(35)], "share"),
        (finding("warn", "none", "reset"), [*taken(IDLING, 3), *taken(WAITING, 7), *others(29)], "share"),
        # of a small cluster a second node within the hour, if it is really broken
        (finding(fatal=True), [node("d1", comment=f"ultracluster drained={NOW - 60}")], ""),
        (finding(), [node("d1", comment=f"ultracluster drained={NOW - 60}")], "hour"),
        (
            finding(fatal=True),
            [node(f"d{n}", comment=f"ultracluster drained={NOW - 60}") for n in range(2)],
            "hour",
        ),
    ],
)
def test_budgets(found: Any, beside: list[Any], refused: str) -> None:
    plan = answered(found, node(), policy(), beside)
    assert plan.refused == refused


@pytest.mark.parametrize(
    ("fatal", "me", "closed", "steps", "waiting"),
    [
        (True, node(), 3, (("drain", OURS),), True),
        (True, node(), 5, (("last", ""),), False),
        (False, node(), 3, (), False),
        (True, node(comment="rack 7"), 3, (), False),  # who waits could not be remembered
        (True, node(comment="ultracluster weight=3"), 5, (), False),  # it is the last choice already
    ],
)
def test_beyond_the_share(fatal: bool, me: Any, closed: int, steps: Any, waiting: bool) -> None:
    """Of twenty nodes two may be out, and five closed."""
    beside = [*taken("", 2), *taken(WAITING, closed - 2), *others(19 - closed)]
    plan = answered(finding(action="reboot", fatal=fatal), me, policy(), beside)
    assert (plan.refused, plan.steps) == ("share", steps)
    assert bool(plan.memory and plan.memory.waiting) is waiting
    if waiting:
        assert plan.memory.drained == (), "it counts when it is its turn"


def test_what_waits_goes_on_when_the_share_has_room_and_does_nothing_before() -> None:
    me = node(states="MIXED+DRAIN", reason=OURS, comment=WAITING)
    assert followed(me, policy(), jobs=["7"], warned=True).refused == "share"
    assert followed(me, policy(), passes=9).refused == "share"
    full = [me, *taken("", 1)]
    assert decide.promote(me, full, policy(), NOW).refused == "share"
    plan = decide.promote(me, [me, *others(5)], policy(), NOW)
    assert plan.steps == (("remember", ""),)
    assert (plan.memory.waiting, plan.memory.action, plan.memory.drained) == (False, "reboot", (NOW,))
    # rebooted by someone meanwhile: its checks decide
    assert followed(me, policy(), boot=NEW, passes=2).steps == (("resume", ""),)


def test_a_node_that_was_the_last_choice_is_as_before_when_its_fault_is_over() -> None:
    me = node(comment="ultracluster weight=3")
    assert decide.preferred(me, fatal=True).steps == ()
    plan = decide.preferred(me, fatal=False)
    assert (plan.steps, plan.memory.weight) == ((("weight", "3"),), 0)
    back = followed(held("reboot", weight=3), policy(), boot=NEW, passes=2)
    assert back.steps == (("resume", ""), ("weight", "3"))


@pytest.mark.parametrize(
    ("changes", "tries", "steps"),
    [
        ({}, {"reboot-here": 1}, (("reboot-here", "force"),)),
        ({}, {"reboot-here": 4}, (("power-down", OURS),)),
        ({"replace": False}, {"reboot-here": 4}, ()),
        ({"slurm_reboots": True}, {"reboot": 3}, (("reboot", OURS),)),
        ({"slurm_reboots": True}, {"reboot": 4}, (("power-down", OURS),)),
        ({}, {"reboot-here": 4, "power-down": 4}, ()),
        (HYPERPOD, {"fail": 4}, ()),
    ],
)
def test_what_shows_no_effect_grows_graver_and_ends_with_a_person(
    changes: dict[str, Any], tries: dict[str, int], steps: Any
) -> None:
    assert followed(held("reboot"), policy(**changes), tries=tries).steps == steps


def test_on_parallelcluster_jobs_come_before_the_reboot() -> None:
    rules = policy(orchestrator="parallelcluster", slurm_reboots=True)
    assert answered(finding(action="reboot"), node(states="MIXED"), rules).steps == (("drain", OURS),)
    assert answered(finding("warn", "none", "reset"), node(states="MIXED"), rules).steps == (
        ("reboot", OURS),
    )
    me = held("reboot", states="ALLOCATED+DRAIN")
    assert followed(me, rules, jobs=["7"]).steps == (("warn", ""),)
    both = (("requeue", ""), ("reboot", OURS))
    assert followed(me, rules, jobs=["7"], warned=True).steps == both


@pytest.mark.parametrize("boot", [OLD, NEW])
def test_what_is_held_for_diagnosis_waits_for_a_person(boot: str) -> None:
    plan = answered(finding("critical", "hold"), node(), policy())
    assert plan.steps == (("drain", OURS), ("requeue", "7"))
    assert followed(held("hold"), policy(), boot=boot, passes=9).steps == ()
    assert followed(held("hold"), policy(), boot=boot, jobs=["7"], warned=True).steps == ()


def test_a_fault_of_the_kernel_ends_with_a_boot_whatever_the_node_was_drained_for() -> None:
    me = held("drain", by="lustre:silent")
    assert followed(me, policy(), passes=2, open_event=True).steps == ()
    assert followed(me, policy(), passes=2, boot=NEW).steps == (("resume", ""),)


@pytest.mark.parametrize(
    "comment",
    [
        "",
        '""',
        "(null)",
        "ultracluster",
        "ultracluster boot=1 drained=x,1,,2 action=explode by",
        "ultracluster =",
        "rack",
    ],
)
def test_any_comment_is_read(comment: str) -> None:
    memory = known.memory_of(comment)
    assert memory is None if comment == "rack" else memory.action == ""


STATES = [
    "IDLE",
    "MIXED",
    "ALLOCATED",
    "DRAIN",
    "FAIL",
    "DOWN",
    "POWERED_DOWN",
    "REBOOT_REQUESTED",
    "CLOUD",
    "PLANNED",
]
REASONS = [
    "",
    "bad fan",
    "Prolog error",
    "Action:Reboot",
    "Action:Replace",
    OURS,
    "ultracluster:lustre:silent",
    "gone",
]
COMMENTS = [
    "",
    "rack 7",
    "ultracluster",
    f"ultracluster boot={OLD} action=reboot drained={NOW - 5} resumed={NOW - 4}",
]
NODES = st.builds(
    lambda states, reason, comment: known.Node("n1", frozenset(states), reason, NOW - 60, comment),
    st.sets(st.sampled_from(STATES), min_size=1, max_size=4),
    st.sampled_from(REASONS),
    st.sampled_from(COMMENTS),
)
POLICIES = st.builds(
    known.Policy,
    mode=st.sampled_from(["off", "dry-run", "enforce"]),
    orchestrator=st.sampled_from(["hyperpod-slurm", "parallelcluster", "pcs", ""]),
    recovery=st.booleans(),
    replace=st.booleans(),
    max_drained_percent=st.integers(1, 50),
    max_drained_per_hour=st.integers(0, 9),
    max_resumes_per_day=st.integers(0, 5),
    slurm_reboots=st.booleans(),
)
FINDINGS = st.builds(
    known.Finding,
    check=st.sampled_from(["xid", "gpu_count"]),
    result=st.sampled_from(["ok", "warn", "critical", "unknown"]),
    code=st.sampled_from(["xid-79", ""]),
    action=st.sampled_from(["none", "requeue", "reset", "reboot", "replace", "what"]),
    when_idle=st.sampled_from(["", "reset", "reboot"]),
)


@given(NODES, POLICIES, FINDINGS, st.lists(st.sampled_from(["7", "8"]), max_size=2), st.integers(0, 3))
@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_foreign_node_is_never_changed(
    me: Any, rules: Any, found: Any, jobs: list[str], passes: int
) -> None:
    plans = [
        decide.answer(found, me, [me, *others(9)], rules, boot=OLD, now=NOW),
        followed(me, rules, jobs=jobs, passes=passes, boot=NEW),
        followed(me, rules, jobs=jobs, passes=passes, warned=True),
    ]
    taken = me.states & known.TAKEN
    for plan in plans:
        if me.reason.startswith("Action:") or (taken and not me.reason.startswith("ultracluster:")):
            assert not plan.steps
        for word, text in plan.steps:
            assert word != "fail" or text in ("Action:Reboot", "Action:Replace")
            assert word not in ("drain", "reboot") or text.startswith("ultracluster:")
            assert word != "resume" or passes >= 2
            assert word != "drain" or not taken
    if me.comment == "rack 7":
        assert all(plan.memory is None for plan in plans)


@given(
    st.integers(1, 200),
    st.integers(1, 50),
    st.lists(st.sampled_from(["none", "reboot", "replace", "requeue"]), min_size=1, max_size=4),
    st.booleans(),
)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_false_alarm_everywhere_drains_no_more_than_the_share(
    count: int, percent: int, actions: list[str], remembers: bool
) -> None:
    rules = policy(max_drained_percent=percent)
    cluster = {f"n{number}": node(f"n{number}") for number in range(count)}
    for number, name in enumerate(list(cluster)):
        found = finding(action=actions[number % len(actions)])
        plan = decide.answer(found, cluster[name], list(cluster.values()), rules, boot=OLD, now=NOW)
        if any(word == "drain" for word, _ in plan.steps):
            comment = plan.memory.text if remembers else ""
            cluster[name] = node(name, "IDLE+DRAIN", found.reason, comment, NOW)
    drained = sum("DRAIN" in one.states for one in cluster.values())
    assert drained <= max(1, count * percent // 100)
