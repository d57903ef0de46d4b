"""The instance type of a node group: from the catalogue, or declared in the environment file."""

from __future__ import annotations

from ultracluster.catalog import Accelerator, InstanceType, instance_type, instance_types
from ultracluster.config import Environment
from ultracluster.config.nodes import DeclaredInstanceType, NodeGroup

_MAKERS = ("NVIDIA", "AWS")


def instance_type_of(environment: Environment, group: NodeGroup) -> InstanceType | None:
    """What is known of the type of `group`; None where neither catalogue nor environment knows it.

    The catalogue comes first: its figures are compared with AWS's, a declaration's are not.
    """
    name = group.instance_type
    if known := instance_type(name):
        return known
    declared = environment.instance_types.get(name)
    return made_from(name, declared) if declared else None


def known_type_of(environment: Environment, group: NodeGroup) -> InstanceType:
    """The type of `group` in an environment that passed the rules: they let no unknown one pass."""
    known = instance_type_of(environment, group)
    assert known, f"{group.instance_type}: the rules let no unknown type pass"
    return known


def every_type_of(environment: Environment, group: NodeGroup) -> tuple[InstanceType | None, ...]:
    """What is known of the type of `group`, and of its further types; None for an unknown one."""
    return (
        instance_type_of(environment, group),
        *(
            instance_type_of(environment, group.model_copy(update={"instance_type": name}))
            for name in group.instance_types
        ),
    )


def type_alike(known: InstanceType, architecture: str, role: str) -> str:
    """A type of `architecture` and about this size for a node that runs no jobs.

    For compute there is no simple exchange.
    """
    if role == "compute":
        return f"a second environment for these nodes, or a type that is {architecture}"
    prefix = "m7g." if architecture == "arm64" else "m7i."
    sizes = [one for one in instance_types().values() if one.name.startswith(prefix)]
    return min(sizes, key=lambda one: (abs(one.vcpu - known.vcpu), one.name)).name


def made_from(name: str, declared: DeclaredInstanceType) -> InstanceType:
    """A declared type in the catalogue's form.

    What a declaration does not say stays unknown. HyperPod is taken to know the type, and FSx to
    serve it over EFA, as it does every EFA type since Nitro v4 outside the trn2 family.
    """
    return InstanceType(
        name=name,
        vcpu=declared.vcpu,
        memory_gib=declared.memory_gib,
        architecture=declared.architecture,
        accelerator=_accelerator(declared),
        network_gbps=declared.network_gbps,
        network_cards=declared.network_cards,
        efa_interfaces=declared.efa_interfaces,
        hyperpod_addresses_slurm=declared.addresses,
        hyperpod_addresses_eks=declared.addresses,
        hyperpod=True,
        lustre_efa_client=declared.efa_interfaces > 0 and not name.startswith("trn2"),
        sources=(declared.source,),
        declared=True,
    )


def _accelerator(declared: DeclaredInstanceType) -> Accelerator | None:
    if not declared.accelerators:
        return None
    maker, _, rest = declared.accelerator.partition(" ")
    if maker not in _MAKERS or not rest:
        maker = "AWS" if maker.startswith(("Trainium", "Inferentia")) else "NVIDIA"
        rest = declared.accelerator
    return Accelerator(
        name=rest,
        manufacturer=maker,
        count=declared.accelerators,
        memory_gib=declared.accelerator_memory_gib,
    )
