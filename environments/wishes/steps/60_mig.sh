# shellcheck shell=bash
# MIG instances on every GPU, at every boot: MIG is the GPU's state, which ends with the instance.
# need: required
#
# Slurm looks for them when slurmd starts, which is after this. There is no reboot: Hopper and newer GPUs change
# their mode at once, as long as nothing uses them.
readonly MIG_PROFILE=1g.10gb MIG_PER_GPU=7

mig::gpus() { nvidia-smi --query-gpu=index --format=csv,noheader; }
mig::instances() { nvidia-smi -L | grep -c "MIG $MIG_PROFILE " || true; }

mig::detect() {
  [[ $NODE_ACCELERATOR == nvidia ]] || step::not_applicable "no NVIDIA GPU"
  local gpus
  gpus=$(mig::gpus | wc -l)
  (($(mig::instances) == gpus * MIG_PER_GPU)) || step::absent "not $MIG_PER_GPU instances of $MIG_PROFILE on each of $gpus GPUs"
  step::present "$MIG_PROFILE"
}

mig::install() {
  local profiles=$MIG_PROFILE gpu number
  for ((number = 1; number < MIG_PER_GPU; number++)); do profiles+=,$MIG_PROFILE; done
  systemctl stop nvidia-dcgm 2>/dev/null || true # it uses every GPU
  for gpu in $(mig::gpus); do
    nvidia-smi -i "$gpu" -mig 1 || step::fail "GPU $gpu does not take MIG mode"
    nvidia-smi mig -i "$gpu" -dci >/dev/null 2>&1 || true
    nvidia-smi mig -i "$gpu" -dgi >/dev/null 2>&1 || true
    nvidia-smi mig -i "$gpu" -cgi "$profiles" -C || step::fail "GPU $gpu has no room for $MIG_PER_GPU instances of $MIG_PROFILE"
  done
  systemctl start nvidia-dcgm 2>/dev/null || true
}

mig::verify() {
  local gpus
  gpus=$(mig::gpus | wc -l)
  (($(mig::instances) == gpus * MIG_PER_GPU)) || step::fail "not $MIG_PER_GPU instances of $MIG_PROFILE on each of $gpus GPUs"
}
