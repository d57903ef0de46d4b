"""Components and recipe of an image pipeline.

They cannot be changed, only replaced by one of another version, so the version says what is in them.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_imagebuilder as imagebuilder
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.scripts_folder import name_in_folder, script_files, scripts_folder, tree_sha256
from ultracluster.software.image_recipe import Recipe, component_that_builds, component_that_tests

_RECIPE = imagebuilder.CfnImageRecipe


def image_recipe(
    scope: Construct,
    recipe: Recipe,
    *,
    name: str,
    parent: str,
    key: kms.IKey | None,
    gib: int | None,
    tags: dict[str, str],
) -> imagebuilder.CfnImageRecipe:
    """The recipe and its two components.

    Args:
        scope: the pipeline.
        recipe: what is baked.
        name: of the recipe; those of the components begin with it.
        parent: the base, as Image Builder writes it.
        key: encrypts the image.
        gib: size of the root volume; by default that of the base with room for the release.
        tags: of the image.

    Raises:
        ValueError: `gib` is given where the orchestrator sets the size.
    """
    components = [
        imagebuilder.CfnComponent(
            scope,
            f"{kind.title()}Component",
            name=f"{name}-{kind}",
            version=_version(scope, recipe, data, tree_sha256(scripts_folder())),
            platform="Linux",
            data=data,
        )
        for kind, data in (
            ("build", component_that_builds(recipe)),
            ("test", component_that_tests(recipe)),
        )
    ]
    volume = _volume(recipe, gib, key)
    versions = [component.version for component in components]
    return imagebuilder.CfnImageRecipe(
        scope,
        "Recipe",
        name=name,
        version=_version(scope, recipe, versions, parent, gib, key.key_arn if key else "", tags),
        parent_image=parent,
        components=[
            _RECIPE.ComponentConfigurationProperty(component_arn=part.attr_arn) for part in components
        ],
        block_device_mappings=[volume] if volume else None,
        # it came with the base, and sessions need it
        additional_instance_configuration=_RECIPE.AdditionalInstanceConfigurationProperty(
            systems_manager_agent=_RECIPE.SystemsManagerAgentProperty(uninstall_after_build=False)
        ),
        ami_tags=tags,
    )


def _volume(
    recipe: Recipe, gib: int | None, key: kms.IKey | None
) -> imagebuilder.CfnImageRecipe.InstanceBlockDeviceMappingProperty | None:
    base = recipe.base
    if base.volume == "fixed":
        if gib is not None:
            raise ValueError(
                f"root_volume_gib cannot be set for {base.orchestrator}, which sets the size: leave it out"
            )
        if key is None:
            return None
    return _RECIPE.InstanceBlockDeviceMappingProperty(
        device_name=base.root_device,
        ebs=_RECIPE.EbsInstanceBlockDeviceSpecificationProperty(
            volume_type="gp3",
            volume_size=gib or base.volume_gib(recipe.accelerator) or base.root_volume_gib,
            encrypted=True,
            kms_key_id=key.key_arn if key else None,
            delete_on_termination=True,
        ),
    )


def _version(scope: Construct, recipe: Recipe, *content: object) -> str:
    """`<release>.<what is in it>`; each part is below 2^30."""
    text = json.dumps([Stack.of(scope).resolve(value) for value in content], sort_keys=True)
    major, minor = re.findall(r"\d+", recipe.release)[:2]
    return f"{int(major)}.{int(minor)}.{int(hashlib.sha256(text.encode()).hexdigest()[:7], 16)}"


def newest_base(recipe: Recipe) -> str:
    """The newest image that AWS publishes of the recipe's base, as `ssm:<parameter>`.

    Raises:
        ValueError: AWS publishes no parameter for it.
    """
    parameter = recipe.base_parameter
    if parameter:
        return f"ssm:{parameter}"
    by_release = any("$kubernetes" in template for _, template in recipe.base.parameters)
    missing = "give kubernetes, or " if by_release and not recipe.kubernetes else ""
    raise ValueError(
        f"AWS publishes no parameter for the newest image of {recipe.orchestrator} on {recipe.base.os}, "
        f"{recipe.architecture}: {missing}give parent_image ({recipe.base.find})"
    )


def not_uploaded(folder: Path) -> list[str]:
    """What the folder holds besides the scripts, to be left out of an asset."""
    keep = set(script_files(folder))
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and file not in keep)
    return [name_in_folder(folder, file) for file in files]


def build_security_group(scope: Construct, vpc: ec2.IVpc, name: str) -> ec2.ISecurityGroup:
    """A group that lets nothing in, and HTTP and HTTPS out."""
    group = ec2.SecurityGroup(
        scope,
        "SecurityGroup",
        vpc=vpc,
        allow_all_outbound=False,
        description=f"Builds of the image {name}: nothing in, the web out",
    )
    for port in (80, 443):
        group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(port), "Package mirrors and AWS APIs")
    return group


def private_subnet(vpc: ec2.IVpc) -> ec2.ISubnet:
    """The VPC's first private subnet.

    Raises:
        ValueError: it has none.
    """
    subnets = [*vpc.private_subnets, *vpc.isolated_subnets]
    if not subnets:
        raise ValueError("the VPC has no private subnet: give subnet")
    return subnets[0]
