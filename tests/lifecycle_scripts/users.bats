#!/usr/bin/env bats
# The step that lays the handler for users.json and has it called once; test_people.py has what the handler does.
# shellcheck disable=SC2016 # what a fake does is expanded by the fake

load helpers

scenario() {
  cluster_json "cluster.update(state_uri='s3://bucket/dev/state')"
  mkdir -p "$ULTRACLUSTER_ROOT/usr/local/sbin"
  # The tool of step state_pull: it notes the call, and says what $FAKE/said has
  printf '#!/bin/bash\nsource %q\n%s\n' "$BATS_TEST_DIRNAME/fakes/_fake.bash" '
    if [[ $1 == status ]]; then
      show "$FAKE/said"
    else
      change "$@"
      [[ ! -e $FAKE/good ]] || { folder "$ULTRACLUSTER_ROOT/run/ultracluster/state" && : >"$ULTRACLUSTER_ROOT/run/ultracluster/state/users"; }
    fi' >"$ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-state"
  touch "$FAKE/good"
  echo 'users: document 0123456789ab: 2 users' >"$FAKE/said"
}

@test "the handler and what it reads are laid, and called once" {
  run run_steps users
  assert::status 0
  assert::states users=installed
  [[ -x $ULTRACLUSTER_ROOT/opt/ultracluster/state.d/10_users ]]
  assert::equal $'home.sh\npeople_accounts.py\npeople_document.py' "$(ls "$ULTRACLUSTER_ROOT/opt/ultracluster/people")"
  assert::called 'ultracluster-state users'
  assert::contains "$(cat "$REPORT")" 'document 0123456789ab: 2 users'
  forget_calls
  run run_steps users
  assert::states users=already
  assert::no_changes
}

@test "a helper of the handler that is new is called, too" {
  run run_steps users
  echo '# another' >>"$SCRIPTS/files/people_accounts.py"
  forget_calls
  run run_steps users
  assert::states users=installed
  assert::called 'ultracluster-state users'
}

@test "a node without all of its users joins, and says who is missing" {
  rm "$FAKE/good"
  echo 'users: document 0123456789ab, not in force; PROBLEM: not all of it is done: 1 users; NOT bob: /home is not mounted' >"$FAKE/said"
  run run_steps users
  assert::status 0
  assert::states users=degraded
  assert::contains "$(tail -n 1 "$LOG")" 'NOT bob: /home is not mounted; it is tried again each minute'
}

@test "a cluster without documents: nothing to do" {
  cluster_json 'del cluster["state_uri"]'
  run run_steps users
  assert::states users=skipped
}

@test "killed at any change, the next run completes it" {
  kill_everywhere users 2
}
