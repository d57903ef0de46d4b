"""The instance type of a node group: from the catalogue, or declared in the environment file."""

from __future__ import annotations

from collections.abc import Mapping

from ultracluster.catalog import Accelerator, InstanceType, instance_type, ultraserver
from ultracluster.catalog.cpu_types import estimated_type
from ultracluster.catalog.instances import family_facts
from ultracluster.config.environment import Environment
from ultracluster.config.nodes import DeclaredInstanceType, NodeGroup

_MAKERS = ("NVIDIA", "AWS")


def instance_type_of(environment: Environment, group: NodeGroup) -> InstanceType | None:
    """Return what is known of the type of `group`; None where neither catalogue nor environment knows it."""
    return type_by_name(group.instance_type, environment.instance_types)


def type_by_name(name: str, declared: Mapping[str, DeclaredInstanceType]) -> InstanceType | None:
    """Return what is known of a type; None where nobody knows it.

    The catalogue comes first: its figures are compared with AWS's, a declaration's are not. Last comes an
    estimate, which only types without accelerators have.
    """
    if found := instance_type(name):
        return found
    return made_from(name, declared[name]) if name in declared else estimated_type(name)


def made_from(name: str, declared: DeclaredInstanceType) -> InstanceType:
    """A declared type in the catalogue's form.

    What a declaration does not say stays unknown, except what joins the accelerators of its family. HyperPod
    is taken to know the type, and FSx to serve it over EFA, as it does every EFA type since Nitro v4 but for
    the families that it leaves out. The layout of its network is that of `network_like`.
    """
    family = family_facts(name.partition(".")[0])
    model = instance_type(declared.network_like) if declared.network_like else None
    interfaces = declared.lustre_efa_interfaces
    if interfaces is None and (declared.efa_interfaces == 0 or family.get("lustre_efa_client") is False):
        interfaces = 0
    return InstanceType(
        name=name,
        vcpu=declared.vcpu,
        memory_gib=declared.memory_gib,
        architecture=declared.architecture,
        accelerator=_accelerator(declared),
        network_gbps=declared.network_gbps,
        network_cards=declared.network_cards,
        efa_interfaces=declared.efa_interfaces,
        efa_only=bool(model and model.efa_only),
        efa_on_card_0=bool(model and model.efa_on_card_0),
        efa_cards=model.efa_cards if model else (),
        efa_layout_rule=model.efa_layout_rule if model else "",
        network_interfaces=model.network_interfaces if model else None,
        ipv4_per_interface=model.ipv4_per_interface if model else None,
        network_interfaces_per_card=model.network_interfaces_per_card if model else None,
        network_cards_api=model.network_cards_api if model else (),
        hyperpod_addresses_slurm=declared.addresses,
        hyperpod_addresses_eks=declared.addresses,
        hyperpod=True,
        lustre_efa_client=interfaces != 0,
        lustre_efa_interfaces=interfaces,
        lustre_gds_client=declared.lustre_gds_client,
        link=declared.link or family.get("link"),
        nvswitch=declared.nvswitch,
        imex=family.get("imex") if declared.imex is None else declared.imex,
        neuron_cores=family.get("neuron_cores"),
        neuron_cores_joined=family.get("neuron_cores_joined", 1),
        neuron_topology=family.get("neuron_topology", ""),
        ultraserver=tuple(one for one in declared.ultraservers if ultraserver(one)),
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
