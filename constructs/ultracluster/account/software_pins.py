"""Learn which release of HyperPod's image each group runs, so that the file can name it.

AWS prints the number of only some releases (SageMaker Developer Guide, "SageMaker HyperPod AMI releases"):
the cluster tells it (`CurrentImageReleaseVersion` of DescribeCluster).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ultracluster.account.nodes.hyperpod import LiveCluster
from ultracluster.account.nodes.node import Outcome
from ultracluster.model import Group


def pins(cluster: LiveCluster, groups: Mapping[str, Group], names: Sequence[str] = ()) -> list[Outcome]:
    """What the file should say of each group: `would` with the release, `already`, or `refused` with why.

    Args:
        cluster: as it is.
        groups: those of HyperPod in the file.
        names: only these groups; all by default.
    """
    unknown = [
        Outcome(
            name, "refused", f"HyperPod has no such group in the file; there are {', '.join(groups)}", name
        )
        for name in dict.fromkeys(names)
        if name not in groups
    ]
    return unknown + [_pin(cluster, group) for name, group in groups.items() if not names or name in names]


def lines(outcomes: Sequence[Outcome]) -> list[str]:
    """Return what to add to the file; empty if nothing."""
    found = [line for outcome in outcomes if outcome.result == "would" for line in _lines(outcome)]
    return ["node_groups:", *found] if found else []


def _lines(one: Outcome) -> list[str]:
    return [f"  {one.group}:", f'    image_release: "{one.why}"']


def _pin(cluster: LiveCluster, group: Group) -> Outcome:
    asked = group.settings
    live = cluster.group(group.name)

    def say(result: str, why: str) -> Outcome:
        return Outcome(group.name, result, why, group.name)  # pyright: ignore[reportArgumentType]

    if group.restricted:
        return say("refused", "is restricted: the API pins no image of such a group")
    if asked.image:
        return say("already", f"names an image: {asked.image}")
    if live is None:
        return say("refused", "is not deployed yet")
    if not live.image:
        return say(
            "refused", "HyperPod tells no release of its image: update its software once, then ask again"
        )
    if asked.patching:
        return say("refused", f"runs {live.image} now, and patching moves it on: remove patching first")
    if asked.image_release == live.image:
        return say("already", f"is pinned to {live.image}")
    return say("would", live.image)
