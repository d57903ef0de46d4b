"""One environment: everything a user may ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, PrivateAttr

from ultracluster.config.base import IN_LINES, ON_ONE_LINE, OR_TOKEN, SEEN, Line, Many, Model
from ultracluster.config.directory import Directory
from ultracluster.config.governance import Governance
from ultracluster.config.health import Health
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.lifecycle_steps import StepFile
from ultracluster.config.lustre import LustreFacts, lustre_of
from ultracluster.config.network import Network
from ultracluster.config.nodes import DeclaredInstanceType, GroupName, NodeGroup
from ultracluster.config.observability import Observability
from ultracluster.config.orchestrator import KUBERNETES, Orchestrator
from ultracluster.config.pcs import Pcs
from ultracluster.config.session_user import SESSION_USER, image_user
from ultracluster.config.storage import FIRST_LUSTRE, DataRepository, Storage
from ultracluster.config.teams import Team, TeamName
from ultracluster.config.users import User, UserName

StackPart = Literal[
    "foundation",
    "observability",
    "network",
    "egress",
    "buckets",
    "storage",
    "repositories",
    "control-plane",
    "system",
    "cluster",
    "workloads",
    "protection",
    "alarms",
]
"""Last part of the name of a stack: `<environment>-<part>`."""
STACK_PARTS: tuple[StackPart, ...] = get_args(StackPart)
"""Every stack that an environment of any orchestrator can have, in the order in which they are deployed."""

ENVIRONMENT_TAG = "ultracluster:environment"
"""On everything that is made for an environment, with its name."""
RELEASE_FORM = r"^([a-z][a-z0-9-]*-)?[0-9]+\.[0-9]+(\.[0-9]+)?$"


class Software(Model):
    """The locked set of versions that nodes are brought to."""

    release: Annotated[
        str,
        Field(pattern=RELEASE_FORM, examples=["2026.11", "hyperpod-slurm-2026.09"]),
    ]
    """Software release, in quotes; `ultracluster software show` prints them. Or the path of a lock file of
    your own, `./releases/mine-2026.11.lock`, from the folder of the file that names it."""
    mirror: (
        Annotated[
            str,
            Field(
                pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._/-]+)?$",
                examples=["s3://example-software/ultracluster"],
            ),
            OR_TOKEN,
        ]
        | None
    ) = None
    """Mirror that `ultracluster software mirror` made: bucket and prefix in S3. Nodes then download
    nothing from the internet, which `egress: closed` asks for. By default they go to the makers' own
    addresses for what their image lacks."""
    strict: bool = False
    """Every component has exactly the release's version, or the node fails. By default a node keeps what its
    image has from the release's floor on, and joins without what can be done without."""


class Access(Model):
    """How people log in: through SSM Session Manager, without SSH ingress."""

    session_user: UserName | None = None
    """Operating-system user of a session; by default `ultracluster`, who may not sudo. Nodes make the user,
    with the same id everywhere, unless their image or directory has one of that name. The user of the image
    (`ubuntu`, `ec2-user`, `rocky`) may sudo: sessions of administrators have a document of their own."""
    session_logs: Literal["cloudwatch", "none"] = "cloudwatch"
    """Where what is typed and shown in sessions is kept: a log group of the cluster's stack, encrypted with
    the environment's key; or nowhere."""
    session_log_days: Literal[30, 60, 90, 120, 180, 365, 731] = 365
    """Days until CloudWatch Logs drops a record of a session."""
    idle_timeout_minutes: Annotated[int, Field(ge=1, le=60)] = 20
    """Minutes without input until a session ends."""
    max_session_minutes: Annotated[int, Field(ge=1, le=1440)] = 720
    """Minutes until a session ends in any case."""
    node_ssh: Literal["jobs", "open"] | None = None
    """Who reaches compute nodes of a Slurm cluster by SSH from other nodes: users whose job runs there, and
    nobody else but the image's own user; or every user. By default `jobs` where `users` or a directory gives
    people accounts of their own, else `open`."""
    node_metadata: Literal["services", "everyone"] = "services"
    """Who on the nodes of a Slurm cluster reaches the instance metadata, and with it the credentials of the
    node's role: root and the agents of AWS, or every user. On Kubernetes the hop limit keeps pods from it."""
    metadata_users: Many[UserName] = ()
    """Users of further services on Slurm nodes that need the instance metadata, e.g. of a monitoring agent;
    never of people."""


class Acknowledgement(Model):
    """A warning that someone has read and accepts."""

    rule: Annotated[str, Field(pattern=r"^[A-Z]{2,4}[0-9]{3}$", examples=["FSX012"])]
    """Id of the rule."""
    at: Line | None = None
    """Path of the finding (`storage.lustre.efa`), or of a part that contains it; everywhere by default."""
    reason: Annotated[str, Field(min_length=15), IN_LINES]
    """Why it is right here; shown wherever the finding is."""


NAME = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
"""Form of an environment's name; at most `MOST_OF_NAME` characters."""
MOST_OF_NAME = 30


class Environment(Model):
    """One file under `environments/`: one cluster with its network and storage."""

    name: Annotated[str, Field(pattern=NAME, max_length=MOST_OF_NAME)]
    """In the name of every stack: `<name>-network`, `<name>-storage`, `<name>-cluster` and others."""
    account: Annotated[str, Field(pattern=r"^[0-9]{12}$")] | None = None
    """AWS account, twelve digits in quotes; by default the one whose credentials deploy."""
    region: Annotated[str, Field(examples=["us-east-1"]), ON_ONE_LINE]
    """AWS Region."""
    protect: bool = False
    """Retain and protect against deletion what holds data; terminate-protect every stack."""
    tags: dict[
        Annotated[str, Field(min_length=1, max_length=128), ON_ONE_LINE],
        Annotated[str, Field(max_length=256), ON_ONE_LINE],
    ] = {}
    """Tags on every resource, beside `ultracluster:environment`; for cost allocation."""
    governance: Governance = Governance.model_construct()
    """What your company's rules for its accounts ask for: bounds and names of roles, names of stacks."""
    network: Network
    storage: Storage = Storage.model_construct()
    orchestrator: Orchestrator
    node_groups: Annotated[dict[GroupName, NodeGroup], Field(min_length=1, max_length=1000)]
    """Node groups by name. HyperPod takes 100 (CreateCluster, InstanceGroups), the others fewer."""
    teams: dict[TeamName, Team] = {}
    """Teams that share the accelerators, by name: queues on Kubernetes, accounts in Slurm. Without any,
    everybody shares everything."""
    users: dict[UserName, User] = {}
    """People with an account on the nodes of a Slurm cluster, by name: the same ids, groups and keys
    everywhere, homes on the shared file system, no sudo (docs/users.md). `ultracluster apply users` brings a
    change to the nodes without a deploy."""
    directory: Directory | None = None
    """Accounts of people from an LDAP directory or Microsoft Active Directory, on HyperPod with Slurm and
    PCS, also beside `users` (docs/directory.md)."""
    software: Software
    health: Health = Health.model_construct()
    """What is done about faulty nodes under Slurm."""
    observability: Observability | None = None
    """Metrics, alerts, dashboards and a budget; by default nothing of it is made."""
    lifecycle_steps: Many[StepFile] = ()
    """Node steps of your own, `NN_name.sh` with the functions of a step (docs/own-steps.md): paths from the
    folder of the file that names them. Nodes run them after ours, in the order of their numbers."""
    prices: Annotated[str, Field(pattern=f"^{SEEN}+\\.csv$", examples=["../prices.csv"])] | None = None
    """Your own prices, which take precedence over the shipped ones: path from the folder of the file that
    names it; by default `prices.csv` next to this file, where there is one (docs/cost.md)."""
    access: Access = Access.model_construct()
    instance_types: dict[Line, DeclaredInstanceType] = {}
    """Instance types that the catalogue does not have, by name as EC2 will write it."""
    acknowledge: Many[Acknowledgement] = ()
    """Warnings that are accepted, each with its reason."""

    _file: Path | None = PrivateAttr(default=None)
    _in_app: bool = PrivateAttr(default=False)
    _resolved: Any = PrivateAttr(default=None)
    """What `model.resolve` made of this environment; kept here so that it is made once."""

    @property
    def file(self) -> Path:
        """Where it was read from; where it was not read from a file, where one of its name belongs."""
        return self._file or Path("environments") / f"{self.name}.yaml"

    @property
    def asked_as(self) -> str:
        """What a command calls it: its name where its file is in environments/, else the path of its file."""
        usual = Path("environments") / f"{self.name}.yaml"
        return self.name if self.file.absolute() == usual.absolute() else str(self.file)

    def at(self, file: Path) -> Environment:
        """The same environment, read from this file: its lock lies beside it."""
        copy = self.model_copy()
        copy._file = file
        return copy

    @property
    def in_app(self) -> bool:
        """Return whether constructs in an app describe it, so that no command locks anything for it."""
        return self._in_app

    def without_file(self) -> Environment:
        """The same environment, described by constructs in an app."""
        copy = self.model_copy()
        copy._in_app = True
        return copy

    @property
    def cluster_name(self) -> str:
        return self.orchestrator.cluster_name or self.name

    @property
    def session_user(self) -> str:
        """Who a session logs in as."""
        return self.access.session_user or SESSION_USER

    @property
    def admin_user(self) -> str:
        """Who a session of an administrator logs in as: the image's own user, who may sudo."""
        return image_user(self.orchestrator)

    @property
    def kubernetes(self) -> Eks | HyperPodEks | None:
        """Settings of the Kubernetes control plane; None under Slurm."""
        return self.orchestrator if isinstance(self.orchestrator, Eks | HyperPodEks) else None

    @property
    def lustre(self) -> LustreFacts | None:
        """The Lustre file system in one form for all deployments; None where there is none."""
        return lustre_of(self.storage.lustre) if self.storage.lustre else None

    @property
    def lustres(self) -> dict[str, LustreFacts]:
        """All Lustre file systems by name, in the order of the file; the first is `storage.lustre`."""
        first = {FIRST_LUSTRE: self.storage.lustre} if self.storage.lustre else {}
        return {name: lustre_of(one) for name, one in {**first, **self.storage.further_lustre}.items()}

    @property
    def makes_network(self) -> bool:
        """Whether anything of the network is ours to make."""
        network = self.network
        return network.makes_subnet or not (network.vpc and network.security_group)

    @property
    def dual_stack(self) -> bool:
        """Whether nodes have IPv6 addresses, too."""
        return isinstance(self.orchestrator, Pcs) and self.orchestrator.network_type == "ipv6"

    @property
    def makes_foundation(self) -> bool:
        """Whether the key, or the log group of a Kubernetes control plane, is ours to make."""
        return not self.storage.key or self.orchestrator.kind in KUBERNETES

    @property
    def makes_egress(self) -> bool:
        """Whether any way out of the network is ours to make: NAT gateway, route to one, VPC endpoints, or
        the rules that let nodes reach endpoints."""
        network = self.network
        if not self.makes_network or network.vpc is None:
            return self.makes_network
        if network.egress == "closed" and network.security_group is None:
            return True  # the rules that let nodes out to endpoints
        if network.makes_subnet:
            return network.egress == "nat" or network.vpc.create_endpoints
        # a gateway endpoint is an entry in the route table of a subnet that is made here
        interfaces = network.egress == "closed" or bool(network.extra_endpoints)
        return network.vpc.create_endpoints and interfaces

    @property
    def makes_buckets(self) -> bool:
        """Whether the bucket of the scripts, or that of the data, is ours to make."""
        return not self.storage.scripts_bucket or self.makes_data_bucket

    @property
    def makes_storage(self) -> bool:
        """Whether a file system or an accounting database is ours to make."""
        storage = self.storage
        return (
            any(lustre.new for lustre in self.lustres.values())
            or (storage.openzfs is not None and storage.openzfs.deployment != "existing")
            or self.makes_database
        )

    @property
    def makes_protection(self) -> bool:
        """Whether anything is ours to protect: a control plane, or a stack that holds data."""
        watched = self.observability is not None
        holds = self.makes_foundation or watched or self.makes_buckets or self.makes_storage
        return self.protect and (self.orchestrator.kind in KUBERNETES or holds)

    @property
    def makes_database(self) -> bool:
        """Whether an accounting database is ours to make."""
        database = self.storage.accounting_database
        return database is not None and database.kind != "existing"

    @property
    def data_repositories(self) -> dict[str, DataRepository]:
        """Data repository associations of the first Lustre file system, if it is made, by folder."""
        return dict(self.lustre.data_repositories) if self.lustre else {}

    @property
    def all_data_repositories(self) -> dict[str, dict[str, DataRepository]]:
        """Those of every Lustre file system that has some, by its name and then by folder."""
        links = {name: dict(lustre.data_repositories) for name, lustre in self.lustres.items()}
        return {name: own for name, own in links.items() if own}

    @property
    def makes_data_bucket(self) -> bool:
        """Whether a data repository association asks for the environment's own bucket."""
        links = self.all_data_repositories.values()
        return any(repository.bucket is None for own in links for repository in own.values())

    @property
    def stack_names(self) -> tuple[str, ...]:
        """The stacks of this environment, in the order in which they are deployed."""
        kubernetes = self.orchestrator.kind in KUBERNETES
        parts: dict[StackPart, bool] = {
            "foundation": self.makes_foundation,
            "observability": self.observability is not None,
            "network": self.makes_network,
            "egress": self.makes_egress,
            "buckets": self.makes_buckets,
            "storage": self.makes_storage,
            "repositories": bool(self.all_data_repositories),
            "control-plane": kubernetes,
            "protection": self.makes_protection,
            "system": kubernetes,
            "cluster": True,
            "workloads": kubernetes,
            "alarms": self.observability is not None,
        }
        return tuple(self.stack_name(part) for part in STACK_PARTS if parts[part])

    @property
    def possible_stack_names(self) -> tuple[str, ...]:
        """The stacks that an environment of this name can have had, whatever its file said then."""
        return tuple(self.stack_name(part) for part in STACK_PARTS)

    def stack_name(self, part: StackPart) -> str:
        """What one of its stacks is called in AWS: `dev-network`, or `training-dev-network` with a prefix."""
        return f"{self.governance.stack_prefix or ''}{self.name}-{part}"

    def groups(self, role: str) -> dict[str, NodeGroup]:
        """The node groups of one role, by name."""
        return {name: group for name, group in self.node_groups.items() if group.role == role}
