"""Keyword arguments of clusters are the settings of an environment file."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest
from aws_cdk import aws_iam as iam

from ultracluster.clusters.settings import (
    EksSettings,
    HyperPodEksSettings,
    HyperPodSlurmSettings,
    ParallelClusterSettings,
    PcsSettings,
)
from ultracluster.config.base import Model
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.pcs import Pcs

OTHERWISE = {"kind", "cluster_name", "control_plane_subnet_ids", "second_zone_id"}
"""The class says the first; the others are arguments of every cluster, and objects."""


@pytest.mark.parametrize(
    ("settings", "model"),
    [
        (HyperPodSlurmSettings, HyperPodSlurm),
        (PcsSettings, Pcs),
        (ParallelClusterSettings, ParallelCluster),
        (EksSettings, Eks),
        (HyperPodEksSettings, HyperPodEks),
    ],
)
def test_arguments_are_the_fields_of_the_model(settings: type[Any], model: type[Model]) -> None:
    fields = get_type_hints(model, include_extras=True)
    wanted = {name: plain(fields[name]) for name in model.model_fields if name not in OTHERWISE}
    if "admins" in wanted:
        wanted["admins"] = Sequence, frozenset((str, iam.IRole))  # a role names itself

    assert {name: plain(kind) for name, kind in get_type_hints(settings).items()} == wanted


def plain(kind: Any) -> Any:
    """A type without limits and forms; YAML's lists are tuples in the models, and any sequence in Python."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return plain(arguments[0])
    if origin is tuple:
        return Sequence, plain(arguments[0])
    if origin is Sequence:
        return Sequence, plain(arguments[0])
    if origin is dict:
        return dict, *(plain(one) for one in arguments)
    if origin in (Union, types.UnionType):
        return frozenset(plain(one) for one in arguments)
    return kind
