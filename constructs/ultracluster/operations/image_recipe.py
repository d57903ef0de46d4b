"""Recipes for images that hold a release: an EC2 Image Builder component, a Packer file.

Both fetch the lifecycle scripts from S3, compare them with the hash of the scripts in this package, and call
`bake.sh`, which does what a node would do at its start.
"""

from __future__ import annotations

from dataclasses import dataclass

from ultracluster.scripts_folder import CONFIGURATION, scripts_folder, tree_sha256

_TARGET = "/opt/ultracluster/scripts"
_BASE = {
    "hyperpod-slurm": "HyperPod's Slurm image, in Systems Manager under "
    "/aws/service/sagemaker-hyperpod/ami/x86_64/slurm-ubuntu-22.04/latest/ami-id",
    "parallelcluster": "an image that `pcluster list-official-images` names",
    "pcs": "a PCS-ready DLAMI",
}
_SECONDS = 7200


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What is baked into which image."""

    release: str
    orchestrator: str
    accelerator: str
    scripts: str = ""
    """`s3://` folder of the scripts; empty leaves it to the build."""
    mirror: str = ""
    """`s3://` mirror of the release; empty is the makers' own addresses."""

    @property
    def name(self) -> str:
        return f"ultracluster-{self.release}-{self.orchestrator}"

    @property
    def bake(self) -> str:
        """The command that bakes."""
        words = ["bash", f"{_TARGET}/bake.sh", "--release", self.release, "--accelerator", self.accelerator]
        words += ["--efa", "yes"] if self.accelerator != "none" else []
        words += ["--mirror", self.mirror] if self.mirror else []
        return " ".join(words)


def check_command(folder: str = _TARGET) -> str:
    """A shell command that fails unless the scripts in `folder` are those of this package."""
    digest = tree_sha256(scripts_folder())
    return (
        f"cd {folder} && found=$(find . -type f ! -name {CONFIGURATION} ! -name '*.md' -printf '%P\\0' "
        "| LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum) && "
        f'{{ [ "${{found%% *}}" = {digest} ] || '
        '{ echo "refused: these are not the scripts of this recipe" >&2; exit 1; }; }'
    )


def image_builder_component(recipe: Recipe) -> str:
    """The YAML of an EC2 Image Builder component (AWSTOE document, schema 1.0)."""
    default = f"\n      default: {_quoted(recipe.scripts)}" if recipe.scripts else ""
    return f"""\
name: {recipe.name}
description: Brings {recipe.orchestrator} images to Ultracluster release {recipe.release}
schemaVersion: 1.0
parameters:
  - ScriptsUri:
      type: string{default}
      description: Folder of the lifecycle scripts, s3://bucket/prefix, without a slash at its end
phases:
  - name: build
    steps:
      - name: Empty
        action: ExecuteBash
        onFailure: Abort
        inputs:
          commands:
            - {_quoted(f"rm -rf {_TARGET} && mkdir -p {_TARGET}")}
      - name: Fetch
        action: S3Download
        timeoutSeconds: 300
        onFailure: Abort
        maxAttempts: 3
        inputs:
          - source: '{{{{ ScriptsUri }}}}/*'
            destination: {_TARGET}
      - name: Check
        action: ExecuteBash
        onFailure: Abort
        inputs:
          commands:
            - {_quoted(check_command())}
      - name: Bake
        action: ExecuteBash
        timeoutSeconds: {_SECONDS}
        onFailure: Abort
        inputs:
          commands:
            - {_quoted(recipe.bake)}
  - name: validate
    steps:
      - name: BakeAgain
        action: ExecuteBash
        timeoutSeconds: {_SECONDS}
        onFailure: Abort
        inputs:
          commands:
            - {_quoted(recipe.bake)}
"""


def packer_file(recipe: Recipe) -> str:
    """A Packer template (HCL)."""
    default = f'\n  default     = "{recipe.scripts}"' if recipe.scripts else ""
    source = recipe.name.replace(".", "-")
    commands = [
        f"rm -rf {_TARGET} && mkdir -p {_TARGET}",
        f'aws s3 cp --recursive --only-show-errors "$SCRIPTS_URI/" {_TARGET}/',
        check_command(),
        recipe.bake,
    ]
    lines = ",\n".join(f"      {_hcl(command)}" for command in commands)
    return f"""\
# Bakes Ultracluster release {recipe.release} into an image for {recipe.orchestrator}:
#   packer init . && packer build -var source_ami=ami-... -var scripts_uri=s3://... .
packer {{
  required_plugins {{
    amazon = {{
      source  = "github.com/hashicorp/amazon"
      version = ">= 1.3.0"
    }}
  }}
}}

variable "source_ami" {{
  type        = string
  description = "The base: {_BASE[recipe.orchestrator]}"
}}

variable "scripts_uri" {{
  type        = string
  description = "Folder of the lifecycle scripts, s3://bucket/prefix, without a slash at its end"{default}
}}

variable "region" {{
  type = string
}}

variable "subnet_id" {{
  type = string
}}

variable "instance_type" {{
  type        = string
  description = "A type of the nodes' architecture; kernel modules are built, no accelerator is needed"
}}

variable "instance_profile" {{
  type        = string
  description = "Reads the scripts{" and the mirror" if recipe.mirror else ""}, and lets Systems Manager in"
}}

source "amazon-ebs" "{source}" {{
  ami_name             = "{source}-{{{{timestamp}}}}"
  source_ami           = var.source_ami
  region               = var.region
  subnet_id            = var.subnet_id
  instance_type        = var.instance_type
  iam_instance_profile = var.instance_profile
  communicator         = "ssh"
  ssh_interface        = "session_manager"
  ssh_username         = "{_USERS[recipe.orchestrator]}"

  metadata_options {{
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }}
}}

build {{
  sources = ["source.amazon-ebs.{source}"]

  provisioner "shell" {{
    environment_vars = ["SCRIPTS_URI=${{var.scripts_uri}}"]
    execute_command  = "sudo -E env {{{{ .Vars }}}} bash -e '{{{{ .Path }}}}'"
    timeout          = "{_SECONDS}s"
    inline = [
{lines}
    ]
  }}
}}
"""


_USERS = {"hyperpod-slurm": "ubuntu", "parallelcluster": "ec2-user", "pcs": "ec2-user"}


def _quoted(text: str) -> str:
    """As a YAML string in single quotes."""
    return "'" + text.replace("'", "''") + "'"


def _hcl(text: str) -> str:
    """As an HCL string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("${", "$${").replace("%{", "%%{") + '"'
