"""Capacity that the file names: reservations, Capacity Blocks and training plans."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ultracluster.account.preflight.reservations import open_reservations, reservation, resource_group
from ultracluster.account.preflight.rows import Question, Situation
from ultracluster.account.preflight.training_plans import training_plan
from ultracluster.config.capacity import CapacityBlock, Reservation, TrainingPlan
from ultracluster.config.nodes import NodeGroup


def questions(situation: Situation) -> Iterator[Question]:
    plans: dict[str, list[tuple[str, NodeGroup]]] = defaultdict(list)
    reservations: dict[str, list[tuple[str, NodeGroup]]] = defaultdict(list)
    for name, group in situation.environment.node_groups.items():
        match group.capacity:
            case TrainingPlan(arn=arn):
                plans[arn].append((name, group))
            case CapacityBlock(id=identifier) | Reservation(id=str() as identifier):
                reservations[identifier].append((name, group))
            case Reservation(resource_group_arn=str() as arn):
                yield Question(
                    "capacity", f"resource group of {name}",
                    lambda name=name, group=group, arn=arn: resource_group(situation, name, group, arn),
                )  # fmt: skip
            case Reservation():
                yield Question(
                    "capacity", f"open reservations for {name}",
                    lambda name=name, group=group: open_reservations(situation, name, group),
                )  # fmt: skip
            case _:
                pass
    for identifier, groups in reservations.items():
        yield Question(
            "capacity", identifier,
            lambda identifier=identifier, groups=groups: reservation(situation, identifier, groups),
        )  # fmt: skip
    for arn, groups in plans.items():
        yield Question(
            "capacity",
            arn.rpartition("/")[2],
            lambda arn=arn, groups=groups: training_plan(situation, arn, groups),
        )
