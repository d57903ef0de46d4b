"""What is known of an instance type: one column of `instances.json` for each fact.

All that rules, figures, node scripts and acceptance jobs need to know of a type is a column here.
"""

import math
from dataclasses import dataclass

_USUAL_MESSAGE_GIB = 16
"""Of published figures of all-reduce; larger messages change them little."""

NEEDED_FACTS = ("link", "nvswitch", "imex", "lustre_efa_client", "lustre_efa_interfaces", "lustre_gds_client")
"""Columns without which a node with accelerators has to look at its hardware, or does without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """The accelerators of one instance, all alike.

    Source: EC2 DescribeInstanceTypes (GpuInfo, NeuronInfo); for Trainium2 the Neuron documentation.
    """

    name: str
    """As the EC2 API names it, without the maker: "H100", "Trainium2"."""
    manufacturer: str
    """Maker: "NVIDIA" or "AWS"."""
    count: int
    """Accelerators per instance."""
    memory_gib: float
    """GiB over the whole instance, not per accelerator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCards:
    """Consecutive network cards that are alike.

    Source: EC2 DescribeInstanceTypes, NetworkInfo.NetworkCards.
    """

    first: int
    """NetworkCardIndex of the first card."""
    last: int
    """NetworkCardIndex of the last card."""
    baseline_gbps: float
    """Gbit/s per card. Of ENA traffic on some types; never add cards up (g6e repeats the total)."""
    peak_gbps: float
    """Gbit/s per card."""
    interfaces: int
    """Network interfaces per card; a DeviceIndex is below it."""
    interface_types: tuple[str, ...]
    """Of "interface", "efa", "efa-only"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """One EC2 instance type. None means unknown, never "no"; so do a vcpu or memory_gib of 0.

    Source: EC2 DescribeInstanceTypes and the AWS guides that `sources` names.
    """

    name: str
    """As EC2 writes it: family, dot, size."""
    family: str = ""
    """What stands before the dot, "p5en"; filled in from the name."""
    vcpu: int = 0
    """Virtual CPUs at default threads per core."""
    memory_gib: float = 0
    """Main memory in GiB."""
    architecture: str = ""
    """Of the CPU: "x86_64" or "arm64"."""
    accelerator: Accelerator | None = None
    """None where the type has none, or no more than its name is known."""

    network_gbps: float | None = None
    """Gbit/s of the whole instance; on sizes that burst, the peak."""
    network_cards: int = 1
    """Cards of the instance; not the number of its EFA interfaces."""
    network_interfaces: int | None = None
    """Interfaces (ENIs) over all cards."""
    network_interfaces_per_card: int | None = None
    """Interfaces (ENIs) on each card; None also where cards differ."""
    efa_interfaces: int | None = None
    """At most so many EFA interfaces. 0 = no EFA."""
    efa_only: bool = False
    """Takes interfaces of type efa-only (an EFA without an IP address)."""
    efa_on_card_0: bool = False
    """False on p6-b300 and p6e-gb200, whose first card is ENA only."""
    efa_cards: tuple[int, ...] = ()
    """NetworkCardIndex of the cards that take an EFA; for n EFAs use the first n."""
    efa_cards_assumed: bool = False
    """`efa_cards` is an assumption, one EFA per card, because AWS has not published the cards."""
    recommended_efa_interfaces: tuple[int, ...] = ()
    """Numbers of EFAs that the EC2 User Guide describes where it names no maximum."""
    efa_layout_rule: str = ""
    """Key of `efa_layout_rules` in instances.json, which says in words how cards are used."""
    network_cards_api: tuple[NetworkCards, ...] = ()
    """The cards one by one; empty where the API has not published them."""
    nitro: int | None = None
    """Generation of the Nitro System, by EC2's API; that of EFA does not follow from it."""
    efa_generation: int | None = None
    """Generation of EFA, where AWS publishes it: 3 is EFA v3."""
    ultracluster: int | None = None
    """Generation of the EC2 UltraClusters that it stands in, where AWS publishes it."""
    ipv4_per_interface: int | None = None
    """IPv4 addresses on one interface."""
    gpu_direct_rdma: bool | None = None
    """EFA reads and writes accelerator memory directly."""

    hyperpod_addresses_slurm: int | None = None
    """IPv4 addresses that one HyperPod node takes under Slurm. An estimate unless verified."""
    hyperpod_addresses_eks: int | None = None
    """IPv4 addresses that one HyperPod node takes under EKS. An estimate unless verified."""
    hyperpod_addresses_verified: bool = False
    """AWS publishes the two figures (P5 only)."""

    local_nvme_disks: int = 0
    """Instance-store NVMe disks."""
    local_nvme_gb: float = 0
    """Decimal GB over all of them."""
    threads_per_core: tuple[int, ...] = ()
    """Values that CPU options take. Empty: unknown, or not settable at all (g5)."""
    numa_nodes: int | None = None
    """Domains of memory, each with cores and accelerators of its own."""

    spot: bool | None = None
    """The API lists usage class spot; proves no capacity."""
    on_demand: bool | None = None
    """EC2 sells it on demand. False where the price lists had no SKU of it, whatever usage classes the API
    lists; of HyperPod, which has prices of its own, it proves nothing."""
    training_plan: bool = False
    """SageMaker training plans are sold for it (botocore ReservedCapacityInstanceType)."""
    hyperpod: bool | None = None
    """HyperPod takes it (botocore ClusterInstanceType)."""
    hyperpod_regions: tuple[str, ...] = ()
    """Regions with a HyperPod price (cfn-lint). A missing Region proves nothing."""
    regions: tuple[str, ...] = ()
    """Regions with an EC2 price (cfn-lint). A missing Region proves nothing."""
    capacity_block_regions: tuple[str, ...] = ()
    """Regions and Local Zones with Capacity Blocks. A missing one proves nothing."""
    ultraserver: tuple[str, ...] = ()
    """UltraServers it is a member of; see `ultraserver()`."""

    lustre_efa_client: bool | None = None
    """Can mount FSx for Lustre over EFA: an EFA type from Nitro v4, except families that FSx leaves out."""
    lustre_gds_client: bool | None = None
    """The FSx guide names it for GPUDirect Storage."""
    hyperpod_disaggregation: bool = False
    """HyperPod's inference operator takes it for prefill and decode apart (SageMaker Developer Guide,
    disaggregated prefill and decode)."""
    lustre_efa_interfaces: int | None = None
    """EFA interfaces the FSx client set-up uses by default; each is one of 1024 connections."""

    link: str | None = None
    """What joins its accelerators: "NVLink", "NeuronLink", or "PCIe" where nothing else does."""
    nvswitch: bool | None = None
    """Its GPUs are joined by NVSwitches of its own, whose fabric manager runs on it."""
    imex: bool | None = None
    """Its GPUs reach those of other instances over NVLink, in domains that NVIDIA IMEX opens."""
    nccl_protocol: str | None = None
    """Transport protocol that the EFA plugin of NCCL uses on it: "RDMA" or "SENDRECV"."""
    nccl_largest_gib: int | None = None
    """GiB of the largest message of its published figures; see `largest_message_gib`."""
    nccl_two_nodes_judged: bool = False
    """A run on two nodes says enough about its fabric to have a gate."""
    efa_peers: tuple[str, ...] = ()
    """The only families with which it exchanges EFA traffic; empty: no such limit is known."""

    neuron_cores: int | None = None
    """NeuronCores of one Neuron device."""
    neuron_cores_joined: int = 1
    """NeuronCores that the runtime makes one logical core of by default (NEURON_LOGICAL_NC_CONFIG)."""
    neuron_topology: str = ""
    """How its Neuron devices are joined: "2D torus"."""

    notes: tuple[str, ...] = ()
    """What a reader should know, contradictions of sources above all."""
    sources: tuple[str, ...] = ()
    """Where the figures come from."""
    announced: str = ""
    """Day of AWS's announcement, `yyyy-mm-dd`, while EC2's API does not have the type."""
    declared: bool = False
    """Declared in an environment file, not in the catalogue."""
    estimated: bool = False
    """Figures by the name of a type without accelerators that the catalogue does not have."""

    def __post_init__(self) -> None:
        if not self.family:
            object.__setattr__(self, "family", self.name.partition(".")[0])

    @property
    def hyperpod_name(self) -> str:
        """As HyperPod writes it, with its prefix "ml."."""
        return f"ml.{self.name}"

    @property
    def least_efa_interfaces(self) -> int:
        """So many EFA interfaces a node has at least: as many as the type takes, or, where AWS names no such
        number (p6e-gb200), those of the smallest layout it describes."""
        if self.efa_interfaces is not None:
            return self.efa_interfaces
        return min(self.recommended_efa_interfaces, default=0)

    @property
    def largest_message_gib(self) -> int | None:
        """GiB of the largest message with which nccl-tests measures it; None where its memory is unknown.

        nccl-tests keeps three buffers of the message in each accelerator; a fourth part is left for NCCL.
        """
        each = self.accelerator.memory_gib / self.accelerator.count if self.accelerator else 0
        if self.nccl_largest_gib or not each:
            return self.nccl_largest_gib
        return max(1, min(_USUAL_MESSAGE_GIB, 2 ** int(math.log2(max(each / 4, 1)))))

    @property
    def logical_neuron_cores(self) -> int | None:
        """Cores that programs of one instance see by default; None for other makers, or where unknown."""
        if not self.accelerator or not self.neuron_cores:
            return None
        return self.accelerator.count * self.neuron_cores // self.neuron_cores_joined

    @property
    def line_rate(self) -> float | None:
        """GB/s (10^9 bytes) that all EFA interfaces of an instance carry; None: unknown, or NVLink joins
        instances, or accelerators without NVSwitch reach nothing like it."""
        return self.network_gbps / 8 if self.network_gbps and self.nvswitch and not self.imex else None

    @property
    def unknown_facts(self) -> tuple[str, ...]:
        """Columns that nodes with accelerators and plans need, and that are not filled in."""
        if self.accelerator is None:
            return ()
        return tuple(name for name in NEEDED_FACTS if getattr(self, name) is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class UltraServer:
    """Instances that share one accelerator domain. Figures are sums over the UltraServer.

    Source: AWS pages on UltraServers and Capacity Blocks; see `sources`.
    """

    name: str
    """As AWS writes it, "u-p6e-gb200x72"; a name of our own where `published` is false."""
    member: str | None
    """Its instance type; None while AWS has not named it."""
    published: bool
    """AWS's API knows the name."""
    instances: int
    accelerators: int
    vcpu: int
    memory_gib: float
    accelerator_memory_gib: float
    efa_gbps: float | None
    """Gbit/s of EFA; None where sources contradict each other."""
    capacity_block_regions: tuple[str, ...]
    """Regions and Local Zones with Capacity Blocks for it. A missing one proves nothing."""
    hyperpod_name: str | None
    """Its name in SageMaker training plans."""
    node_label: str | None = None
    """Label by which Neuron's device plugin tells on Kubernetes which nodes are of one UltraServer."""
    topology: str = ""
    """What joins its instances: "ring of devices with the same place"."""
    notes: tuple[str, ...]
    sources: tuple[str, ...]
