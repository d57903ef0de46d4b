# shellcheck shell=bash
# Libraries: files packages
# What an unattended upgrade must not move: the kernel, to which modules are bound, driver and fabric manager, which must have one
# version, NCCL, DCGM, EFA, the Lustre client, enroot and the container toolkit (aws/aws-parallelcluster#2095, #7502;
# awslabs/awsome-distributed-ai#690). Nor may apt bring the distribution's NVIDIA driver beside the image's, and no upgrade may
# restart the daemons that jobs run in (awslabs/awsome-distributed-ai#1165).

readonly HOLDS_PINS=/etc/apt/preferences.d/ultracluster-nvidia
readonly HOLDS_NEEDRESTART=/etc/needrestart/conf.d/99-ultracluster.conf
readonly HOLDS_UNATTENDED=/etc/apt/apt.conf.d/99-ultracluster
readonly HOLDS_PATTERNS=(
  linux-aws linux-image-aws linux-headers-aws linux-modules-extra-aws 'linux-image-[0-9]*' kernel kernel6.12 kernel6.18
  'lustre-client*' nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container-tools libnvidia-container1
  'nvidia-driver-*' 'nvidia-dkms-*' 'nvidia-open*' 'cuda-drivers*' 'nvidia-fabricmanager*' nvidia-fabric-manager nvidia-imex 'nvidia-imex-*'
  libnccl2 libnccl-dev libnccl libnccl-devel 'datacenter-gpu-manager-*' enroot enroot+caps
  efa 'efa-*' libfabric-aws libfabric1-aws 'libfabric-aws-*' libnccl-ofi 'aws-neuronx-*'
)

holds::detect() {
  local missing
  [[ $NODE_ROLE != system ]] || step::not_applicable "a system node has none of it"
  missing=$(holds::missing)
  [[ -z $missing ]] || step::absent "not held: ${missing//$'\n'/, }"
  step::present "held"
}

holds::missing() {
  local names
  mapfile -t names < <(packages::installed "${HOLDS_PATTERNS[@]}")
  ((${#names[@]} == 0)) || packages::not_held "${names[@]}"
  holds::is_pinned || echo "the distribution's NVIDIA driver"
  holds::restarts_nothing || echo "restarts of daemons by upgrades"
}

holds::wants_pins() {
  [[ $NODE_ACCELERATOR == nvidia && $NODE_FAMILY != plain && $NODE_OS == ubuntu* ]]
}

holds::is_pinned() {
  ! holds::wants_pins || files::has "$HOLDS_PINS" "$HOLDS_PINS_TEXT"
}

readonly HOLDS_PINS_TEXT='Explanation: Ultracluster. The image has its own driver (aws-samples/sample-physical-ai-scaffolding-kit#27).
Package: nvidia-driver-* nvidia-dkms-* nvidia-kernel-* nvidia-utils-* nvidia-headless-* libnvidia-compute-* libnvidia-gl-*
Pin: release o=Ubuntu
Pin-Priority: -1'

# needrestart and unattended-upgrades are Ubuntu's; Amazon Linux upgrades nothing by itself.
holds::restarts_nothing() {
  [[ $NODE_OS == ubuntu* ]] || return 0
  files::has "$HOLDS_NEEDRESTART" "$HOLDS_NEEDRESTART_TEXT" && files::has "$HOLDS_UNATTENDED" "$HOLDS_UNATTENDED_TEXT"
}

# Perl, read by needrestart at its end (needrestart.conf): 0 leaves a service alone, whatever else is restarted.
# shellcheck disable=SC2016 # nothing is to be expanded
readonly HOLDS_NEEDRESTART_TEXT='# Ultracluster: jobs and pods run in these.
$nrconf{override_rc}{qr(^(slurmd|slurmctld|slurmdbd|slurmstepd|munge|containerd|docker|kubelet|nvidia-.*|enroot.*|amazon-ssm-agent)\b)} = 0;'
readonly HOLDS_UNATTENDED_TEXT='// Ultracluster: no reboot below running jobs.
Unattended-Upgrade::Automatic-Reboot "false";
Unattended-Upgrade::Automatic-Reboot-WithUsers "false";'

holds::install() {
  local names missing
  holds::is_pinned || files::write "$HOLDS_PINS" <<<"$HOLDS_PINS_TEXT"
  if ! holds::restarts_nothing; then
    files::write "$HOLDS_NEEDRESTART" <<<"$HOLDS_NEEDRESTART_TEXT"
    files::write "$HOLDS_UNATTENDED" <<<"$HOLDS_UNATTENDED_TEXT"
  fi
  mapfile -t names < <(packages::installed "${HOLDS_PATTERNS[@]}")
  if ((${#names[@]} > 0)); then
    mapfile -t missing < <(packages::not_held "${names[@]}")
    ((${#missing[@]} == 0)) || packages::hold "${missing[@]}" || step::fail "cannot hold ${missing[*]}$(holds::why)"
  fi
}

holds::why() {
  [[ $(packages::system) == dnf ]] || return 0
  dnf versionlock list >/dev/null 2>&1 || printf ': dnf has no versionlock here (package python3-dnf-plugin-versionlock)'
}

holds::verify() {
  local missing
  missing=$(holds::missing)
  [[ -z $missing ]] || step::fail "an upgrade could move: ${missing//$'\n'/, }"
  step::message "kernel, driver, fabric and client packages"
}
