"""What `ultracluster diff` compares: two sets of templates, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ultracluster.change.changes import ChangeError
from ultracluster.change.template import PROTECTED, Template, as_mapping, as_text, paired
from ultracluster.change.template_files import read_templates
from ultracluster.config import Environment, load
from ultracluster.model.orchestrators import VERSION_OUTPUT
from ultracluster.project.place import Located, ProjectError
from ultracluster.project.revisions import earlier_names, unpack
from ultracluster.project.synth import synth_each
from ultracluster.project.versions import deployed_by
from ultracluster.rules.environment.copies import capacities, own_folders

if TYPE_CHECKING:
    from ultracluster.account.aws import Account


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
    renamed_to: str = ""
    """What the environment is called now, if its stacks had other names before."""
    files: tuple[Environment, Environment] | None = None
    """The environment before and after, where both are known; of one name."""


def synthesise(root: Path, files: list[tuple[str, Path]], scratch: Path) -> list[dict[str, Template]]:
    """The templates of environment files (each with what to call it), made by the project's app.

    Raises:
        ProjectError: an environment cannot be synthesised.
    """
    return [read_templates(folder) for folder in synth_each(root, files, scratch)]


def of_templates(old: Path, new: Path) -> Comparison:
    """Two templates, or two folders of them.

    Raises:
        ChangeError: one cannot be read.
    """
    before, after = read_templates(old), read_templates(new)
    return Comparison(str(old), str(new), paired(before, after), after)


def of_two(old: Located, new: Located) -> Comparison:
    """Two environments, as if the first became the second.

    Raises:
        ProjectError: one cannot be synthesised.
    """
    with TemporaryDirectory() as scratch:
        files = [(old.name, old.file), (new.name, new.file)]
        before, after = synthesise(old.root, files, Path(scratch))
    became = f"as if {old.name} were deployed and became {new.name}"
    notes = [f"{became}; stacks and exports are matched by their last word"]
    if old.environment.name != new.environment.name:
        notes += in_truth(old.environment, new.environment)
    notes += [
        f"{what} differs ({a} and {b}): in reality every resource would be recreated there"
        for what, a, b in (
            ("the Region", old.environment.region, new.environment.region),
            ("the account", old.environment.account, new.environment.account),
        )
        if a and b and a != b
    ]
    was = old.environment.model_copy(update={"name": new.environment.name})
    return Comparison(old.name, new.name, paired(before, after), after, notes, files=(was, new.environment))


def of_revision(here: Located, revision: str) -> Comparison:
    """The environment file of another git revision, with the one that is here.

    Raises:
        ProjectError: the revision does not have the file, or one of them cannot be synthesised.
        InvalidEnvironmentError: the file of the revision is not an environment.
    """
    with TemporaryDirectory() as scratch:
        tree = Path(scratch) / "revision"
        commit = unpack(here.root, revision, tree)
        try:
            place = here.file.relative_to(here.root)
        except ValueError:
            raise ProjectError(
                f"{here.file} is not in {here.root}: git has no other revision of it"
            ) from None
        if not (tree / place).is_file():
            raise ProjectError(f"--against {revision}: {place} is not in that revision")
        label = f"{here.name} at {revision} ({commit})"
        then = load(tree / place).environment
        files = [(label, tree / place), (here.name, here.file)]
        before, after = synthesise(here.root, files, Path(scratch))
    notes = ["both files are synthesised with the code that runs here: a change of the code does not show"]
    old, new = (one.stack_name("cluster") for one in (then, here.environment))
    if old != new:
        notes.append(
            f"the stacks have other names ({old} became {new}): in reality all of them are made, beside what "
            "is deployed, which stays, with its data, until it is deleted"
        )
    renamed_to = here.environment.stack_name("cluster").removesuffix("-cluster") if old != new else ""
    files = (then, here.environment) if old == new else None
    return Comparison(label, here.name, before, after, notes, renamed_to=renamed_to, files=files)


def of_account(here: Located, account: Account, made: dict[str, Template] | None = None) -> Comparison:
    """What is deployed, with what the environment file says now; stacks that it no longer has are looked for.

    Args:
        made: the templates of the environment, where they are made already.

    Raises:
        ProjectError: the environment cannot be synthesised.
        ChangeError: CloudFormation cannot be asked.
    """
    from ultracluster.account.aws import AccountError
    from ultracluster.change.deployed_templates import as_given_back, deployed_templates, protected_stacks

    environment = here.environment
    if made is None:
        with TemporaryDirectory() as scratch:
            (made,) = synthesise(here.root, [(here.name, here.file)], Path(scratch))
    after = made
    possible = [stack for stack in environment.possible_stack_names if stack not in after]
    try:
        found = deployed_templates(account, after, possible)
        renamed = _under_old_names(here, account) if len(found.absent) == len(after) else {}
        unguarded = [name for name in found.templates if as_mapping(after.get(name)).get(PROTECTED) is False]
        protected, unknown = protected_stacks(account, unguarded)
    except AccountError as error:
        raise ChangeError(str(error)) from None
    # one that could not be read counts as unchanged, so that what others import from it still resolves
    before = {**found.templates, **renamed, **{stack: after.get(stack, {}) for stack in found.unread}}
    before |= {stack: {**before[stack], PROTECTED: True} for stack in protected}
    notes = [f"{stack} is not deployed yet: everything in it is new" for stack in found.absent]
    notes += [
        f"whether {', '.join(stacks)} would lose termination protection is unknown: {why}"
        for why, stacks in unknown.items()
    ]
    notes += [
        f"whether {', '.join(stacks)} still run from an earlier version of the file is unknown: {why}"
        for why, stacks in found.doubtful.items()
    ]
    cluster = environment.stack_name("cluster")
    deployed, ours = (_version(side.get(cluster, {})) for side in (found.templates, after))
    if ours and cluster in found.templates and (other := deployed_by(deployed, here.name, ours)):
        notes.insert(0, other)
    return Comparison(
        f"{here.name} as deployed in {account.identity().account} {environment.region}",
        here.name,
        before,
        {stack: as_given_back(one) if stack in found.templates else one for stack, one in after.items()},
        notes,
        [f"{stack}: {why}" for stack, why in found.unread.items()],
        environment.name if renamed else "",
    )


def _version(cluster: Template) -> str:
    """Return the version by which the stack of a cluster was deployed, as its outputs state it."""
    output = as_mapping(as_mapping(as_mapping(cluster).get("Outputs")).get(VERSION_OUTPUT))
    return as_text(output.get("Value"))


def in_truth(old: Environment, new: Environment) -> list[str]:
    """What happens when a file with another name is deployed, which is not what the comparison shows."""
    beside = f"{new.name} would be a second set of stacks beside those of {old.name}, which stay and are paid"
    found = [f"in truth nothing of {old.name} changes: {beside}"]
    folders = sorted(set(own_folders(old)) & set(own_folders(new)))
    if folders:
        found.append(
            f"{', '.join(folders)} of {new.name} would be linked with a new and empty bucket, not with that "
            f"of {old.name}: to go on with its objects, name it (`bucket:`)"
        )
    found += [
        f"both take their instances from {capacity}: there must be room for both"
        for capacity in sorted(capacities(old).keys() & capacities(new).keys())
    ]
    return found


def _under_old_names(here: Located, account: Account) -> dict[str, Template]:
    """Stacks that are deployed under another name, which the environment file had in git before.

    Raises:
        AccountError: there is no client for CloudFormation.
    """
    from ultracluster.change.deployed_templates import deployed_templates

    name = here.environment.name
    stacks = [
        stack
        for old in earlier_names(here.root, here.file)
        if old != name
        for stack in here.environment.model_copy(update={"name": old}).possible_stack_names
    ]
    return deployed_templates(account, [], stacks).templates if stacks else {}
