"""Nodes and data without a cluster, as a CDK author writes them first: lists, and constructs as they are."""

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2

from ultracluster import (
    ClusterKey,
    ClusterPlacementGroup,
    DataBucket,
    DataRepositories,
    DataRepository,
    EfaSecurityGroup,
    HyperPodExecutionRole,
    LogBucket,
    LustreFileSystem,
    NodeLaunchTemplate,
)

app = App()
stack = Stack(app, "research", env=Environment(account="111122223333", region="us-east-2"))
vpc = ec2.Vpc(stack, "Vpc", flow_logs={"Flow": ec2.FlowLogOptions()})
subnet = vpc.private_subnets[0]
key = ClusterKey(stack, "Key")
nodes = EfaSecurityGroup(stack, "Nodes", vpc=vpc)
data = DataBucket(stack, "Data", key=key, log_bucket=LogBucket(stack, "Logs"))
scratch = LustreFileSystem(stack, "Scratch", vpc=vpc, subnet=subnet, key=key, capacity_gib=4800)
DataRepositories(
    stack,
    "Repositories",
    file_system=scratch,
    repositories={
        "/data": DataRepository(
            bucket=data.bucket.bucket_name, import_events=["new", "changed"], export_events=["new"]
        )
    },
)
NodeLaunchTemplate(
    stack,
    "Template",
    instance_type=ec2.InstanceType("p5.48xlarge"),
    root_device="/dev/sda1",
    security_groups=[nodes],
    placement_group=ClusterPlacementGroup(stack, "Together"),
    key=key,
)
HyperPodExecutionRole(stack, "Role", cluster_name="own", key=key, subnet=subnet, security_groups=[nodes])
app.synth()
