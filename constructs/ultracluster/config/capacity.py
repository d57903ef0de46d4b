"""Where the instances of a node group come from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.base import ON_ONE_LINE, OR_TOKEN, Arn, Model

ReservationId = Annotated[str, Field(pattern=r"^cr-[0-9a-f]{8,17}$"), OR_TOKEN]

STAND_IN = "cr-0123456789abcdef0"
"""In drafts and examples, where a reservation or block must be named and none is bought yet."""


class _Source(Model):
    @property
    def takes_back(self) -> bool:
        """Whether nodes end at two minutes' notice, whenever somebody else needs their instances."""
        return False


class OnDemand(_Source):
    """Instances at the on-demand price, if the zone has them at that moment."""

    kind: Literal["on-demand"] = "on-demand"


class Spot(_Source):
    """Spare instances that AWS may take back at two minutes' notice."""

    kind: Literal["spot"] = "spot"
    allocation: Literal["lowest-price", "capacity-optimized", "price-capacity-optimized"] | None = None
    """How EC2 picks among Spot pools; ParallelCluster and PCS."""

    @property
    def takes_back(self) -> bool:
        return True


class Reservation(_Source):
    """An EC2 On-Demand Capacity Reservation."""

    kind: Literal["reservation"] = "reservation"
    id: ReservationId | None = None
    """The reservation to target; without one, open reservations of the account match."""
    resource_group_arn: Arn | None = None
    """A resource group of reservations to target instead of one reservation."""
    placement_group: Annotated[str, Field(min_length=1, max_length=255), ON_ONE_LINE] | None = None
    """Name of the cluster placement group in which the reservation was made (it then has a
    `PlacementGroupArn`). Without one the nodes are launched into none: in any other group they would not
    match the reservation."""
    interruptible: bool = False
    """It is an interruptible Capacity Reservation, which its owner lends: the owner takes it back at two
    minutes' notice, and nodes end. EC2 is told so at each launch, and of an ordinary reservation never."""

    @property
    def takes_back(self) -> bool:
        return self.interruptible


class CapacityBlock(_Source):
    """An EC2 Capacity Block for ML: a paid block of instances with a start and an end."""

    kind: Literal["capacity-block"] = "capacity-block"
    id: ReservationId
    """The id of the block's reservation (`cr-...`)."""
    starts: (
        Annotated[
            str,
            Field(
                pattern=r"^20[0-9][0-9]-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$",
                examples=["2026-12-01T11:30:00Z"],
            ),
        ]
        | None
    ) = None
    """When the block begins, if it has not yet, in quotes (UTC; its `StartDate`). Until then there are no
    instances: EKS makes the group empty and fills it at that time. Remove it once the block has begun."""


class TrainingPlan(_Source):
    """A SageMaker HyperPod flexible training plan: reserved instances, paid upfront."""

    kind: Literal["training-plan"] = "training-plan"
    arn: Annotated[
        str,
        Field(pattern=r"^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:training-plan/[a-z0-9-]+$"),
        OR_TOKEN,
    ]
    """ARN of a plan that is Scheduled or Active, in the zone of this environment."""


Capacity = Annotated[
    OnDemand | Spot | Reservation | CapacityBlock | TrainingPlan, Field(discriminator="kind")
]
