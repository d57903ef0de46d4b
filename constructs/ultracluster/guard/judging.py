"""Rules on what a construct is given, reported by the CDK's own validation with the construct's path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import jsii
from aws_cdk import Annotations, Stack
from constructs import Construct, IConstruct, IValidation

from ultracluster.catalog.regions import Region, region
from ultracluster.config import Finding
from ultracluster.config.findings import YamlPath
from ultracluster.guard.tokens import holds_token, speaks_of_token
from ultracluster.rules import check

_JUDGED = "ultracluster:judged"


def already_judged(scope: IConstruct) -> None:
    """Say that the rules ran on the whole environment of what will be below `scope`: nothing there is judged
    again, and no warning repeated. To be called before `scope` has children."""
    scope.node.set_context(_JUDGED, True)


def is_judged(scope: IConstruct) -> bool:
    return scope.node.try_get_context(_JUDGED) is True


def home_of(scope: IConstruct) -> Sequence[Region]:
    """The Region of the construct's stack, for rules that must know it; empty where it is not known."""
    name = Stack.of(scope).region
    found = None if holds_token(name) else region(name)
    return (found,) if found else ()


def report(scope: Construct, part: object, *known: object, under: YamlPath = ()) -> None:
    """Run the rules on a part: an error makes the synth fail, a warning annotates the construct.

    Nothing is reported of a value that is a token, nor where the environment was judged before.

    Args:
        scope: the construct that was given the part.
        part: a model of the configuration, or what the model room makes of one.
        known: what else rules may read; it is not judged itself. The Region of the stack is added.
        under: what the caller calls the part, if the names of its settings are not his arguments.
    """
    if is_judged(scope):
        return
    found = [replace(one, path=(*under, *one.path)) for one in check(part, *known, *home_of(scope))]
    report_findings(scope, found)


def report_findings(scope: Construct, findings: Iterable[Finding]) -> None:
    """Hand findings to the CDK; those that speak of a token are left out."""
    if is_judged(scope):
        return
    told = {finding.sentence: finding for finding in findings}
    told = {words: one for words, one in told.items() if not speaks_of_token(words)}
    if errors := [words for words, one in told.items() if one.blocks]:
        scope.node.add_validation(_Errors(errors))
    for words, one in told.items():
        if not one.blocks:
            warn(scope, one.code, words)


def refuse(scope: IConstruct, text: str) -> None:
    """Make the synth fail with this text at a construct."""
    if not is_judged(scope):
        scope.node.add_validation(_Errors([text]))


def warn(scope: IConstruct, code: str, text: str) -> None:
    """A warning at a construct, which `Annotations.of(scope).acknowledge_warning` can accept."""
    if not is_judged(scope):
        Annotations.of(scope).add_warning_v2(f"ultracluster:{code}", text)


@jsii.implements(IValidation)
class _Errors:
    def __init__(self, errors: list[str]) -> None:
        self._errors = errors

    def validate(self) -> list[str]:
        """Return what the CDK asks before it synthesises."""
        return self._errors
