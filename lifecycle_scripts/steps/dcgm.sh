# shellcheck shell=bash
# Libraries: contract software
# DCGM: health checks and metrics of GPUs.

dcgm::detect() {
  software::for dcgm compute
  software::settle dcgm "$(dcgm::version)"
  software::runs nvidia-dcgm || step::absent "nvidia-dcgm.service does not run"
  step::present "DCGM $(dcgm::version)"
}

# dcgmi  version: 4.7.0
dcgm::version() {
  { timeout 60 "$ULTRACLUSTER_ROOT/usr/bin/dcgmi" --version 2>/dev/null || true; } | sed -n 's/.*version: *\([0-9][^ ]*\).*/\1/p' | head -n 1
}

dcgm::needs() { software::lacking dcgm "$(dcgm::version)"; }

dcgm::install() {
  local version
  version=$(dcgm::version)
  contract::fits dcgm "$version" || software::install dcgm
  software::start nvidia-dcgm || step::fail "nvidia-dcgm.service does not start: see journalctl -u nvidia-dcgm"
  software::clean dcgm
}

dcgm::verify() {
  software::runs nvidia-dcgm || step::fail "nvidia-dcgm.service does not run: see journalctl -u nvidia-dcgm"
  software::proven dcgm "$(dcgm::version)" "nvidia-dcgm.service runs"
}
