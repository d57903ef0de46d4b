"""Amazon EKS as a CDK author writes it first: a role for people, and no word of the control plane."""

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam

from ultracluster import EksCluster, NodeGroup

app = App()
stack = Stack(app, "research", env=Environment(account="111122223333", region="us-east-2"))
vpc = ec2.Vpc(stack, "Vpc", flow_logs={"Flow": ec2.FlowLogOptions()})
researchers = iam.Role.from_role_arn(stack, "Researchers", "arn:aws:iam::111122223333:role/researchers")
platform = iam.Role.from_role_name(stack, "Platform", "platform")
EksCluster(
    stack,
    "Cluster",
    vpc=vpc,
    subnet=vpc.private_subnets[0],
    admins=[researchers, platform, "arn:aws:iam::111122223333:role/oncall"],
    node_groups={
        "system": NodeGroup(role="system", instance_type=ec2.InstanceType("m5.xlarge"), count=2),
        "train": NodeGroup(role="compute", instance_type=ec2.InstanceType("p5.48xlarge"), count=2),
    },
)
app.synth()
