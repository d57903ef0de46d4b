# shellcheck shell=bash
# What an unattended upgrade must not move: the kernel, to which modules are bound, the Lustre client, and the container
# toolkit (aws/aws-parallelcluster#2095, #7502; awslabs/awsome-distributed-ai#690). Nor may apt bring the distribution's
# NVIDIA driver beside the image's.

readonly HOLDS_PINS=/etc/apt/preferences.d/ultracluster-nvidia
readonly HOLDS_PATTERNS=(
  linux-aws linux-image-aws linux-headers-aws linux-modules-extra-aws 'linux-image-[0-9]*' kernel kernel6.12 kernel6.18
  'lustre-client*' nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container-tools libnvidia-container1
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
}

holds::wants_pins() {
  [[ $NODE_ACCELERATOR == nvidia && $NODE_FAMILY != plain && $NODE_OS == ubuntu* ]]
}

holds::is_pinned() {
  ! holds::wants_pins || cmp --silent <(holds::pins) "$ULTRACLUSTER_ROOT$HOLDS_PINS"
}

holds::pins() {
  cat <<'EOT'
Explanation: Ultracluster. The image has its own driver (aws-samples/sample-physical-ai-scaffolding-kit#27).
Package: nvidia-driver-* nvidia-dkms-* nvidia-kernel-* nvidia-utils-* nvidia-headless-* libnvidia-compute-* libnvidia-gl-*
Pin: release o=Ubuntu
Pin-Priority: -1
EOT
}

holds::install() {
  local names missing
  mapfile -t names < <(packages::installed "${HOLDS_PATTERNS[@]}")
  if ((${#names[@]} > 0)); then
    mapfile -t missing < <(packages::not_held "${names[@]}")
    ((${#missing[@]} == 0)) || packages::hold "${missing[@]}" || step::fail "cannot hold ${missing[*]}"
  fi
  holds::is_pinned || holds::pins | files::write "$HOLDS_PINS"
}

holds::verify() {
  local missing
  missing=$(holds::missing)
  [[ -z $missing ]] || step::fail "an upgrade could move: ${missing//$'\n'/, }"
  step::message "kernel and client packages"
}
