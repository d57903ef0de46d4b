"""What rows of the tables call `{script}`, `{key}` or `{other_key}`: ARNs and names of one environment."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from iam_proof.calls import USER_ID
from iam_proof.people import functions, nodes, pods, web_pods
from iam_proof.world import STRANGER, World
from ultracluster.account.environment_policy import instance_tags
from ultracluster.model import resolve
from ultracluster.model.job_access import workdir_place
from ultracluster.model.login import user_document

NODES = (
    "AWS::EC2::LaunchTemplate",
    "AWS::EKS::Nodegroup",
    "AWS::PCS::ComputeNodeGroup",
    "AWS::SageMaker::Cluster",
    "Custom::PclusterCluster",
)
"""What tells of nodes: their subnets, groups and scripts."""
ENTRY = "hyperpod_on_init_complete.sh"
Names = dict[str, list[str]]


def names_of(world: World, other: World | None = None) -> Names:
    """Values by name; an empty list where the environment has no such thing.

    Args:
        other: another environment in the same account and Region, whose names begin with `other_`.
    """
    found = _place(world) | _made(world) | _roles(world) | _network(world) | _named_buckets(world)
    found |= _of_jobs(world) | _of_orchestrator(world)
    if other:
        found |= {f"other_{name}": values for name, values in names_of(other).items()}
    return found


def _place(world: World) -> Names:
    ec2 = f"arn:aws:ec2:{world.region}:{world.account}"
    digits = "0123456789abcdef0"
    (key, value), *_ = instance_tags(resolve(world.config)) or (("owner", "nobody"),)
    return {
        "user_id": [USER_ID],
        "instance_tag": [key],
        "instance_tag_value": [value],
        "name": [world.name],
        "region": [world.region],
        "region_without_dashes": [world.region.replace("-", "")],
        "account": [world.account],
        "stranger": [STRANGER],
        "training_plan": [
            one.capacity.arn
            for one in world.config.node_groups.values()
            if one.capacity.kind == "training-plan"
        ],
        "instance": [f"{ec2}:instance/i-{digits}"],
        "interface": [f"{ec2}:network-interface/eni-{digits}"],
        "volume": [f"{ec2}:volume/vol-{digits}"],
        "space": [f"arn:aws:ssm:{world.region}:{world.account}:managed-instance/mi-{digits}"],
        "space_document": [f"arn:aws:ssm:{world.region}:{world.account}:document/SageMaker-SpaceSSH"],
        "advanced_tier": [
            f"arn:aws:ssm:{world.region}:{world.account}:servicesetting/ssm/managed-instance/activation-tier"
        ],
        "assets_bucket": [f"arn:aws:s3:::cdk-hnb659fds-assets-{world.account}-{world.region}"],
    }


def _made(world: World) -> Names:
    buckets = {
        f"{what.lower()}_bucket": _arns(world, "AWS::S3::Bucket", begins=what)
        for what in ("Data", "Log", "Scripts")
    }
    directory = world.config.directory
    return buckets | {
        "certificates_bucket": _arns(world, "AWS::S3::Bucket", begins="AddonsInferenceCertificates"),
        "issuer": [
            world.resolved.properties(stack, logical)["Url"].removeprefix("https://")
            for stack, logical, _ in world.resolved.resources("AWS::IAM::OIDCProvider")
        ],
        "key": _arns(world, "AWS::KMS::Key"),
        "kubectl_function": _arns(
            world, "AWS::Lambda::Function", begins="ControlPlaneKubectlProviderHandler"
        ),
        "writer_function": _arns(world, "AWS::Lambda::Function", begins="AccountingUserWriter"),
        "eks_cluster": _arns(world, "AWS::EKS::Cluster"),
        "pcs_cluster": _arns(world, "AWS::PCS::Cluster"),
        "sagemaker_cluster": _arns(world, "AWS::SageMaker::Cluster", "ClusterArn"),
        "database": _arns(world, "AWS::RDS::DBInstance", "DBInstanceArn"),
        "database_id": [
            world.resolved.ref(stack, logical)
            for stack, logical, _ in world.resolved.resources("AWS::RDS::DBInstance")
        ],
        "metrics_workspace": _arns(world, "AWS::APS::Workspace"),
        "alert_topic": _arns(world, "AWS::SNS::Topic", "TopicArn", "ObservabilityTopic"),
        "single_events_topic": _arns(world, "AWS::SNS::Topic", "TopicArn", "EventsSingleEvents"),
        "session_document": _documents(world, "Session"),
        "admin_document": _documents(world, "AdminSession"),
        # of users whom no shipped environment has
        "user_document": [_document_of_user(world, "alice")],
        "another_users_document": [_document_of_user(world, name) for name in ("bob", "alicea", "al")],
        "session_logs": [
            arn.removesuffix(":*") for arn in _arns(world, "AWS::Logs::LogGroup", begins="SessionLogs")
        ],
        "flow_logs": [arn.removesuffix(":*") for arn in _flow_logs(world)],
        "image": sorted(set(_images(world))),
        "script": sorted(set(_scripts(world))),
        "master_secret": sorted(set(_master_secrets(world))),
        "user_secret": sorted(_user_secrets(world)),
        "slurm_secret": sorted(set(_slurm_secrets(world))),
        "directory_secret": [directory.password_secret_arn] if directory else [],
        "directory_key": [str(directory.password_key_arn)] if directory else [],
    }


def _document_of_user(world: World, user: str) -> str:
    return f"arn:aws:ssm:{world.region}:{world.account}:document/{user_document(world.config, user)}"


def _roles(world: World) -> Names:
    of_nodes = nodes(world)
    return {
        "role": list(world.roles),
        "job_role": [arn for arn, one in world.roles.items() if "JobRole" in one.label],
        "space_role": [arn for arn in world.roles if "SpacesRolesAgent" in arn],
        "node_role": sorted({str(one.role) for many in of_nodes.values() for one in many}),
        "compute_role": sorted({str(one.role) for one in of_nodes.get("compute", [])}),
        "system_role": sorted({str(one.role) for one in of_nodes.get("system", [])}),
        "function_role": sorted({str(one.role) for one in functions(world).values()}),
        "pod_role": sorted({str(one.role) for one in pods(world).values()}),
        **{
            f"{account.replace('-', '_')}_role": [str(one.role)]
            for account, (one, _) in web_pods(world).items()
        },
        "flow_logs_role": [mine["DeliverLogsPermissionArn"] for _, mine in world.each("AWS::EC2::FlowLog")],
        "grafana_role": [mine["RoleArn"] for _, mine in world.each("AWS::Grafana::Workspace")],
        "control_plane_role": [mine["RoleArn"] for _, mine in world.each("AWS::EKS::Cluster")],
    }


def _network(world: World) -> Names:
    used = json.dumps([mine for _, mine in world.each(*NODES)])

    def arns(kind: str, what: str) -> list[str]:
        ids = [world.resolved.ref(stack, logical) for stack, logical, _ in world.resolved.resources(kind)]
        return [f"arn:aws:ec2:{world.region}:{world.account}:{what}/{one}" for one in ids]

    def of_nodes(found: list[str]) -> list[str]:
        return [arn for arn in found if f'"{arn.rpartition("/")[2]}"' in used]

    def existing(what: str, prefix: str) -> list[str]:
        """Of a VPC made elsewhere, what the nodes are in."""
        found = sorted(set(re.findall(rf'"({prefix}-[0-9a-f]+)"', used))) if world.config.network.vpc else []
        return [f"arn:aws:ec2:{world.region}:{world.account}:{what}/{one}" for one in found]

    theirs = world.config.network.vpc
    there = [f"arn:aws:ec2:{world.region}:{world.account}:vpc/{theirs.id}"] if theirs else []
    return {
        "cluster_subnet": of_nodes(arns("AWS::EC2::Subnet", "subnet")) or existing("subnet", "subnet"),
        "cluster_group": of_nodes(arns("AWS::EC2::SecurityGroup", "security-group"))
        or existing("security-group", "sg"),
        "vpc": arns("AWS::EC2::VPC", "vpc") or there,
        "default_group": [
            f"arn:aws:ec2:{world.region}:{world.account}:security-group/"
            + world.resolved.attribute(stack, logical, "DefaultSecurityGroup")
            for stack, logical, _ in world.resolved.resources("AWS::EC2::VPC")
        ],
    }


def _named_buckets(world: World) -> Names:
    """Buckets that the environment names and somebody else made: the mirror, those of data repositories."""
    repositories = getattr(world.config.storage.lustre, "data_repositories", None) or {}
    imported = {f"arn:aws:s3:::{one.bucket}" for one in repositories.values() if one.bucket}
    mirror = str(world.config.software.mirror or "").removeprefix("s3://").rstrip("/")
    return {
        "imported_bucket": sorted(imported),
        "mirror_bucket": [f"arn:aws:s3:::{mirror.partition('/')[0]}"] if mirror else [],
        "mirrored": [f"arn:aws:s3:::{mirror}/gdrcopy/v2.5.1.tar.gz"] if mirror else [],
    }


def _of_jobs(world: World) -> Names:
    """What `storage.job_buckets` names; outside is beside a folder, in the same bucket."""
    buckets = [(f"arn:aws:s3:::{one.bucket}", one) for one in world.config.storage.job_buckets]
    files = [("/".join(part for part in (arn, one.prefix, "42/file") if part), one) for arn, one in buckets]
    folders = [(arn, str(one.prefix)) for arn, one in buckets if one.prefix]
    return {
        "job_file": [file for file, _ in files],
        "job_written_file": [file for file, one in files if one.write],
        "job_read_file": [file for file, one in files if not one.write],
        "job_file_outside": [
            file for arn, one in folders for file in (f"{arn}/others/file", f"{arn}/{one}2/file")
        ],
        "job_whole_bucket": [arn for arn, one in buckets if not one.prefix],
        # one of them: what is listed below belongs to it
        "job_folder_bucket": [arn for arn, _ in folders[:1]],
        "job_folder": [folder for _, folder in folders[:1]],
        "job_key": [one.key.arn for _, one in buckets if one.key],
        **_of_workdirs(world),
    }


def _of_workdirs(world: World) -> Names:
    """Where `job submit --workdir` stores folders; outside is in the same bucket."""
    place = workdir_place(resolve(world.config))
    if place is None:
        return {"workdir": [], "workdir_outside": [], "workdir_key": []}
    bucket = f"arn:aws:s3:::{place.bucket.bucket}"
    return {
        "workdir": [f"{bucket}/{place.folder}/{'0a' * 32}.tar"],
        "workdir_outside": [
            f"{bucket}/{place.folder}/notes.txt",
            f"{bucket}/{place.folder}2/a.tar",
            f"{bucket}/{place.folder.removesuffix('ultracluster-workdirs')}42/file.tar",
        ],
        "workdir_key": [place.bucket.key.arn] if place.bucket.key else [],
    }


def _of_orchestrator(world: World) -> Names:
    """What its optional features name."""
    kind = world.config.orchestrator
    tier, serving = getattr(kind, "checkpoint_tier", None), getattr(kind, "inference", None)
    web_ui = getattr(getattr(kind, "spaces", None), "web_ui", None)
    mounted = [(f"arn:aws:s3:::{one.bucket}", one) for one in getattr(kind, "mountpoint_s3", {}).values()]
    files = [("/".join(part for part in (arn, one.prefix, "42/file") if part), one) for arn, one in mounted]
    folders = [(arn, str(one.prefix)) for arn, one in mounted if one.prefix]
    return {
        "checkpoint_bucket": [f"arn:aws:s3:::{tier.bucket}"] if tier else [],
        "checkpoint_folder": [tier.prefix] if tier else [],
        "checkpoint_key": [tier.key.arn] if tier and tier.key else [],
        "checkpoint_namespace": [str(tier.metrics_namespace)] if tier else [],
        "model_bucket": [f"arn:aws:s3:::{one}" for one in serving.model_buckets] if serving else [],
        "mounted_file": [file for file, _ in files],
        "mounted_written_file": [file for file, one in files if one.write],
        "mounted_file_outside": [f"{arn}/others/file" for arn, _ in folders],
        "mounted_read_file": [file for file, one in files if not one.write],
        "mounted_bucket": [arn for arn, _ in folders[:1]],
        "mounted_folder": [folder for _, folder in folders[:1]],
        "mounted_key": [one.key.arn for _, one in mounted if one.key],
        "signing_key": [web_ui.key_arn] if web_ui else [],
    }


def _arns(world: World, kind: str, attribute: str = "Arn", begins: str = "") -> list[str]:
    return [
        world.resolved.attribute(stack, logical, attribute)
        for stack, logical, _ in world.resolved.resources(kind)
        if logical.startswith(begins)
    ]


def _documents(world: World, begins: str) -> list[str]:
    return [
        f"arn:aws:ssm:{world.region}:{world.account}:document/{world.resolved.ref(stack, logical)}"
        for stack, logical, _ in world.resolved.resources("AWS::SSM::Document")
        if logical.startswith(begins)
    ]


def _scripts(world: World) -> Iterator[str]:
    """Objects that the templates tell nodes to fetch."""
    for _, mine in world.each(*NODES):
        for uri in re.findall(r"s3://([a-z0-9.-]+/[\w./-]+)", json.dumps(mine)):
            yield f"arn:aws:s3:::{uri}" if re.search(r"\.\w+$", uri) else f"arn:aws:s3:::{uri}/{ENTRY}"


def _images(world: World) -> Iterator[str]:
    """Repositories in ECR of images that charts and manifests name."""
    text = json.dumps(world.resolved.templates)
    for account, region, name in re.findall(r"(\d{12})\.dkr\.ecr\.([\w-]+)\.amazonaws\.com/([\w/-]+)", text):
        yield f"arn:aws:ecr:{region}:{account}:repository/{name}"


def _master_secrets(world: World) -> Iterator[str]:
    for _, mine in world.each("AWS::RDS::DBInstance"):
        yield from re.findall(r"\{\{resolve:secretsmanager:(arn:[\w:/-]+?):SecretString", json.dumps(mine))


def _user_secrets(world: World) -> Iterator[str]:
    for stack, logical, _ in world.resolved.resources("AWS::SecretsManager::Secret"):
        if logical.startswith("AccountingUser"):
            yield world.resolved.ref(stack, logical)


def _slurm_secrets(world: World) -> Iterator[str]:
    for _, mine in world.each("AWS::SageMaker::Cluster", "Custom::PclusterCluster"):
        yield from re.findall(r'"(?:SecretArn|PasswordSecretArn)": "(arn:[^"]+)"', json.dumps(mine))


def _flow_logs(world: World) -> Iterator[str]:
    groups = {
        world.resolved.ref(stack, logical): world.resolved.attribute(stack, logical, "Arn")
        for stack, logical, _ in world.resolved.resources("AWS::Logs::LogGroup")
    }
    for _, mine in world.each("AWS::EC2::FlowLog"):
        yield groups[mine["LogGroupName"]]
