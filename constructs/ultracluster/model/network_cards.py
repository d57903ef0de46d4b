"""Which network interfaces a node is launched with, on which network card and device.

Layout `efa-only` (EC2 User Guide, "Maximize network bandwidth on Amazon EC2 instances with multiple network
cards"): an ENA interface on card 0 device 0, `efa-only` on card 0 device 1 where card 0 has EFA, and on
device 0 of every further card. eksctl, terraform-aws-eks and older AWS pages count network cards instead of
EFAs and put an EFA on card 0 always, which p6-b300 and p6e-gb200 refuse (eksctl-io/eksctl#8685,
aws/aws-parallelcluster#7143).

Layout `efa` (the AWS PCS templates of awslabs/awsome-distributed-ai, reported to run on p5, p6-b200 and
p6-b300): the combined interface on card 0 device 0 and on device 1 of every further card; where card 0 has no
EFA an ENA interface there, and `efa` on device 0 of the others. AWS Batch's templates say device 0
everywhere: not followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ultracluster.catalog import InstanceType

EfaKind = Literal["efa-only", "efa"]
InterfaceKind = Literal["interface", "efa", "efa-only"]

_GB200 = "P6E_GB200"
_GB200_EFA_GBPS = 1600.0  # all EFAs of an instance together; the catalogue's figure is the aggregate with ENA
_GB200_ENA_GBPS = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkInterface:
    """One interface of a node as EC2's RunInstances takes it."""

    card: int
    """NetworkCardIndex."""
    device: int
    """DeviceIndex on that card."""
    kind: InterfaceKind
    """InterfaceType: "interface" is ENA, "efa" is ENA and EFA, "efa-only" has no IP address."""
    gbps: float | None = None
    """Gbit/s; None if unknown. Of an EFA the even share when the type's EFAs are all in use, of an ENA
    interface the peak of its card. Interfaces of one card share it: never add them up."""


def network_card_plan(
    instance_type: InstanceType, *, efa: EfaKind = "efa-only", interfaces: int | None = None
) -> tuple[NetworkInterface, ...]:
    """The interfaces of one node, the primary one first. Depends on nothing but its arguments.

    Args:
        instance_type: from the catalogue. A type without EFA gets only its ENA interface.
        efa: the kind of the EFA interfaces. `efa-only` takes one IP address per node, `efa` one per
        interface.
        interfaces: how many EFAs; by default all that the type has (EfaInfo.MaximumEfaInterfaces). Where AWS
            names no maximum but layouts, the first of them: p6e-gb200 has 4 (400 Gbit/s each, cards 1, 5, 9,
            13) or 8 (200 Gbit/s each, all odd cards).

    Raises:
        ValueError: the type's EFAs or their cards are unknown, or it does not take the number or kind asked
            for.
    """
    count = _count(instance_type, interfaces)
    _check_kind(instance_type, efa, count)
    cards = instance_type.efa_cards[:count]
    return tuple(_plan(instance_type, efa, sorted(cards)))


def _plan(instance_type: InstanceType, efa: EfaKind, cards: list[int]) -> Iterator[NetworkInterface]:
    share = _efa_gbps(instance_type, len(cards))
    combined = efa == "efa" and 0 in cards
    if combined:
        yield NetworkInterface(card=0, device=0, kind="efa", gbps=share)
    else:
        yield NetworkInterface(card=0, device=0, kind="interface", gbps=_ena_gbps(instance_type))
    for card in cards:
        if card == 0 and combined:
            continue
        device = 1 if card == 0 or (combined and _slots(instance_type, card) > 1) else 0
        yield NetworkInterface(card=card, device=device, kind=efa, gbps=share)


def _count(instance_type: InstanceType, number: int | None) -> int:
    if number == 0:
        return 0
    layouts, most = instance_type.recommended_efa_interfaces, instance_type.efa_interfaces
    if most is None and not layouts:
        raise ValueError(
            f"the number of EFA interfaces of {instance_type.name} is unknown (efa_interfaces, "
            "EfaInfo.MaximumEfaInterfaces of EC2 DescribeInstanceTypes); pass interfaces=0 for a node "
            "without EFA"
        )
    if most is None:
        if number is not None and number not in layouts:
            numbers = " or ".join(map(str, layouts))
            raise ValueError(f"interfaces must be {numbers} on {instance_type.name}, got {number}")
        count = layouts[0] if number is None else number
    else:
        if number is not None and not 0 <= number <= most:
            raise ValueError(f"interfaces must be 0 to {most} on {instance_type.name}, got {number}")
        count = most if number is None else number
    if count > len(instance_type.efa_cards):
        raise ValueError(
            f"which network cards of {instance_type.name} take an EFA is unknown (efa_cards, "
            f"NetworkInfo.NetworkCards of EC2 DescribeInstanceTypes): {count} EFAs, "
            f"{len(instance_type.efa_cards)} cards; pass interfaces=0 for a node without EFA"
        )
    return count


def _check_kind(instance_type: InstanceType, efa: EfaKind, count: int) -> None:
    if not count:
        return
    if efa == "efa-only" and not instance_type.efa_only:
        raise ValueError(f"{instance_type.name} is not known to take efa-only interfaces; pass efa='efa'")
    if efa == "efa" and not takes_combined_efa(instance_type):
        raise ValueError(
            f"the EFA cards of {instance_type.name} take only efa-only interfaces (EC2 User Guide); pass "
            "efa='efa-only'"
        )


def takes_combined_efa(instance_type: InstanceType) -> bool:
    """Whether interfaces of kind `efa` can be on the type's EFA cards: not on the odd cards of p6e-gb200."""
    return instance_type.efa_layout_rule != _GB200


def _slots(instance_type: InstanceType, card: int) -> int:
    """Interfaces that a card takes; 1 where that is unknown."""
    for row in instance_type.network_cards_api:
        if row.first <= card <= row.last:
            return row.interfaces
    return instance_type.network_interfaces_per_card or 1


def _efa_gbps(instance_type: InstanceType, count: int) -> float | None:
    if not count:
        return None
    if instance_type.efa_layout_rule == _GB200:
        return _GB200_EFA_GBPS / count
    if instance_type.network_gbps is None or not instance_type.efa_interfaces:
        return None
    return instance_type.network_gbps / instance_type.efa_interfaces


def _ena_gbps(instance_type: InstanceType) -> float | None:
    if instance_type.efa_layout_rule == _GB200:
        return _GB200_ENA_GBPS
    first = next((row for row in instance_type.network_cards_api if row.first == 0), None)
    return first.peak_gbps if first else None
