#!/usr/bin/env bats
# Runs that are killed, run twice at once, or find what an earlier one left.

load helpers

# Returns when mkfs.xfs has begun.
run_in_background() {
  on_init_complete env MKFS_SECONDS="$MKFS_SECONDS" >"$SANDBOX/background" 2>&1 &
  while ! grep -q '^mkfs.xfs' "$FAKE/calls"; do sleep 0.01; done
}

@test "killed at any change of limits, the next run completes it" {
  kill_everywhere limits 7
}

@test "killed at any change of scratch, the next run completes it" {
  kill_everywhere scratch 9
}

@test "killed at any change of filesystems, the next run completes it" {
  kill_everywhere filesystems 5
}

@test "killed at any change of slurm, the next run completes it" {
  kill_everywhere slurm 6
}

@test "killed inside mkfs, the next run formats again" {
  run_steps scratch
  local -r change=$(grep -n '^mkfs.xfs' "$FAKE/changes" | cut -d : -f 1)
  node::renew
  KILL_AT=inside:$change run run_steps scratch
  assert::equal half "$(cat "$FAKE/formatted")"
  run run_steps scratch
  assert::status 0
  assert::equal complete "$(cat "$FAKE/formatted")"
}

@test "killed inside vgcreate, the next run takes the disks that belong to no group" {
  run_steps scratch
  local -r change=$(grep -n '^lvm vgcreate' "$FAKE/changes" | cut -d : -f 1)
  node::renew
  KILL_AT=inside:$change run run_steps scratch
  run run_steps scratch
  assert::status 0
  assert::equal 8 "$(grep -c ' ultracluster$' "$FAKE/lvm/pvs")"
}

@test "of two copies at once, the second waits and finds everything done" {
  MKFS_SECONDS=0.3 run_in_background
  run on_init_complete
  wait
  assert::status 0
  assert::contains "$output" "waiting up to 10 s for the lock 'run'"
  assert::contains "$output" '"state": "already"'
  assert::equal 1 "$(grep -c '^mkfs.xfs' "$FAKE/calls")"
  assert::states limits=already metadata=skipped filesystems=skipped session_user=skipped state_pull=skipped users=skipped directory=skipped scratch=already container_storage=skipped job_access=skipped health=skipped slurm_conf=skipped job_ssh=skipped slurm_admin=skipped
}

@test "killed alone, its step still holds the lock: the next run waits for it" {
  MKFS_SECONDS=0.5 run_in_background
  pkill -KILL --oldest -f "^bash $SCRIPTS/hyperpod_on_init_complete.sh"
  run on_init_complete
  assert::status 0
  assert::contains "$output" "waiting up to 10 s for the lock 'run'"
  assert::equal 1 "$(grep -c '^mkfs.xfs' "$FAKE/calls")"
}

@test "stopped by a signal, the last line says so" {
  MKFS_SECONDS=0.2 run_in_background
  pkill -TERM --oldest -f "^bash $SCRIPTS/hyperpod_on_init_complete.sh"
  wait
  assert::last_log_line "FAILED scratch: stopped by a signal"
}

@test "a copy that never ends is named" {
  mkdir -p "$ULTRACLUSTER_ROOT/run/ultracluster"
  flock "$ULTRACLUSTER_ROOT/run/ultracluster/run.lock" sleep 5 3>&- &
  local -r holder=$!
  while flock --nonblock "$ULTRACLUSTER_ROOT/run/ultracluster/run.lock" true; do sleep 0.01; done
  run on_init_complete env ULTRACLUSTER_RUN_DEADLINE=0.1
  pkill -P "$holder" sleep
  assert::status 1
  assert::last_log_line "FAILED lock: another run of these scripts does not end"
  assert::no_changes
}

@test "a step that fails has the last word in the log" {
  echo 'filesystems::install() { false; }' >>"$SCRIPTS/steps/filesystems.sh"
  run run_steps filesystems
  assert::status 1
  assert::last_log_line "FAILED filesystems: install stopped with status 1 at: false"
  assert::states filesystems=failed
}

@test "what a failing command printed is in the log" {
  cat >>"$SCRIPTS/steps/filesystems.sh" <<'STEP'
filesystems::install() {
  ls /nowhere
  echo "set -e does not hold"
}
STEP
  run run_steps filesystems
  assert::status 1
  assert::contains "$(cat "$LOG")" "cannot access '/nowhere'"
  assert::equal 0 "$(grep -c 'set -e does not hold' "$LOG")"
  assert::contains "$(tail -n 1 "$LOG")" "FAILED filesystems: install stopped with status 2 at: ls /nowhere"
}

@test "what detect sets is not there for verify, and detect ends at its first error" {
  cat >>"$SCRIPTS/steps/scratch.sh" <<'STEP'
scratch::detect() {
  SET=detect
  [[ ! -e $ULTRACLUSTER_ROOT/nowhere ]] || ls /nowhere
  step::present "here"
}
scratch::verify() { step::message "verify has ${SET:-nothing}"; }
STEP
  run run_steps scratch
  assert::status 0
  assert::states scratch=already
  assert::contains "$(report::steps)" '"message": "verify has nothing", "verbs": {"detect": "present", "verify": "ok"}'
  touch "$ULTRACLUSTER_ROOT/nowhere"
  run run_steps scratch
  assert::states scratch=degraded
  assert::contains "$(report::steps)" '"message": "detect stopped with status 2 at: ls /nowhere", "verbs": {"detect": "failed"}'
}

@test "a verification that fails is a failure, though the installation went well" {
  echo 'filesystems::verify() { step::fail "the disks are slow"; }' >>"$SCRIPTS/steps/filesystems.sh"
  run run_steps filesystems
  assert::status 1
  assert::last_log_line "FAILED filesystems: the disks are slow"
}

@test "a step that cannot even look is told, it is not skipped" {
  # shellcheck disable=SC2016
  printf '#!/bin/sh\necho "lsblk: broken" >&2\nexit 1\n' >"$SANDBOX/broken"
  chmod +x "$SANDBOX/broken"
  ln -sf "$SANDBOX/broken" "$SANDBOX/bin/lsblk"
  run run_steps scratch
  assert::status 0
  assert::states scratch=degraded
  assert::contains "$(tail -n 1 "$LOG")" "DEGRADED scratch: scratch: no /scratch on local disks (detect stopped with status 1"
}

@test "an error in the scripts themselves has a last line, too" {
  echo 'entry::main() { trap entry::at_exit EXIT; ENTRY_STAGE=start ENTRY_SAID=; false; }' >>"$SCRIPTS/lib/entry.sh"
  run on_init_complete
  assert::status 1
  assert::last_log_line "FAILED start: stopped with status 1: an error in the scripts themselves"
}

@test "after a failure the script lives on, for the log to be shipped" {
  echo 'filesystems::detect() { step::fail "no"; }' >>"$SCRIPTS/steps/filesystems.sh"
  on_create env ULTRACLUSTER_LINGER=0.4 >"$SANDBOX/output" 2>&1 &
  while ! grep -qs FAILED "$LOG"; do sleep 0.01; done
  kill -0 $!
  run ! wait $!
}
