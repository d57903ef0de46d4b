"""What AWS would refuse or silently get wrong, found before anything is deployed."""

from __future__ import annotations

from ultracluster.config import Finding, InvalidEnvironmentError, Loaded
from ultracluster.config.loader import ShapeError
from ultracluster.rules.eks import cluster as eks
from ultracluster.rules.engine import Breach, Rule, RuleSet, run
from ultracluster.rules.environment import basics as environment
from ultracluster.rules.groups import efa
from ultracluster.rules.groups import settings as node_groups
from ultracluster.rules.hyperpod import eks as hyperpod_eks
from ultracluster.rules.hyperpod import slurm as hyperpod_slurm
from ultracluster.rules.hyperpod import types as hyperpod_types
from ultracluster.rules.network import vpc as network
from ultracluster.rules.parallelcluster import cluster as parallelcluster
from ultracluster.rules.pcs import cluster as pcs
from ultracluster.rules.software import images
from ultracluster.rules.software import release as software
from ultracluster.rules.storage import fsx, mounts, protection
from ultracluster.rules.teams import members as teams

RULE_SETS: tuple[RuleSet, ...] = (
    environment.RULES,
    network.RULES,
    node_groups.RULES,
    efa.RULES,
    fsx.RULES,
    mounts.RULES,
    protection.RULES,
    hyperpod_types.RULES,
    hyperpod_slurm.RULES,
    hyperpod_eks.RULES,
    eks.RULES,
    parallelcluster.RULES,
    pcs.RULES,
    teams.RULES,
    software.RULES,
    images.RULES,
)


def all_rules() -> tuple[Rule, ...]:
    """Every rule, by subject."""
    return tuple(rule for rule_set in RULE_SETS for rule in rule_set.rules)


def check(loaded: Loaded) -> list[Finding]:
    """All findings of all rules."""
    return run(all_rules(), loaded)


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
    for one in check(loaded):
        near = any(one.path[: len(place)] == place or place[: len(one.path)] == one.path for place in places)
        if not near and not one.code.startswith("ACK"):
            found.append(one)
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
