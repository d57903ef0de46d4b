"""What `ultracluster diff` compares: two sets of templates, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from ultracluster.change import Template, paired
from ultracluster.change.checkout import checkout, environment_file, unpack
from ultracluster.change.synthesis import synthesise
from ultracluster.change.template_files import read_templates
from ultracluster.cli.environments import load_environment, open_account, refuse

STACKS = ("network", "storage", "cluster", "observability")
"""Stacks that an environment may have; one that it has no longer may still be deployed."""


@dataclass(slots=True)
class Comparison:
    """What is compared, and what could not be."""

    before_name: str
    after_name: str
    before: dict[str, Template]
    after: dict[str, Template]
    notes: list[str] = field(default_factory=list[str])
    unread: list[str] = field(default_factory=list[str])
    """Stacks of the account that could not be read, each with the reason."""


def of_templates(old: Path, new: Path) -> Comparison:
    """Two templates, or two folders of them."""
    before, after = read_templates(old), read_templates(new)
    return Comparison(str(old), str(new), paired(before, after), after)


def of_two(old: str, new: str) -> Comparison:
    """Two environments, as if the first became the second."""
    root = checkout()
    with TemporaryDirectory() as scratch:
        files = [environment_file(root, name) for name in (old, new)]
        configs = [load_environment(file) for file in files]
        before, after = synthesise(root, [(old, files[0]), (new, files[1])], Path(scratch))
    notes = [f"as if {old} were deployed and became {new}; stacks and exports are matched by their last word"]
    notes += [
        f"{what} differs ({a} and {b}): in truth everything would be made anew there"
        for what, a, b in (
            ("the Region", configs[0].region, configs[1].region),
            ("the account", configs[0].account, configs[1].account),
        )
        if a and b and a != b
    ]
    return Comparison(old, new, paired(before, after), after, notes)


def of_revision(name: str, revision: str) -> Comparison:
    """The environment file of another git revision, with the one that is here."""
    root = checkout()
    file = environment_file(root, name)
    load_environment(file)
    with TemporaryDirectory() as scratch:
        tree = Path(scratch) / "revision"
        commit = unpack(root, revision, tree)
        try:
            old = tree / file.relative_to(root)
        except ValueError:
            refuse(f"{file} is not in {root}: git has no other revision of it")
        if not old.is_file():
            refuse(f"--against {revision}: {file.relative_to(root)} is not in that revision")
        label = f"{name} at {revision} ({commit})"
        load_environment(old)
        before, after = synthesise(root, [(label, old), (name, file)], Path(scratch))
    note = "both files are synthesised with the code of this checkout: a change of the code does not show"
    return Comparison(label, name, before, after, [note])


def of_account(name: str, profile: str | None) -> Comparison:
    """What is deployed, with what the environment file says now."""
    from ultracluster.change.deployed_templates import as_given_back, deployed_templates

    root = checkout()
    file = environment_file(root, name)
    config = load_environment(file)
    account = open_account(config, profile)
    with TemporaryDirectory() as scratch:
        (after,) = synthesise(root, [(name, file)], Path(scratch))
    possible = [stack for one in STACKS if (stack := f"{config.name}-{one}") not in after]
    found = deployed_templates(account, after, possible)
    # one that could not be read counts as unchanged, so that what others import from it still resolves
    before = {**found.templates, **{stack: after.get(stack, {}) for stack in found.unread}}
    return Comparison(
        f"{name} as deployed in {account.identity().account} {config.region}",
        name,
        before,
        {stack: as_given_back(one) if stack in found.templates else one for stack, one in after.items()},
        [f"{stack} is not deployed yet: everything in it is new" for stack in found.absent],
        [f"{stack}: {why}" for stack, why in found.unread.items()],
    )
