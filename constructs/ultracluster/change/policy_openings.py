"""Stack policies, opened for one deploy and closed again."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ultracluster.account.aws import AWS_ERRORS, explain
from ultracluster.change.comparison import of_account
from ultracluster.change.radius import blast_radius
from ultracluster.change.stack_policies import going, is_ours, opened_for
from ultracluster.change.template_files import read_templates
from ultracluster.model.stack_guards import GUARDED_PARTS, closed

if TYPE_CHECKING:
    from ultracluster.account.aws import Account
    from ultracluster.project.place import Located


class NotClosedError(Exception):
    """A stack policy could not be closed again; the message says which, and the command that does it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What an update needs of the policy of one stack."""

    going: frozenset[str]
    """Logical ids of resources that it replaces or takes out."""
    policy: str
    """That lets these go and no others."""


def openings(
    here: Located, account: Account, assembly: Path, accepted: Collection[str]
) -> tuple[dict[str, Opening], list[str]]:
    """Which policies an update of an environment has to find open, by stack, and what stands in its way.

    Asks only where a stack has a policy of ours (`cloudformation:GetStackPolicy`). A resource whose data
    would be lost is left out unless it is accepted: CloudFormation then refuses.

    Args:
        assembly: the folder of the templates.
        accepted: `stack/logical id`.

    Raises:
        ChangeError: the templates cannot be read.
        AccountError: there is no client for CloudFormation.
    """
    names = [here.environment.stack_name(part) for part in GUARDED_PARTS]
    guarded, notes = _guarded(account, names)
    if not guarded:
        return {}, notes
    found = of_account(here, account, read_templates(assembly))
    changes = blast_radius(found.before, found.after)
    shut = {change.resource for change in changes if change.verdict.needs_acceptance} - set(accepted)
    leaving = going((change for change in changes if change.resource not in shut), found.before)
    return {
        stack: Opening(going=frozenset(names), policy=opened_for(names, found.before[stack]))
        for stack, names in leaving.items()
        if stack in guarded
    }, notes


@contextmanager
def opened(account: Account, needed: Mapping[str, Opening]) -> Generator[None]:
    """Open the policies for what is inside of the block; closed again however that ends.

    Raises:
        NotClosedError: one could not be closed again.
    """
    if not needed:
        yield
        return
    cloudformation = account.client("cloudformation")
    try:
        for stack, opening in needed.items():
            cloudformation.set_stack_policy(StackName=stack, StackPolicyBody=opening.policy)
        yield
    finally:
        _close(cloudformation, needed)


def _close(cloudformation: Any, stacks: Collection[str]) -> None:
    failed: list[str] = []
    for stack in stacks:
        try:
            cloudformation.set_stack_policy(StackName=stack, StackPolicyBody=closed())
        except AWS_ERRORS as error:
            command = (
                f"aws cloudformation set-stack-policy --stack-name {stack} --stack-policy-body '{closed()}'"
            )
            failed.append(
                f"the policy of {stack} is still open ({explain(error)}); this closes it:\n  {command}"
            )
    if failed:
        raise NotClosedError("\n".join(failed))


def _guarded(account: Account, names: Collection[str]) -> tuple[set[str], list[str]]:
    """Stacks with a policy of ours, and why it could not be told of others."""
    cloudformation = account.client("cloudformation")
    found: set[str] = set()
    notes: list[str] = []
    for name in names:
        try:
            answer: dict[str, Any] = cloudformation.get_stack_policy(StackName=name)
        except AWS_ERRORS as error:
            if "does not exist" not in str(error):
                notes.append(f"the stack policy of {name} is unknown: {explain(error)}")
            continue
        policy = str(answer.get("StackPolicyBody") or "")
        if is_ours(policy):
            found.add(name)
        elif policy:
            notes.append(f"{name} has a stack policy of your own: it is left as it is")
    return found, notes
