# shellcheck shell=bash
# Libraries: software
# The NVIDIA container toolkit. Its four packages must have one version (NVIDIA/nvidia-container-toolkit#1093).

container_toolkit::detect() {
  software::for container-toolkit compute
  software::settle container-toolkit "$(container_toolkit::version)"
  step::present "toolkit $(container_toolkit::version)"
}

# NVIDIA Container Toolkit CLI version 1.20.1
container_toolkit::version() {
  { "$ULTRACLUSTER_ROOT/usr/bin/nvidia-ctk" --version 2>/dev/null || true; } | sed -n 's/.*CLI version *\([0-9][^ ]*\).*/\1/p' | head -n 1
}

container_toolkit::needs() { software::lacking container-toolkit "$(container_toolkit::version)"; }

container_toolkit::install() {
  software::install container-toolkit
  software::clean container-toolkit
}

container_toolkit::verify() {
  software::proven container-toolkit "$(container_toolkit::version)" "nvidia-ctk"
}
