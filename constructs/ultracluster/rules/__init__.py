"""Rules that find what AWS refuses or silently gets wrong, before anything is deployed.

Each module of a subject's folder has rules, and importing this package imports all of them. What several
modules share lies beside the folders.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

from ultracluster.config import Finding, InvalidEnvironmentError, Loaded
from ultracluster.config.loader import ShapeError
from ultracluster.model import Traits
from ultracluster.rules.engine import Breach, Rule, RuleSet, judge, run
from ultracluster.rules.parts import parts_in
from ultracluster.rules.sets import RULE_SETS

for _module in walk_packages(__path__, f"{__name__}."):
    if _module.name.count(".") > __name__.count(".") + 1:  # in a subject's folder: it fills the sets
        import_module(_module.name)


def all_rules() -> tuple[Rule, ...]:
    """Every rule, by subject."""
    return tuple(rule for rule_set in RULE_SETS for rule in rule_set.rules)


def check(part: object, *known: object) -> list[Finding]:
    """All findings of the rules that can judge `part`.

    Of a whole environment file they have lines, and acknowledged warnings are marked; of a part by itself
    (a Lustre file system, a `Group`, a network) they have paths from that part.

    Args:
        part: what `load` gives, or a part of it.
        known: what else is known, as the Region that a file system is in: rules that need it speak, too. It
            is not judged itself.
    """
    if isinstance(part, Loaded):
        return run(all_rules(), part)
    parts = tuple(parts_in(part))
    besides = tuple(further for other in known for further in parts_in(other))
    traits = next((one for _, one in (*parts, *besides) if isinstance(one, Traits)), None)
    return list(judge(all_rules(), parts, besides, kind=traits.kind if traits else None))


def judge_rest(error: InvalidEnvironmentError) -> list[Finding]:
    """What is wrong with the shape, and what the rules find in the parts whose shape is right.

    A finding about a part that holds, is held by or is one whose shape is wrong is left out: it would be of
    a stand-in, not of the file.
    """
    found = list(error.findings)
    rest = error.rest() if isinstance(error, ShapeError) else None
    if rest is None:
        return found
    loaded, places = rest
    for finding in check(loaded):
        near = any(
            finding.path[: len(place)] == place or place[: len(finding.path)] == finding.path
            for place in places
        )
        if not near and not finding.code.startswith("ACK"):
            found.append(finding)
    return found


def enforce(loaded: Loaded) -> list[Finding]:
    """The warnings of an environment that may be synthesised.

    Raises:
        InvalidEnvironmentError: if a rule of severity `error` is broken; carries all findings.
    """
    findings = check(loaded)
    if any(finding.blocks for finding in findings):
        raise InvalidEnvironmentError(findings)
    return findings


__all__ = ["RULE_SETS", "Breach", "Rule", "RuleSet", "all_rules", "check", "enforce", "judge_rest"]
