#!/usr/bin/env bats
# Whose image it is, from the files that each family has.
# shellcheck disable=SC2016 # what `library` is given is expanded on the node

load helpers

# families: in a fresh root with these files and folders (PATH, or PATH->LINK)
family() {
  local path
  rm -rf "${ULTRACLUSTER_ROOT:?}"
  mkdir -p "$ULTRACLUSTER_ROOT"
  for path in "$@"; do
    mkdir -p "$ULTRACLUSTER_ROOT$(dirname "${path%%->*}")"
    if [[ $path == *'->'* ]]; then
      ln -s "${path#*->}" "$ULTRACLUSTER_ROOT${path%%->*}"
    else
      touch "$ULTRACLUSTER_ROOT$path"
    fi
  done
  library node 'image_family::detect'
}

@test "each family by its own files" {
  assert::equal plain "$(family /etc/os-release)"
  assert::equal dlami "$(family /opt/dlami/nvme/x)"
  assert::equal dlami "$(family /usr/lib/systemd/system/dlami-nvme.service)"
  assert::equal parallelcluster "$(family /etc/parallelcluster/cfnconfig /opt/slurm/bin/srun)"
  assert::equal parallelcluster "$(family /opt/parallelcluster/.bootstrapped)"
  assert::equal pcs "$(family /opt/aws/pcs/scheduler/slurm-25.11/bin/srun /opt/dlami/nvme/x)"
  assert::equal eks-al2023 "$(family /usr/bin/nodeadm)"
  assert::equal hyperpod-slurm "$(family '/opt/slurm->/opt/slurm-25.11' /opt/dlami/nvme/x)"
}

@test "HyperPod's own file tells Slurm from EKS" {
  assert::equal hyperpod-slurm "$(library node 'image_family::detect')"
  sed -i 's/"ClusterType": "Slurm"/"ClusterType": "Kubernetes"/' "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json"
  assert::equal hyperpod-eks "$(library node 'image_family::detect')"
}

@test "system, processor and devices" {
  local device
  while read -r device vendor id class; do
    mkdir -p "$ULTRACLUSTER_ROOT/sys/bus/pci/devices/$device"
    echo "$vendor" >"$ULTRACLUSTER_ROOT/sys/bus/pci/devices/$device/vendor"
    echo "$id" >"$ULTRACLUSTER_ROOT/sys/bus/pci/devices/$device/device"
    echo "$class" >"$ULTRACLUSTER_ROOT/sys/bus/pci/devices/$device/class"
  done <<'DEVICES'
0000:01:00.0 0x10de 0x2330 0x030200
0000:02:00.0 0x10de 0x2330 0x030200
0000:03:00.0 0x10de 0x22a3 0x068000
0000:04:00.0 0x1d0f 0xefa2 0x020000
0000:05:00.0 0x1d0f 0xec20 0x020000
0000:06:00.0 0x1d0f 0x7364 0x088000
DEVICES
  run library node 'image_family::load; echo $NODE_OS $NODE_ARCH; for kind in nvidia neuron efa; do devices::on_bus $kind; done'
  assert::equal "ubuntu22.04 x86_64 2 1 1" "${output//$'\n'/ }"
  printf 'ID="amzn"\nVERSION_ID="2023"\n' >"$ULTRACLUSTER_ROOT/etc/os-release"
  assert::equal al2023 "$(library node 'image_family::os')"
}
