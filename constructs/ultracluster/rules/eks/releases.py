"""Rules on: Kubernetes on EKS. The Kubernetes release: offered, supported, reached by kubectl."""

from __future__ import annotations

from ultracluster.catalog.eks import kubectl_release
from ultracluster.catalog.eks_calendar import (
    KubernetesSupport,
    kubernetes_releases,
    kubernetes_support,
    releases_in_standard_support,
)
from ultracluster.catalog.hyperpod_eks import hyperpod_kubernetes_agreed
from ultracluster.config.findings import YamlPath
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.remedy import Remedy, ask, write
from ultracluster.rules.deployed import is_deployed
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import EKS
from ultracluster.rules.today import today

CALENDAR = "EKS User Guide, Understand the Kubernetes version lifecycle on EKS (release calendar)"
DATE = "2026-11-22"
UNSETTLED_DAYS = 60
"""Days before the end of the newest release that all pages have for HyperPod at which a finding begins."""
SOON_DAYS = 120
_VERSION: YamlPath = ("kubernetes_version",)
_BY_HAND = (
    "aws eks describe-cluster-versions --query "
    "'clusterVersions[].[clusterVersion,versionStatus,endOfStandardSupportDate]'"
)


@EKS.error(1, f"{CALENDAR}; the catalogue: eks_addons.json", DATE, by_hand=_BY_HAND)
def kubernetes_release_offered(settings: Eks | HyperPodEks) -> Breaches:
    """EKS offers the Kubernetes release, and this package has its add-on versions."""
    release, releases = settings.kubernetes_version, kubernetes_releases()
    support = kubernetes_support(release)
    if support is None and minor(release) > minor(releases[-1]):
        yield at(*_VERSION).breach(
            f"this package has no add-on versions for {release}, only for {releases[0]} to {releases[-1]}.",
            # a control plane that has it does not go back
            ask("action", f"update this package to one that has {release}")
            if is_deployed()
            else write(releases[-1]),
        )
    elif support is None or support.phase(today()) == "ended":
        until = f" on {support.extended_ends}" if support else ""
        yield at(*_VERSION).breach(
            f"extended support of {release} ended{until}: EKS creates no cluster with it.", _advised(release)
        )


@EKS.warning(12, f"{CALENDAR}; View current cluster upgrade policy", DATE, by_hand=_BY_HAND)
def standard_support(settings: Eks | HyperPodEks) -> Breaches:
    """The Kubernetes release is in standard support."""
    support = kubernetes_support(settings.kubernetes_version)
    if support and support.phase(today()) == "extended":
        yield at(*_VERSION).breach(
            f"{support.release} left standard support on {support.standard_ends}: "
            f"{_consequence(settings, support)}.",
            _advised(support.release),
        )


@EKS.warning(14, CALENDAR, DATE, by_hand=_BY_HAND)
def standard_support_ends(settings: Eks | HyperPodEks) -> Breaches:
    """Standard support of the Kubernetes release does not end within 120 days."""
    support = kubernetes_support(settings.kubernetes_version)
    soon, advised = SOON_DAYS, _advised(settings.kubernetes_version)
    if isinstance(settings, HyperPodEks) and settings.kubernetes_version == hyperpod_kubernetes_agreed():
        # of the next release AWS's pages on HyperPod disagree (HPE120): leave them time to agree
        soon = UNSETTLED_DAYS
        advised = advised.noting("or acknowledge this until AWS's pages on HyperPod agree on it")
    if support and 0 < (left := (support.standard_ends - today()).days) <= soon:
        yield at(*_VERSION).breach(
            f"{support.release} leaves standard support on {support.standard_ends}, {left} days from now: "
            f"from then on {_consequence(settings, support)}.",
            advised,
        )


@EKS.warning(15, "Kubernetes documentation, Version Skew Policy: kubectl is within one minor release", DATE)
def kubectl_skew(settings: Eks | HyperPodEks) -> Breaches:
    """The kubectl that applies charts supports the control plane's release."""
    release, ours = settings.kubernetes_version, kubectl_release()
    if kubernetes_support(release) and abs(minor(release) - minor(ours)) > 1:
        yield at(*_VERSION).breach(
            f"charts and manifests are applied by kubectl {ours}, which Kubernetes supports with releases "
            f"next to its own, not with {release}.",
            _advised(release).noting("or acknowledge that you have tried it"),
        )


@EKS.error(16, "EKS API reference, CreateNodegroup (releaseVersion)", DATE)
def node_image_release(settings: Eks | HyperPodEks) -> Breaches:
    """EKS's node image is built for the control plane's Kubernetes release."""
    image, release = settings.node_image_release or "", settings.kubernetes_version
    if image.count(".") == 2 and not image.startswith(f"{release}."):
        yield at("node_image_release").breach(
            f"{image} is an image for another Kubernetes release than {release}: EKS refuses the node group.",
            write(image.rpartition("-")[2]).noting(
                f"only the date; or a release that begins with {release}."
            ),
        )


def _consequence(settings: Eks | HyperPodEks, support: KubernetesSupport) -> str:
    if settings.support == "extended":
        return (
            "the control plane costs several times as much per hour (`ultracluster cost` shows it), until "
            f"EKS upgrades it automatically after {support.extended_ends}"
        )
    return "EKS upgrades the control plane automatically, at a time of its choice, while jobs run"


def _newest() -> str:
    """The newest release in standard support; if the catalogue is too old to have one, its newest."""
    return (releases_in_standard_support(today()) or kubernetes_releases())[-1]


def _advised(release: str) -> Remedy:
    """The newest release; of a control plane that runs the next one, because EKS takes no other."""
    newest = _newest()
    following = f"1.{minor(release) + 1}"
    if following == newest or minor(release) >= minor(newest):
        return write(newest)
    if is_deployed():
        return write(following).noting(f"then the releases up to {newest}, one with each deployment")
    return write(newest).noting(f"where it is deployed already, {following}: EKS goes one release at a time")


def minor(release: str) -> int:
    """Return the second number of a Kubernetes release."""
    return int(release.partition(".")[2])
