"""What HyperPod on EKS brings along, and MIG profiles.

`hyperpod_eks.json` holds them with source and date.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from ultracluster.catalog.files import catalog_file
from ultracluster.catalog.instances import instance_types

_document = partial(catalog_file, "hyperpod_eks")


def health_agent_image(region: str) -> str:
    """The health-monitoring agent's image; that of another Region where the Region has none known to us."""
    agent = _document()["health_agent"]
    home = region if region in agent["accounts"] else agent["elsewhere"]
    return f"{health_agent_account(home)}.dkr.ecr.{home}.amazonaws.com/{agent['image']}:{agent['tag']}"


def health_agent_account(region: str) -> str:
    """AWS's account whose registry has that image for a Region."""
    agent = _document()["health_agent"]
    return agent["accounts"].get(region) or agent["accounts"][agent["elsewhere"]]


def health_agent_regions() -> tuple[str, ...]:
    """Regions that hold the health-monitoring agent's image, as far as is known."""
    return tuple(_document()["health_agent"]["accounts"])


def hyperpod_addon_version(name: str) -> str:
    """The pinned version of one of HyperPod's add-ons.

    Raises:
        KeyError: the add-on is not in the table.
    """
    return _document()["addons"][name]["version"]


def hyperpod_addon_tolerations(name: str) -> tuple[str, ...] | None:
    """Where the tolerations of an add-on's pods stand in its values; None where that is not published, and
    empty where it tolerates every taint."""
    keys: list[str] | None = _document()["addons"][name].get("tolerations")
    return tuple(keys) if keys is not None else None


def hyperpod_addon_window(name: str) -> tuple[str, str | None]:
    """First and last Kubernetes release of the pinned version; None where the last is not known.

    Raises:
        KeyError: the add-on is not in the table.
    """
    first, last = _document()["addons"][name]["kubernetes"]
    return first, last


def inference_needs() -> Mapping[str, str]:
    """The least version of each add-on that the inference add-on requires; read-only."""
    return MappingProxyType(dict(_document()["inference"]["needs"]))


def inference_since(feature: str) -> str:
    """The first version of the inference add-on that has a feature: `gateway`, `disaggregation`, ...

    Raises:
        KeyError: nothing is known of the feature.
    """
    return _document()["inference"]["since"][feature]


def inference_role_prefix() -> str:
    """What the name of the operator's role must begin with."""
    return _document()["inference"]["role_prefix"]


def engine_floor(engine: str) -> str:
    """The least version of `vllm` or `lmcache` that routes by what caches hold."""
    return _document()["inference"]["engines"][engine]


def disaggregated_types() -> tuple[str, ...]:
    """Instance types on which prefill and decode may be apart, without `ml.`."""
    return tuple(name for name, one in instance_types().items() if one.hyperpod_disaggregation)


def addon_order(version: str) -> tuple[int, ...]:
    """Of versions of add-ons, to compare them: `v1.18.2-eksbuild.2` as (1, 18, 2, 2)."""
    release, _, build = version.removeprefix("v").partition("-eksbuild.")
    return (*(int(part) for part in release.split(".")), int(build or 0))


def hyperpod_kubernetes_window() -> tuple[str, str]:
    """First and last Kubernetes release of HyperPod's images."""
    window = _document()["kubernetes"]
    return window["first"], window["last"]


def hyperpod_kubernetes_agreed() -> str:
    """The last Kubernetes release that all of AWS's pages have for HyperPod."""
    return _document()["kubernetes"]["agreed"]


def hyperpod_kubernetes_pages() -> tuple[tuple[str, str, str], ...]:
    """AWS's pages on HyperPod and Kubernetes: title, last release, and date of the page or of its reading."""
    return tuple((page["page"], page["last"], page["date"]) for page in _document()["kubernetes"]["pages"])


def training_operator_floor(resilience: str) -> str:
    """The lowest version of the training operator for a kind of resilient training, as `v1.2.0`.

    Raises:
        KeyError: there is no such kind.
    """
    return _document()["training"]["operator_floor"][resilience]


def governance_floor() -> str:
    """The lowest version of task governance beside the training operator."""
    return _document()["training"]["task_governance_floor"]


def has_governance_type(resource_type: str, region: str) -> bool:
    """Return whether CloudFormation is known to have a type of task governance in a Region."""
    return region in _document()["task_governance"]["types"][resource_type]


def training_job() -> Mapping[str, Any]:
    """The training operator's own kind of job: `api_version`, `kind`, and `agent_port` of its pods."""
    return MappingProxyType(_document()["training"]["job"])


def operator_frameworks() -> tuple[str, ...]:
    """What Kueue calls that kind of job, which the operator itself suspends and starts."""
    return tuple(_document()["training"]["kueue_frameworks"])


def packages_of_image(resilience: str) -> tuple[str, ...]:
    """What an image must have, as pip says it: of `restart`, `checkpointless`, `elastic` or
    `tiered-checkpoints`."""
    if resilience == "tiered-checkpoints":
        return tuple(_document()["tiered_checkpoints"]["image"])
    return tuple(_document()["training"]["image"][resilience])


def tiered_checkpoints() -> Mapping[str, Any]:
    """Managed tiered checkpoints: `percent` of memory (least, most), `port`, `log_folder`."""
    return MappingProxyType(_document()["tiered_checkpoints"])
