"""The longest creation path of a set of CloudFormation templates, in minutes: a model, not a measurement.

    python benchmarks/critical_path.py cdk.out                       an assembly of the CDK
    python benchmarks/critical_path.py main.yaml vpc.yaml ...        plain templates, in order of deployment

A stack is made when the stacks that it needs are there (`cdk deploy --concurrency`), or when the one before
it is (without). Within a stack a resource waits for what it names: `DependsOn`, `Ref`, `Fn::GetAtt`,
`Fn::Sub`. Between stacks it is the manifest of the assembly that counts, and `Fn::ImportValue`. A nested
stack takes what the template whose name ends its `TemplateURL` takes, if that template was given, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ultracluster.change.template import IMPORT, references

ROOT = Path(__file__).resolve().parents[1]
# Minutes. One table for all templates: only ratios between templates that were weighed alike mean anything.
MINUTES = {
    "AWS::SageMaker::Cluster": 17.0,
    "AWS::EKS::Cluster": 10.0,
    "AWS::FSx::FileSystem": 10.0,
    "AWS::RDS::DBInstance": 10.0,
    "AWS::RDS::DBCluster": 10.0,
    "AWS::FSx::DataRepositoryAssociation": 4.0,
    "AWS::EKS::Nodegroup": 3.0,
    "AWS::EKS::Addon": 2.0,
    "AWS::EC2::NatGateway": 2.0,
    "AWS::EC2::VPCEndpoint": 1.5,
    "AWS::CloudFormation::CustomResource": 1.0,
    "Custom::AccountingUser": 0.1,  # two calls and five statements: seconds; the others copy files or wait
    "Custom::AWS": 0.05,  # one call of the SDK
    "Custom::EksDeletionProtection": 0.5,  # a flag, asked for every 15 seconds: two questions
    "AWS::IAM::Role": 0.4,
    "AWS::IAM::Policy": 0.4,
    "AWS::IAM::ManagedPolicy": 0.4,
    "AWS::IAM::RolePolicy": 0.4,
}
CUSTOM, OTHER, STACK = 1.0, 0.1, 0.3
NESTED = "AWS::CloudFormation::Stack"

AWS_MINUTES = {"hyperpod-slurm": 35.0, "hyperpod-eks": 44.0}
"""AWS's own HyperPod templates, weighed by the same table; they have none for the others."""
BUDGET = 0.85
"""Of AWS's own minutes, what ours may take."""

Template = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Longest:
    """The longest path through a template or through an environment."""

    minutes: float
    steps: tuple[tuple[str, float], ...] = ()
    """What is on it, in order, each with its own minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A template, and the names of the stacks that are deployed before it."""

    name: str
    template: Template
    after: frozenset[str] = field(default_factory=frozenset[str])


def minutes_of(kind: str) -> float:
    """Typical minutes until a resource of this type is there."""
    return MINUTES.get(kind, CUSTOM if kind.startswith("Custom::") else OTHER)


def needs(template: Template, logical_id: str) -> set[str]:
    """What a resource names and waits for."""
    resource = template["Resources"][logical_id]
    depends = resource.get("DependsOn", [])
    found = {depends} if isinstance(depends, str) else set(depends)
    for part in ("Properties", "CreationPolicy", "UpdatePolicy"):
        found |= {name for name, _ in references(resource.get(part, {}))}
    return (found & template["Resources"].keys()) - {logical_id}


def longest(template: Template, nested: Mapping[str, Template] | None = None) -> Longest:
    """The longest path through one template, without the overhead of its stack.

    Raises:
        ValueError: resources that wait for each other.
    """
    done: dict[str, Longest] = {}
    for logical_id in _ordered(template):
        resource = template["Resources"][logical_id]
        own = minutes_of(resource["Type"])
        inner = _nested(resource, nested or {})
        if inner:
            own = STACK + longest(inner, nested).minutes
        before = max((done[one] for one in needs(template, logical_id)), key=_length, default=Longest(0))
        done[logical_id] = Longest(before.minutes + own, (*before.steps, (logical_id, own)))
    return max(done.values(), key=_length, default=Longest(0))


def side_by_side(stacks: Sequence[Stack]) -> Longest:
    """Every stack starts when those that it needs are there: `cdk deploy --concurrency`."""
    nested = {stack.name: stack.template for stack in stacks}
    roots = _roots(stacks)
    exporters = {name: stack.name for stack in roots for name in _exports(stack.template)}
    ends: dict[str, Longest] = {}
    pending = {stack.name: stack for stack in roots}
    while pending:
        ready = [stack for stack in pending.values() if not (_before(stack, exporters) & pending.keys())]
        if not ready:
            raise ValueError(f"stacks wait for each other: {', '.join(sorted(pending))}")
        for stack in ready:
            del pending[stack.name]
            before = max(
                (ends[one] for one in _before(stack, exporters) if one in ends),
                key=_length,
                default=Longest(0),
            )
            ends[stack.name] = _then(before, stack, nested)
    return max(ends.values(), key=_length, default=Longest(0))


def one_by_one(stacks: Sequence[Stack]) -> Longest:
    """Every stack waits for the one before it: `cdk deploy --all`."""
    nested = {stack.name: stack.template for stack in stacks}
    total = Longest(0)
    for stack in _roots(stacks):
        total = _then(total, stack, nested)
    return total


def read(files: Sequence[Path]) -> list[Stack]:
    """The stacks of an assembly (a folder with `manifest.json`), or of template files.

    Raises:
        ValueError: a file that is no template.
    """
    if len(files) == 1 and files[0].is_dir():
        return _assembly(files[0])
    stacks: list[Stack] = []
    for file in files:
        template = yaml.load(file.read_text(encoding="utf-8"), _Loader)  # noqa: S506  # a SafeLoader
        if not isinstance(template, dict) or "Resources" not in template:
            raise ValueError(f"{file}: no CloudFormation template")
        stacks.append(Stack(name=file.name, template=template))
    return stacks


def _assembly(folder: Path) -> list[Stack]:
    artifacts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["artifacts"]
    stacks = {key: one for key, one in artifacts.items() if one["type"] == "aws:cloudformation:stack"}
    made = [
        Stack(
            name=key,
            template=json.loads((folder / one["properties"]["templateFile"]).read_text(encoding="utf-8")),
            after=frozenset(one.get("dependencies", [])) & stacks.keys(),
        )
        for key, one in stacks.items()
    ]
    # in an order in which they can be deployed
    placed: list[Stack] = []
    while len(placed) < len(made):
        names = {stack.name for stack in placed}
        placed += [one for one in made if one.name not in names and one.after <= names]
    return placed


def _then(before: Longest, stack: Stack, nested: Mapping[str, Template]) -> Longest:
    own = longest(stack.template, nested)
    steps = tuple((f"{stack.name}/{name}", minutes) for name, minutes in own.steps)
    return Longest(before.minutes + STACK + own.minutes, (*before.steps, (stack.name, STACK), *steps))


def _before(stack: Stack, exporters: Mapping[str, str]) -> frozenset[str]:
    named = (name.removeprefix(IMPORT) for name, _ in references(stack.template["Resources"]))
    return stack.after | ({exporters[name] for name in named if name in exporters} - {stack.name})


def _roots(stacks: Sequence[Stack]) -> list[Stack]:
    """Those that are no other's nested stack."""
    inner = {
        _file_name(resource)
        for stack in stacks
        for resource in stack.template["Resources"].values()
        if resource["Type"] == NESTED
    }
    return [stack for stack in stacks if stack.name not in inner]


def _nested(resource: Mapping[str, Any], templates: Mapping[str, Template]) -> Template | None:
    return templates.get(_file_name(resource)) if resource["Type"] == NESTED else None


def _file_name(resource: Mapping[str, Any]) -> str:
    """Of the template of a nested stack: the end of its address."""
    return json.dumps(resource.get("Properties", {}).get("TemplateURL", "")).rpartition("/")[2].strip('"]} ')


def _ordered(template: Template) -> list[str]:
    ordered: dict[str, None] = {}
    resources = dict.fromkeys(template["Resources"])
    while len(ordered) < len(resources):
        ready = [one for one in resources if one not in ordered and needs(template, one) <= ordered.keys()]
        if not ready:
            raise ValueError(f"resources wait for each other: {sorted(resources.keys() - ordered.keys())}")
        ordered.update(dict.fromkeys(ready))
    return list(ordered)


def _exports(template: Template) -> Iterator[str]:
    for output in template.get("Outputs", {}).values():
        if isinstance(name := output.get("Export", {}).get("Name"), str):
            yield name


def _length(path: Longest) -> float:
    return path.minutes


class _Loader(yaml.SafeLoader):
    """YAML with the short forms of CloudFormation's functions."""


def _short_form(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_form)


def budgets(names: Sequence[str]) -> list[tuple[str, float, float, float | None]]:
    """(environment, minutes side by side, one by one, budget) of shipped environments, synthesised now."""
    rows: list[tuple[str, float, float, float | None]] = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            stacks = _assembly(_synthesised(name, Path(folder)))
        kind = yaml.safe_load((ROOT / "environments" / f"{name}.yaml").read_text())["orchestrator"]["kind"]
        theirs = AWS_MINUTES.get(kind)
        budget = None if theirs is None else BUDGET * theirs
        rows.append((name, side_by_side(stacks).minutes, one_by_one(stacks).minutes, budget))
    return rows


def _synthesised(name: str, folder: Path) -> Path:
    environment = os.environ | {"CDK_OUTDIR": str(folder), "CDK_CONTEXT_JSON": json.dumps({"env": name})}
    subprocess.run([sys.executable, "app.py"], check=True, capture_output=True, env=environment, cwd=ROOT)
    return folder


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        print(__doc__)
        return 2
    try:
        stacks = read([Path(one) for one in arguments])
        path, chain = side_by_side(stacks), one_by_one(stacks)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    for name, minutes in path.steps:
        print(f"{minutes:6.1f}  {name}")
    print(f"{path.minutes:6.1f}  minutes, stacks side by side")
    print(f"{chain.minutes:6.1f}  minutes, stacks one by one")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
