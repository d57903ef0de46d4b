#!/usr/bin/env bats
# Runs that are killed, run twice at once, or find what an earlier one left.

load helpers

# Returns when mkfs.xfs has begun, which does not end before mkfs_ends.
run_in_background() {
  only_steps limits filesystems scratch
  touch "$FAKE/mkfs_waits"
  on_init_complete >"$SANDBOX/background" 2>&1 &
  until_true grep -q '^mkfs.xfs' "$FAKE/calls"
}

mkfs_ends() { touch "$FAKE/mkfs_goes_on"; }

# A second run, which has to wait for the lock; mkfs.xfs ends when it does.
second_run() {
  (until_true grep -qs "waiting up to 600 s for the lock 'run'" "$SANDBOX/second" && mkfs_ends) 3>&- &
  on_init_complete >"$SANDBOX/second" 2>&1 || return
  cat "$SANDBOX/second"
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
  run_in_background
  run second_run
  wait
  assert::status 0
  assert::contains "$output" '"state": "already"'
  assert::equal 1 "$(grep -c '^mkfs.xfs' "$FAKE/calls")"
  assert::states limits=already filesystems=skipped scratch=already
}

@test "killed alone, its step still holds the lock: the next run waits for it" {
  run_in_background
  pkill -KILL --oldest -f "^bash $SCRIPTS/hyperpod_on_init_complete.sh"
  run second_run
  assert::status 0
  assert::equal 1 "$(grep -c '^mkfs.xfs' "$FAKE/calls")"
}

@test "stopped by a signal, the last line says so" {
  run_in_background
  pkill -TERM --oldest -f "^bash $SCRIPTS/hyperpod_on_init_complete.sh"
  wait
  assert::last_log_line "FAILED scratch: stopped by a signal"
}

@test "a copy that never ends is named" {
  holds_lock run
  run on_init_complete env ULTRACLUSTER_RUN_DEADLINE=0.1
  lets_go
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
  only_steps filesystems
  on_create env ULTRACLUSTER_LINGER=600 >"$SANDBOX/output" 2>&1 &
  until_true grep -qs FAILED "$LOG"
  until_true pkill -P "$(pgrep --oldest -f "^bash $SCRIPTS/hyperpod_on_create.sh")" -f '^sleep 600$'
  run ! wait $!
}
