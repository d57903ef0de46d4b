#!/usr/bin/env bats
# The step of environments/wishes/gres.yaml, which cuts GPUs into MIG instances before slurmd starts.
# shellcheck disable=SC2016 # what the fake holds is expanded when it runs

load helpers

scenario() {
  mkdir -p "$SCRIPTS/own_steps"
  cp "$REPOSITORY/environments/wishes/steps/60_mig.sh" "$SCRIPTS/own_steps"
  cluster_json "gpu.setdefault('steps', []).append({'file': '60_mig.sh', 'need': 'required', 'sha256': '0' * 64})"
  mkdir -p "$FAKE/mig"
  mv "$SANDBOX/bin/nvidia-smi" "$SANDBOX/bin/nvidia-smi-of-others"
  printf '%s\n' '#!/bin/bash' 'mig=$FAKE/mig' \
    'case "$*" in' \
    '  -L) for one in "$mig"/cut-*; do [[ -e $one ]] || continue; while read -r profile; do echo "  MIG $profile     Device 0: (UUID: MIG-1)"; done <"$one"; done ;;' \
    '  *"--query-gpu=index --format=csv,noheader"*) printf "0\n1\n" ;;' \
    '  "-i "*" -mig 1") [[ ! -e $mig/refuses ]] ;;' \
    '  "mig -i "*" -dgi" | "mig -i "*" -dci") rm -f "$mig/cut-$3"; false ;;' \
    '  "mig -i "*" -cgi "*" -C") [[ ! -e $mig/full ]] && tr , "\n" <<<"$5" >"$mig/cut-$3" ;;' \
    '  *) exec "${0%/*}/nvidia-smi-of-others" "$@" ;;' \
    'esac' >"$SANDBOX/bin/nvidia-smi"
  chmod +x "$SANDBOX/bin/nvidia-smi"
}

state_of() {
  report::steps | sed -n "s/.*\"step\": \"$1\", \"state\": \"\([a-z]*\)\".*/\1/p" | tail -n 1
}

@test "every GPU is cut at the first boot, and left alone while it stays so" {
  run on_init_complete
  assert::status 0
  assert::equal installed "$(state_of mig)"
  assert::equal "14" "$(cat "$FAKE"/mig/cut-* | grep -c 1g.10gb)"
  rm "$REPORT"
  run on_init_complete
  assert::equal already "$(state_of mig)"
}

@test "an instance that starts anew has lost them, and gets them again" {
  run on_init_complete
  rm "$FAKE/mig/cut-1" "$REPORT"
  run on_init_complete
  assert::status 0
  assert::equal installed "$(state_of mig)"
  assert::equal "14" "$(cat "$FAKE"/mig/cut-* | grep -c 1g.10gb)"
}

@test "a GPU that refuses keeps the node away from Slurm" {
  touch "$FAKE/mig/refuses"
  run on_init_complete
  assert::status 1
  assert::equal "FAILED mig: GPU 0 does not take MIG mode" "$(tail -n 1 "$LOG" | sed 's/.*FAILED/FAILED/')"
}

@test "a profile without room keeps the node away from Slurm" {
  touch "$FAKE/mig/full"
  run on_init_complete
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "GPU 0 has no room for 7 instances of 1g.10gb"
}
