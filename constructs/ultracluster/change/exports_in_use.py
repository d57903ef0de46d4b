"""Exports that go while another stack still imports them: which order of commands works."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ultracluster.change.changes import Change, Verdict
from ultracluster.change.template import IMPORT, Template, as_mapping, references

SOURCE = "CloudFormation User Guide, Get exported outputs from a deployed CloudFormation stack"


def exports_in_use(before: Mapping[str, Template], after: Mapping[str, Template]) -> list[Change]:
    """One change for each stack that loses an export which a deployed stack reads.

    A deploy goes from the stack that exports to the one that imports, and CloudFormation removes no export in
    use: the other way round it works.
    """
    changes: list[Change] = []
    for stack in sorted(before.keys() & after.keys()):
        gone = set(_exported(before[stack])) - set(_exported(after[stack]))
        if not gone:
            continue
        readers = {
            name: sorted(gone & set(_imported(template)))
            for name, template in before.items()
            if name != stack and gone & set(_imported(template))
        }
        if readers:
            changes.append(_refused(stack, readers, before, after))
    return changes


def _refused(
    stack: str,
    readers: Mapping[str, list[str]],
    before: Mapping[str, Template],
    after: Mapping[str, Template],
) -> Change:
    environment = _common(before.keys() | after.keys())
    cdk = f"cdk deploy -c env={environment}" if environment else "cdk deploy"
    used = ", ".join(sorted({f"`{name}`" for names in readers.values() for name in names}))
    steps: list[str] = []
    for name in sorted(readers):
        if name not in after:
            steps.append(f"aws cloudformation delete-stack --stack-name {name}")
        elif set(readers[name]) & set(_imported(after[name])):
            steps.append(f"take the import out of {name}, which keeps it")
        else:
            steps.append(f"{cdk} -e {name}")
    order = [f"`{one}`" for one in [*steps, f"{cdk} --all"]]
    reason = (
        f"AWS refuses this: {used} goes, and {', '.join(sorted(readers))} imports it; CloudFormation "
        f"removes no export in use. In this order it works: {', then '.join(order)}"
    )
    return Change.of_stack(stack, reason, SOURCE, verdict=Verdict.REFUSED, order=tuple(order))


def _common(stacks: Iterable[str]) -> str:
    """The name of the environment: what the names of all its stacks begin with."""
    words: list[str] = []
    for alike in zip(*(name.split("-") for name in stacks), strict=False):
        if len(set(alike)) > 1:
            break
        words.append(alike[0])
    return "-".join(words)


def _exported(template: Template) -> Iterator[str]:
    for output in map(as_mapping, as_mapping(as_mapping(template).get("Outputs")).values()):
        name = as_mapping(output.get("Export")).get("Name")
        if isinstance(name, str):
            yield name


def _imported(template: Template) -> Iterator[str]:
    for section in ("Resources", "Outputs"):
        for name, _ in references(as_mapping(template).get(section)):
            if name.startswith(IMPORT):
                yield name.removeprefix(IMPORT)
