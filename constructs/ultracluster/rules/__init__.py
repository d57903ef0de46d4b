"""Rules that find what AWS refuses or silently gets wrong, before anything is deployed.

Each module of a subject's folder has rules, imported when an environment's orchestrator can break them. What
several modules share lies beside the folders.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import TYPE_CHECKING, Any

from ultracluster.config import Finding, InvalidEnvironmentError, Loaded
from ultracluster.config.loader import ShapeError
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.model import Traits
from ultracluster.rules import sets
from ultracluster.rules.engine import Breach, Rule, RuleSet, judge, run
from ultracluster.rules.parts import parts_in

if TYPE_CHECKING:
    from ultracluster.rules.sets import RULE_SETS


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by subject."""
    return _imported(set(_modules()))


@cache
def rules_about(kind: OrchestratorKind | None) -> tuple[Rule, ...]:
    """The rules that environments of an orchestrator can break, by subject; of None, those of every one."""
    kinds = kinds_of_modules()
    about = {
        module
        for module in _modules()
        if all(kind in kinds.get(name, (kind,)) for name in (module, module.partition(".")[0]))
    }
    return tuple(rule for rule in _imported(about) if rule.applies(kind))


@cache
def kinds_of_modules() -> dict[str, frozenset[OrchestratorKind]]:
    """Folders and modules whose rules are about these orchestrators only: others do not import them."""
    places: dict[str, frozenset[OrchestratorKind]] = {}
    for folder in sorted({module.partition(".")[0] for module in _modules()}):
        package = import_module(f"{__name__}.{folder}")
        only: dict[str, frozenset[OrchestratorKind]] = getattr(package, "ONLY", {})
        places |= {f"{folder}.{module}".rstrip("."): kinds for module, kinds in only.items()}
    return places


@cache
def _modules() -> tuple[str, ...]:
    """The modules of the subjects' folders, which have the rules: `eks.pods`."""
    names = (module.name.removeprefix(f"{__name__}.") for module in walk_packages(__path__, f"{__name__}."))
    return tuple(name for name in names if "." in name)


def _imported(modules: set[str]) -> tuple[Rule, ...]:
    """The rules of the sets after these modules have filled them."""
    for module in modules:
        import_module(f"{__name__}.{module}")
    return tuple(rule for rule_set in sets.RULE_SETS for rule in rule_set.rules)


def __getattr__(name: str) -> Any:
    """Fill `RULE_SETS` with every rule when somebody asks for the sets."""
    if name != "RULE_SETS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    all_rules()
    return sets.RULE_SETS


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
        rules = rules_about(part.environment.orchestrator.kind)
        acknowledged = {entry.rule for entry in part.environment.acknowledge}
        return run(rules if acknowledged <= {rule.id for rule in rules} else all_rules(), part)
    parts = tuple(parts_in(part))
    besides = tuple(further for other in known for further in parts_in(other))
    traits = next((piece for _, piece in (*parts, *besides) if isinstance(piece, Traits)), None)
    kind = traits.kind if traits else None
    return list(judge(rules_about(kind), parts, besides, kind=kind))


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
