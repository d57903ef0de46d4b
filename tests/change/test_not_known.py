"""Of all that shipped environments and optional features set, some source says what a change does.

The list is made from their templates: every property, changed, added and removed; every field of every object
that kubectl applies.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from blast_radius_support import changes, resource, stack
from project import ENVIRONMENTS, ROOT
from templates import templates_alone

from ultracluster.change import Verdict, blast_radius, tables
from ultracluster.change.changes import MISSING, Pair, Steps, dotted, walk
from ultracluster.change.comparison import Comparison
from ultracluster.change.judgement import judged
from ultracluster.change.kubernetes_objects import MANIFEST, judge_field, objects_of
from ultracluster.change.report import Report, end
from ultracluster.config import load

FEATURES = sorted(file.stem for file in (ROOT / "environments" / "wishes").glob("*.yaml"))
WAYS = ((True, "another"), (True, MISSING), (False, "another"))


def not_known(templates: dict[str, Any]) -> list[str]:
    """Each property and field of which no source says what a change of it does."""
    found = {
        f"{kind} {dotted(steps)}"
        for kind, steps, ask in _everything(templates)
        if any(ask(there, after).verdict is Verdict.NOT_KNOWN for there, after in WAYS)
    }
    return sorted(found)


def _everything(templates: dict[str, Any]) -> Iterator[tuple[str, Steps, Callable[[bool, Any], Any]]]:
    for stack_name, template in templates.items():
        resources = template["Resources"]
        for name, one in resources.items():
            pair = Pair(stack_name, name, one, one, resources, resources)
            properties = one.get("Properties", {})
            for steps, value, _ in walk(properties, properties):
                if (one["Type"], steps) == (MANIFEST, ("Manifest",)):
                    yield from _fields(value)
                elif one["Type"] != "AWS::CDK::Metadata":  # only the CDK's command writes it

                    def ask(
                        there: bool, after: Any, pair: Pair = pair, steps: Steps = steps, value: Any = value
                    ) -> Any:
                        return judged(pair, steps, value if there else MISSING, after)

                    yield one["Type"], steps, ask


def _fields(manifest: Any) -> Iterator[tuple[str, Steps, Callable[[bool, Any], Any]]]:
    objects = objects_of(manifest)
    assert objects, "a manifest that cannot be read"
    for name, one in objects.items():
        for steps, value, _ in walk(one, one):

            def ask(
                there: bool,
                after: Any,
                name: tuple[str, str, str] = name,
                steps: Steps = steps,
                value: Any = value,
                one: Any = one,
            ) -> Any:
                return judge_field(name, steps, value if there else MISSING, after, (one, one))

            if steps not in (("kind",), ("metadata", "name"), ("metadata", "namespace")):  # another object
                yield name[0], steps, ask


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ENVIRONMENTS, *(f"wishes/{one}" for one in FEATURES)])
def test_nothing_that_is_set_is_not_known(name: str) -> None:
    templates = templates_alone(load(ROOT / "environments" / f"{name}.yaml").environment)

    assert not_known(templates) == [], "add a row to update_requires.json or a fact, with its source"


def one_of_each() -> dict[str, Any]:
    manifest = '[{"kind": "LimitRange", "metadata": {"name": "x"}, "spec": {"limits": []}}]'
    return stack(
        Page=resource("AWS::PCS::Queue", {"ComputeNodeGroupConfigurations": []}),
        Within=resource("AWS::FSx::FileSystem", {"OpenZFSConfiguration": {"CopyTagsToVolumes": True}}),
        ByHand=resource(
            "AWS::FSx::FileSystem", {"LustreConfiguration": {"LogConfiguration": {"Level": "x"}}}
        ),
        Custom=resource("Custom::AWSCDK-EKS-HelmChart", {"Values": "{}"}),
        Object=resource(MANIFEST, {"Manifest": manifest}),
    )


def without(rows: Any, *steps: str) -> None:
    """Empty what is at the end of the steps."""
    for step in steps:
        rows = rows[step]
    rows.clear()


def without_facts(rows: Any, word: str) -> None:
    rows["facts"] = [fact for fact in rows["facts"] if word not in (fact["type"], fact.get("path"))]


PCS, FSX = "AWS::PCS::Queue", "AWS::FSx::FileSystem"


@pytest.mark.parametrize(
    ("table", "drop", "lost"),
    [
        ("_update_requires", lambda rows: without(rows, "types", PCS, "none"),
         f"{PCS} ComputeNodeGroupConfigurations"),
        ("_update_requires", lambda rows: without(rows, "types", FSX, "within", "OpenZFSConfiguration"),
         f"{FSX} OpenZFSConfiguration.CopyTagsToVolumes"),
        ("_update_requires", lambda rows: without(rows, "by_hand"),
         f"{FSX} LustreConfiguration.LogConfiguration.Level"),
        ("_facts", lambda rows: without_facts(rows, "Values"), "Custom::AWSCDK-EKS-HelmChart Values"),
        ("_kubernetes_facts", lambda rows: without_facts(rows, "Kubernetes::LimitRange"),
         "LimitRange spec.limits"),
    ],
    ids=["a property", "below an object", "by hand", "a custom resource", "a kind of object"],
)  # fmt: skip
def test_a_row_that_goes_is_missed(
    table: str, drop: Callable[[Any], None], lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not_known(one_of_each()) == []
    rows = copy.deepcopy(getattr(tables, table)())
    drop(rows)
    monkeypatch.setattr(tables, table, lambda: rows)
    tables._facts_of.cache_clear()
    try:
        assert lost in not_known(one_of_each())
    finally:
        monkeypatch.undo()
        tables._facts_of.cache_clear()


def report(*found: Any, accepted: set[str] | None = None) -> Report:
    return Report(Comparison("a", "b", {}, {}), list(found), accepted or set())


def test_what_is_not_known_of_data_is_accepted_by_name_and_of_nodes_ends_with_1() -> None:
    (data,) = changes("AWS::FSx::FileSystem", {"Odd": 1}, {"Odd": 2})
    (nodes,) = changes("AWS::EKS::Nodegroup", {"Odd": 1}, {"Odd": 2})

    assert data.verdict is nodes.verdict is Verdict.NOT_KNOWN
    assert report(data, nodes).exit_code == 3
    assert "  --accept s/R" in end(report(data))
    assert report(data, accepted={"s/R"}).exit_code == 1
    assert report(nodes).exit_code == 1 and report(nodes).acceptable == set()


@pytest.mark.parametrize(
    ("kind", "path", "verdict"),
    [
        ("AWS::PCS::Queue", "ComputeNodeGroupConfigurations", "in place"),
        ("AWS::RDS::DBInstance", "EngineLifecycleSupport", "rolling"),
        ("AWS::FSx::FileSystem", "OpenZFSConfiguration.EndpointIpv6AddressRange", "DATA LOSS"),
        ("AWS::Logs::LogGroup", "LogGroupClass", "refused"),
        ("AWS::PCS::Queue", "ClusterId", "replaced"),
        ("AWS::PCS::Queue", "Odd", "not known"),
        ("AWS::PCS::Queue", "SlurmConfiguration.Odd", "not known"),
    ],
)
def test_the_page_of_a_type_says_what_a_change_takes(kind: str, path: str, verdict: str) -> None:
    def holding(value: Any) -> Any:
        for step in reversed(path.split(".")):
            value = {step: value}
        return value

    (change,) = blast_radius(stack(R=resource(kind, holding("a"))), stack(R=resource(kind, holding("b"))))

    assert change.verdict == verdict
