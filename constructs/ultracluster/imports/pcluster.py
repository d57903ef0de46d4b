"""A configuration file of AWS ParallelCluster 3 (User Guide, "Cluster configuration file"; names and defaults
by its schema of 3.16.1, pcluster/schemas/cluster_schema.py and pcluster/config/cluster_config.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_args

from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.imports.ledger import Ledger, Part
from ultracluster.imports.outcome import Drafted
from ultracluster.imports.pcluster_queues import Queues, root_volume, slurm_settings
from ultracluster.imports.pcluster_storage import storage
from ultracluster.imports.placing import database_place, place
from ultracluster.imports.reasons import levels, reasons
from ultracluster.imports.surroundings import Asked

TOOL = "AWS ParallelCluster"
KIND = ParallelCluster().kind
_SYSTEMS = get_args(ParallelCluster.model_fields["os"].annotation)
_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
_WORLD = "0.0.0.0/0"


def is_configuration(data: Mapping[str, Any]) -> bool:
    """Return whether it is one of ParallelCluster's."""
    return "HeadNode" in data or "Scheduling" in data


def drafted(data: Mapping[str, Any], name: str, asked: Asked) -> Drafted:
    """Return what the configuration comes to as an environment."""
    ledger = Ledger(reasons=reasons("ParallelCluster"), levels=levels("ParallelCluster"))
    top = ledger.part(data)
    scheduling = top.part("Scheduling")
    if (scheduler := scheduling.text("Scheduler")) not in (None, "slurm"):
        ledger.refuse(
            scheduling.place("Scheduler"), f"is {scheduler}", "slurm, which is what can be imported"
        )
    queues = Queues(ledger)
    for queue in scheduling.parts("SlurmQueues"):
        queues.add(queue)
    if not queues.groups:
        ledger.refuse(scheduling.place("SlurmQueues"), "has no compute resource", "name one at least")
    types = [group["instance_type"] for group in queues.groups.values()]
    subnets, security = _network(top, asked)
    settled = place(ledger, asked, top.text("Region") or "", KIND, types, subnets=subnets, groups=security)
    image = top.part("Image")
    own_image = image.text("CustomAmi")
    groups, pools = _people_nodes(top, own_image)
    for group in queues.groups.values():
        if own_image:
            group.setdefault("image", own_image)
    if queues.buckets:
        ledger.changed(
            "Scheduling.SlurmQueues.Iam.S3Access", "all jobs have the rights on buckets, not one queue",
            "they are storage.job_buckets; a bucket of another account must allow it in its policy, too",
        )  # fmt: skip
    kept = storage(top.parts("SharedStorage"), ledger, asked.around, queues.buckets)
    if database := _database(scheduling.part("SlurmSettings"), ledger, settled, asked):
        kept["accounting_database"] = database
    environment: dict[str, Any] = {
        "name": name,
        **settled,
        "tags": _tags(top),
        "governance": _governance(top.part("Iam")),
        "storage": kept,
        "orchestrator": {
            "kind": KIND,
            **_system(image, ledger),
            **_scheduling(scheduling, ledger),
            **_head_storage(top.part("HeadNode"), ledger),
            **_home(top.part("DeploymentSettings")),
            **({"nvme_mount_path": queues.nvme} if queues.nvme else {}),
            "partitions": queues.partitions,
            "login_pools": pools,
            "monitoring": _monitoring(top.part("Monitoring")),
            **_directory(top),
        },
        "node_groups": {**groups, **queues.groups},
    }
    environment["orchestrator"] = {key: one for key, one in environment["orchestrator"].items() if one != {}}
    return Drafted(tool=TOOL, kind=KIND, data=environment, ledger=ledger)


def _network(top: Part, asked: Asked) -> tuple[list[str], list[str]]:
    """Subnets and security groups of nodes by id, those of compute nodes first; only where the account was
    asked, which says what they are."""
    if asked.around is None:
        return [], []
    queues = [queue.part("Networking") for queue in top.part("Scheduling").parts("SlurmQueues")]
    pools = [pool.part("Networking") for pool in top.part("LoginNodes").parts("Pools")]
    head = top.part("HeadNode").part("Networking")
    subnets = [text for network in queues for text in network.texts("SubnetIds")]
    groups = [text for network in queues for text in network.texts("SecurityGroups")]
    for network in (head, *pools):
        subnets += [*network.texts("SubnetIds"), *network.texts("SubnetId")]
        groups += network.texts("SecurityGroups")
    for network in (head, *queues, *pools):
        network.leave(
            "AdditionalSecurityGroups", "nodes have one security group",
            "add the rules that you need of these to it, or to those of file systems",
        )  # fmt: skip
    return subnets, groups


def _people_nodes(top: Part, image: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Head node and login pools as groups, and the settings of the pools."""
    head = top.part("HeadNode")
    node: dict[str, Any] = {
        "role": "controller",
        "instance_type": head.needed("InstanceType", "write the type of the head node"),
        "count": 1,
        **root_volume(head.part("LocalStorage").part("RootVolume")),
    }
    if head.flag("DisableSimultaneousMultithreading"):
        node["threads_per_core"] = 1
    if own := head.part("Image").text("CustomAmi") or image:
        node["image"] = own
    groups, pools = {"head": node}, dict[str, Any]()
    for pool in top.part("LoginNodes").parts("Pools"):
        name = pool.needed("Name", "name the pool")
        group: dict[str, Any] = {
            "role": "login",
            "instance_type": pool.needed("InstanceType", "write the type of the login nodes"),
            "count": 1 if (count := pool.number("Count")) is None else count,
        }
        if own := pool.part("Image").text("CustomAmi") or image:
            group["image"] = own
        settings: dict[str, Any] = {}
        if grace := pool.number("GracetimePeriod"):
            settings["grace_minutes"] = grace
        allowed = pool.part("Ssh").text("AllowedIps")
        if allowed == _WORLD:
            top.ledger.left(
                pool.place("Ssh.AllowedIps"), "SSH is never open to the internet",
                "people log in through Session Manager; networks of your company go into "
                f"orchestrator.login_pools.{name}.ssh_networks",
            )  # fmt: skip
        elif allowed:
            settings["ssh_networks"] = [allowed]
        groups[name] = group
        if settings:
            pools[name] = settings
    return groups, pools


def _system(image: Part, ledger: Ledger) -> dict[str, str]:
    system = image.needed("Os", f"one of {', '.join(_SYSTEMS)}")
    if system and system not in _SYSTEMS:
        family = system.rstrip("0123456789")
        nearest = next((system for system in _SYSTEMS if system.rstrip("0123456789") == family), _SYSTEMS[0])
        others = ", ".join(system for system in _SYSTEMS if system != nearest)
        ledger.changed(
            image.place("Os"), f"ParallelCluster 3.16 has no {system} any more",
            f"{nearest} is written; other systems are {others}",
        )  # fmt: skip
        system = nearest
    return {"os": system}


def _scheduling(scheduling: Part, ledger: Ledger) -> dict[str, Any]:
    settings = scheduling.part("SlurmSettings")
    found: dict[str, Any] = {}
    if (scaling := scheduling.text("ScalingStrategy")) is not None:
        found["scaling"] = scaling
    if (idle := settings.number("ScaledownIdletime")) is not None:
        found["scaledown_minutes"] = idle
    if (update := settings.text("QueueUpdateStrategy")) is not None:
        found["queue_update"] = update.lower().replace("_", "-")
    if settings.flag("EnableMemoryBasedScheduling"):
        found["memory_scheduling"] = True
    lines = _lines(settings, "CustomSlurmSettings")
    pairs: dict[str, Any] = {}
    for number, line in enumerate(lines):
        where = f"{settings.place('CustomSlurmSettings')}[{number}]"
        if (entry := ledger.part(line, where)) and len(entry.data) == 1:
            pairs |= entry.map_all()
        elif entry.map_all():
            ledger.left(
                where, "several keys in one entry make a line of slurm.conf of their own, as NodeName does",
                "node_groups.<group>.slurm_settings and orchestrator.partitions.<name>.slurm_settings hold "
                "those of nodes and partitions",
            )  # fmt: skip
    found["slurm_settings"] = slurm_settings(pairs, settings.place("CustomSlurmSettings"), ledger)
    if found.get("queue_update") == "compute-fleet-stop":
        del found["queue_update"]
        ledger.changed(
            settings.place("QueueUpdateStrategy"),
            "the fleet would have to be stopped by hand before each change, which a deploy cannot do",
            "now jobs finish first (`drain`); orchestrator.queue_update has the others",
        )  # fmt: skip
    return found


def _lines(part: Part, key: str) -> list[Any]:
    """Entries of one key each; one mapping of several is as many."""
    given = part.any(key)
    if isinstance(given, Mapping):
        return [{name: value} for name, value in cast("Mapping[Any, Any]", given).items()]
    if given is not None and not isinstance(given, list):
        part.ledger.refuse(part.place(key), "is not a list", "write a list with one key in each entry")
        return []
    return cast("list[Any]", given or [])


def _head_storage(head: Part, ledger: Ledger) -> dict[str, str]:
    shared = head.text("SharedStorageType")
    encrypted = head.part("SharedStorageEfsSettings").flag("Encrypted")
    if (shared or "").lower() != "efs":
        return {}
    if not encrypted:
        ledger.changed(head.place("SharedStorageType"), "an EFS here is always encrypted", "nothing to do")
    return {"head_storage": "efs"}


def _home(deployment: Part) -> dict[str, str]:
    home = deployment.text("DefaultUserHome")
    return {"default_user_home": home.lower()} if home else {}


def _monitoring(monitoring: Part) -> dict[str, Any]:
    """With ParallelCluster's own defaults where they are others than ours."""
    logs = monitoring.part("Logs").part("CloudWatch")
    if logs.flag("Enabled") is False:
        monitoring.ledger.changed(
            logs.place("Enabled"),
            "logs of the nodes always go to CloudWatch",
            "orchestrator.monitoring has how long",
        )
    days = logs.number("RetentionInDays")
    found: dict[str, Any] = {
        "log_retention_days": 180 if days is None else days,
        "detailed": bool(monitoring.flag("DetailedMonitoring")),
    }
    if (logs.text("DeletionPolicy") or "Retain") != "Retain":
        found["keep_logs"] = False
    if monitoring.part("Dashboards").part("CloudWatch").flag("Enabled") is False:
        found["dashboard"] = False
    if monitoring.part("Alarms").flag("Enabled") is False:
        found["alarms"] = False
    return found


def _directory(top: Part) -> dict[str, Any]:
    if "DirectoryService" not in top:
        return {}
    directory = top.part("DirectoryService")
    found: dict[str, Any] = {
        "domain_name": directory.text("DomainName"),
        "domain_address": directory.text("DomainAddr"),
        "password_secret_arn": directory.text("PasswordSecretArn"),
        "read_only_user": directory.text("DomainReadOnlyUser"),
        "tls_ca_certificate": directory.text("LdapTlsCaCert"),
        "tls_require_certificate": directory.text("LdapTlsReqCert"),
        "access_filter": directory.text("LdapAccessFilter"),
        "generate_ssh_keys": directory.flag("GenerateSshKeysForUsers"),
        "sssd_settings": directory.map("AdditionalSssdConfigs") or None,
    }
    # the file does not say where the servers are, and nodes are let out to nothing that is not named
    found["server_networks"] = list(_PRIVATE)
    top.ledger.assumed(
        "orchestrator.directory_service.server_networks", "the servers are in one of the private networks",
        "write only the networks of the servers",
    )  # fmt: skip
    return {"directory_service": {key: value for key, value in found.items() if value is not None}}


def _database(
    settings: Part, ledger: Ledger, settled: Mapping[str, Any], asked: Asked
) -> dict[str, Any] | None:
    """A database of our own instead of theirs: what is kept there needs to be moved by a person."""
    if "Database" not in settings:
        return None
    database = settings.part("Database")
    for key in ("Uri", "UserName", "PasswordSecretArn"):
        database.any(key)
    found: dict[str, Any] = {"kind": "rds-mysql", **database_place(settled, asked)}
    if name := database.text("DatabaseName"):
        found["database_name"] = name
    ledger.changed(
        database.where,
        "the file has neither the database's group nor a secret with user name and password together",
        "now a new RDS for MySQL is made. To keep the old one write storage.accounting_database: {kind: "
        "existing, endpoint, secret_arn, security_group_id, username}; to move accounts: `sacctmgr dump` and "
        "`sacctmgr load`",
    )
    return found


def _tags(top: Part) -> dict[str, str]:
    pairs = ((tag.text("Key"), tag.text("Value") or "") for tag in top.parts("Tags"))
    return {key: value for key, value in pairs if key}


def _governance(iam: Part) -> dict[str, str]:
    boundary = iam.text("PermissionsBoundary")
    return {"permissions_boundary": boundary} if boundary else {}
