# shellcheck shell=bash
# What this machine is: operating system, processor, instance type, and whose image it runs. All from files, offline.
[[ -z ${ULTRACLUSTER_LIB_IMAGE_FAMILY:-} ]] || return 0
ULTRACLUSTER_LIB_IMAGE_FAMILY=1

# shellcheck source-path=SCRIPTDIR source=devices.sh
source "${BASH_SOURCE[0]%/*}/devices.sh"

# Exports NODE_OS (ubuntu22.04, ubuntu24.04, al2023, or what it calls itself), NODE_ARCH, NODE_FAMILY.
image_family::load() {
  NODE_OS=$(image_family::os)
  NODE_ARCH=$(uname -m)
  NODE_FAMILY=$(image_family::detect)
  export NODE_OS NODE_ARCH NODE_FAMILY
}

image_family::os() {
  local ID='' VERSION_ID=''
  # shellcheck source=/dev/null
  source "$ULTRACLUSTER_ROOT/etc/os-release" 2>/dev/null || true
  case $ID in
    amzn) printf 'al%s' "$VERSION_ID" ;;
    '') printf 'an unknown system' ;;
    *) printf '%s%s' "$ID" "$VERSION_ID" ;;
  esac
}

# The most specific first: HyperPod's and PCS's images are built on DLAMI and carry its files, too.
image_family::detect() {
  local -r root=$ULTRACLUSTER_ROOT
  local resources=''
  if [[ -e $RESOURCE_CONFIG ]]; then
    IFS= read -r -d '' resources <"$RESOURCE_CONFIG" || true
    # HyperPod writes it before any script runs; ClusterType is Slurm or Kubernetes.
    if [[ $resources =~ \"ClusterType\"\ *:\ *\"Kubernetes\"|\"KubernetesConfig\"\ *:\ *\{ ]]; then
      echo hyperpod-eks
    else
      echo hyperpod-slurm
    fi
  elif [[ -e $root/opt/aws/pcs ]]; then
    # Agent and Slurm of PCS (/opt/aws/pcs/scheduler/slurm-25.11)
    echo pcs
  elif [[ -e $root/etc/parallelcluster || -e $root/opt/parallelcluster ]]; then
    # /etc/parallelcluster/cfnconfig on a running node; the cookbook's folder in the image itself
    echo parallelcluster
  elif [[ -e $root/usr/bin/nodeadm || -e $root/etc/eks ]]; then
    # What joins an AL2023 node to its cluster, and its files (awslabs/amazon-eks-ami)
    echo eks-al2023
  elif [[ $(readlink "$root/opt/slurm") == */slurm-[0-9]* || $(readlink "$root/opt/slurm") == slurm-[0-9]* ]]; then
    # HyperPod's Slurm image links /opt/slurm to one of several versions; ParallelCluster has a folder there
    echo hyperpod-slurm
  elif [[ -e $root/opt/dlami || -e $root/usr/lib/systemd/system/dlami-nvme.service ||
    -e $root/etc/systemd/system/dlami-nvme.service ]]; then
    # Its local disks are mounted by dlami-nvme.service at /opt/dlami/nvme
    echo dlami
  else
    echo plain
  fi
}

# The plugin reads the same file to know the instance type.
image_family::instance_type() {
  cat "$ULTRACLUSTER_ROOT/sys/devices/virtual/dmi/id/product_name" 2>/dev/null || true
}

# Where nobody tells: nvidia, neuron or none, as the PCI bus shows it
image_family::accelerator() {
  if (($(devices::on_bus neuron) > 0)); then
    echo neuron
  elif (($(devices::on_bus nvidia) > 0)); then
    echo nvidia
  else
    echo none
  fi
}
