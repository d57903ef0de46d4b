"""An image recipe as a Packer template (HCL): the same steps as the Image Builder components."""

from __future__ import annotations

from ultracluster.catalog.image_bases import ImageBase, build_type
from ultracluster.software.image_recipe import CLEAN, RECORD, SECONDS, TARGET, Recipe, check_command

AMAZON_PLUGIN = ">= 1.3.0"


def packer_file(recipe: Recipe) -> str:
    """The template: what differs between accounts is a variable, what differs between bases is in it."""
    base, source = recipe.base, recipe.name.replace(".", "-")
    needed = "" if recipe.base_parameter else " -var source_ami=ami-..."
    return f"""\
# Bakes Ultracluster release {recipe.release} into an image for {recipe.orchestrator}, \
{base.os} on {recipe.architecture}:
#   packer init . && packer build -var region=... -var subnet_id=... -var security_group_id=sg-... \\
#     -var instance_profile=... -var scripts_uri=s3://...{needed} .
# Needs Packer and the Session Manager plugin. Environments take the id, or an SSM parameter that holds it:
#   aws ssm put-parameter --name /ultracluster/images/NAME --type String --data-type aws:ec2:image \\
#     --overwrite --value ami-...
packer {{
  required_plugins {{
    amazon = {{
      source  = "github.com/hashicorp/amazon"
      version = "{AMAZON_PLUGIN}"
    }}
  }}
}}

{_variables(recipe)}
locals {{
  tags = merge({{
{_tags(recipe)}
  }}, var.tags)
}}

{_newest(recipe)}source "amazon-ebs" "{source}" {{
  ami_name             = "{source}-{{{{timestamp}}}}"
  ami_description      = "Ultracluster release {recipe.release} for {recipe.orchestrator}"
  source_ami           = {_source_ami(recipe)}
  region               = var.region
  subnet_id            = var.subnet_id
  security_group_id    = var.security_group_id
  instance_type        = var.instance_type
  iam_instance_profile = var.instance_profile

  associate_public_ip_address = false

{_access(base)}
{_volume(base)}
  tags            = local.tags
  snapshot_tags   = local.tags
  run_tags        = local.tags
  run_volume_tags = local.tags
}}

build {{
  sources = ["source.amazon-ebs.{source}"]

{_provisioner(_bake_commands(recipe), 'environment_vars = ["SCRIPTS_URI=${var.scripts_uri}"]')}
{_provisioner([CLEAN], "skip_clean       = true # what it would remove is gone by then")}}}
"""


def _access(base: ImageBase) -> str:
    return f"""\
  communicator              = "ssh"
  ssh_interface             = "session_manager"
  ssh_username              = "{base.user}"
  ssh_timeout               = "15m"
  ssh_clear_authorized_keys = true
  temporary_key_pair_type   = "ed25519"

  metadata_options {{
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }}
"""


def _variables(recipe: Recipe) -> str:
    base = recipe.base
    reads = " and the mirror" if recipe.mirror else ""
    rows: list[tuple[str, str, str, str | None]] = [
        (
            "source_ami",
            "string",
            f"The base: {base.find}" + ("; the newest by default" if recipe.base_parameter else ""),
            '""' if recipe.base_parameter else None,
        ),
        (
            "scripts_uri",
            "string",
            "Folder of the lifecycle scripts, s3://bucket/prefix, without a slash at its end",
            f'"{recipe.scripts}"' if recipe.scripts else None,
        ),
        ("region", "string", "Region of the build and of the image", None),
        ("subnet_id", "string", "A private subnet; the instance gets no public address", None),
        (
            "security_group_id",
            "string",
            "Lets nothing in, and HTTPS out: Packer logs in through Systems Manager",
            None,
        ),
        (
            "instance_type",
            "string",
            f"A type for {recipe.architecture}; kernel modules are built, no accelerator is needed",
            f'"{build_type(recipe.architecture)}"',
        ),
        ("instance_profile", "string", f"Reads the scripts{reads}, and lets Systems Manager in", None),
        ("kms_key_id", "string", _key_text(base), '""'),
        ("tags", "map(string)", "More tags of the image, its snapshot and the build", "{}"),
    ]
    size = base.volume_gib(recipe.accelerator)
    if size is not None:
        text = "GiB; at least the base's, at most root_volume_gib of the node groups"
        rows.append(("root_volume_gib", "number", text, str(size)))
    return "\n".join(_variable(*row) for row in rows)


def _variable(name: str, kind: str, description: str, default: str | None) -> str:
    last = f"  default     = {default}\n" if default is not None else ""
    return f"""\
variable "{name}" {{
  type        = {kind}
  description = {hcl_string(description)}
{last}}}
"""


def _key_text(base: ImageBase) -> str:
    if base.encryption == "same-key":
        return (
            "Key that encrypts the image; root volumes of its node groups need the same one. "
            "Empty: not encrypted, as HyperPod's API reference asks for"
        )
    return (
        "Key that encrypts the image; empty: the account's default key for EBS. "
        "Who launches nodes must be allowed to use it"
    )


def _newest(recipe: Recipe) -> str:
    if not recipe.base_parameter:
        return ""
    return f"""\
data "amazon-parameterstore" "base" {{
  name   = "{recipe.base_parameter}"
  region = var.region
}}

"""


def _source_ami(recipe: Recipe) -> str:
    if not recipe.base_parameter:
        return "var.source_ami"
    return 'var.source_ami != "" ? var.source_ami : data.amazon-parameterstore.base.value'


def _volume(base: ImageBase) -> str:
    if base.volume == "fixed":
        # an encrypted copy: no device has to be named, and the size stays that of the base
        return """\
  encrypt_boot = var.kms_key_id != "" ? true : null
  kms_key_id   = var.kms_key_id != "" ? var.kms_key_id : null
"""
    return f"""\
  launch_block_device_mappings {{
    device_name           = "{base.root_device}"
    volume_size           = var.root_volume_gib
    volume_type           = "gp3"
    delete_on_termination = true
    encrypted             = true
    kms_key_id            = var.kms_key_id != "" ? var.kms_key_id : null
  }}
"""


def _tags(recipe: Recipe) -> str:
    tags = recipe.tags
    width = max(len(hcl_string(key)) for key in tags)
    return "\n".join(f"    {hcl_string(key):<{width}} = {hcl_string(value)}" for key, value in tags.items())


def _bake_commands(recipe: Recipe) -> list[str]:
    return [
        "cloud-init status --wait >/dev/null || true",
        f"rm -rf {TARGET} && mkdir -p {TARGET}",
        f'aws s3 cp --recursive --only-show-errors "$SCRIPTS_URI/" {TARGET}/',
        check_command(),
        recipe.bake,
        recipe.verify,
        RECORD,
    ]


def _provisioner(commands: list[str], option: str) -> str:
    lines = ",\n".join(f"      {hcl_string(command)}" for command in commands)
    return f"""\
  provisioner "shell" {{
    {option}
    execute_command  = "sudo -E env {{{{ .Vars }}}} bash -e '{{{{ .Path }}}}'"
    timeout          = "{SECONDS}s"
    inline = [
{lines}
    ]
  }}
"""


def hcl_string(text: str) -> str:
    """As an HCL string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("${", "$${").replace("%{", "%%{") + '"'
