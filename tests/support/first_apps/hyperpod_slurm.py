"""HyperPod with Slurm as a CDK author writes it first: constructs as they are, types of the CDK."""

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2

from ultracluster import (
    ClusterKey,
    DataBucket,
    EfaSecurityGroup,
    HyperPodSlurmCluster,
    LustreFileSystem,
    NodeGroup,
)

app = App()
stack = Stack(app, "research", env=Environment(account="111122223333", region="us-east-2"))
vpc = ec2.Vpc(stack, "Vpc", max_azs=1, flow_logs={"Flow": ec2.FlowLogOptions()})
subnet = vpc.private_subnets[0]
key = ClusterKey(stack, "Key")
nodes = EfaSecurityGroup(stack, "Nodes", vpc=vpc)
scratch = LustreFileSystem(
    stack, "Scratch", vpc=vpc, subnet=subnet, key=key, capacity_gib=4800, throughput_mbps_per_tib=1000
)
HyperPodSlurmCluster(
    stack,
    "Cluster",
    vpc=vpc,
    subnet=subnet,
    security_groups=[nodes],
    key=key,
    scripts_bucket=DataBucket(stack, "Scripts", key=key),
    lustre=scratch,
    node_groups={
        "head": NodeGroup(role="controller", instance_type=ec2.InstanceType("m5.xlarge"), count=1),
        "train": NodeGroup(
            role="compute", instance_type=ec2.InstanceType("p5.48xlarge"), count=2, partition="train"
        ),
    },
)
app.synth()
