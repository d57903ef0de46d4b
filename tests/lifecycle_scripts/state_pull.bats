#!/usr/bin/env bats
# Documents of the cluster's state: fetched when they changed, looked at, and handed to their handlers.
# shellcheck disable=SC2016,SC2119,SC2120 # what a fake does is expanded by the fake; most pulls are of all

load helpers

readonly URI=s3://bucket/dev/state

scenario() {
  cluster_json "cluster.update(region='eu-north-1', state_uri='$URI')"
  mkdir -p "$FAKE/s3" "$ULTRACLUSTER_ROOT/opt/ultracluster/state.d" "$ULTRACLUSTER_ROOT/etc/ultracluster"
  printf 'URI=%s\nREGION=eu-north-1\nCLUSTER=dev\nROLE=compute\n' "$URI" >"$ULTRACLUSTER_ROOT/etc/ultracluster/pull"
  # S3 as the AWS CLI tells of it: the ETag is the digest of the content
  fake aws '
    while (($# > 0)); do
      case $1 in
        --key) key=$2 ;;
        --if-none-match) known=$2 ;;
      esac
      last=$1
      shift
    done
    value s3_error ""
    [[ -z $VALUE ]] || fail "$VALUE"
    file=$FAKE/s3/${key##*/}
    [[ -e $file ]] || fail "An error occurred (NoSuchKey) when calling the GetObject operation: The specified key does not exist."
    etag=$(sha256sum <"$file") etag="\"${etag%% *}\""
    [[ $etag != "${known:-}" ]] || fail "An error occurred (304) when calling the GetObject operation: Not Modified"
    cat "$file" >"$last"
    echo "$etag"'
  handler 10_users 'echo "users: $(grep -c name "$1") there"'
  document users '"users": [{"name": "alice"}]'
}

fake() {
  rm -f "$SANDBOX/bin/$1"
  printf '#!/bin/bash\nsource %q\n%s\n' "$BATS_TEST_DIRNAME/fakes/_fake.bash" "$2" >"$SANDBOX/bin/$1"
  chmod +x "$SANDBOX/bin/$1"
}

# handler NAME CODE: it notes each call
handler() {
  printf '#!/bin/bash\nset -eu\necho %q >>"$FAKE/handled"\n%s\n' "$1" "$2" >"$ULTRACLUSTER_ROOT/opt/ultracluster/state.d/$1"
  chmod +x "$ULTRACLUSTER_ROOT/opt/ultracluster/state.d/$1"
}

# document NAME MEMBERS [CLUSTER]
document() { printf '{"schema": 1, "document": "%s", "cluster": "%s", %s}\n' "$1" "${3:-dev}" "$2" >"$FAKE/s3/$1.json"; }

pull() { on_node ULTRACLUSTER_STATE_WAIT="${WAIT:-600}" bash "$SCRIPTS/files/state_pull.sh" "$@"; }

handled() { cat "$FAKE/handled" 2>/dev/null || true; }

@test "no user can hold the lock of pulls: who is to be removed would stay" {
  run pull
  assert::equal 600 "$(stat --format %a "$ULTRACLUSTER_ROOT/run/ultracluster/state.lock")"
}

@test "a document that changed is handed on, and one that did not is not fetched again" {
  run pull
  assert::status 0
  assert::equal 10_users "$(handled)"
  assert::called 'aws s3api get-object --bucket bucket --key dev/state/users.json --region eu-north-1 --query ETag --output text '"$ULTRACLUSTER_ROOT/var/lib/ultracluster/state/.users.new"
  run pull
  assert::status 0
  assert::contains "$(tail -n 1 "$FAKE/calls")" '--if-none-match "'
  assert::equal 10_users "$(handled)"
  document users '"users": [{"name": "bob"}]'
  run pull
  assert::equal $'10_users\n10_users' "$(handled)"
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/var/lib/ultracluster/state/users.json")" bob
  run pull status
  assert::contains "$output" 'users: document '
  assert::contains "$output" ': users: 1 there'
}

@test "after a boot, and with a handler that is new, the last document is in force again, without S3 as well" {
  run pull
  rm -rf "$ULTRACLUSTER_ROOT/run/ultracluster/state"
  run pull status
  assert::contains "$output" 'not in force'
  echo 'Could not connect to the endpoint URL: "https://bucket.s3.eu-north-1.amazonaws.com/"' >"$FAKE/s3_error"
  run pull
  assert::status 1
  assert::equal $'10_users\n10_users' "$(handled)"
  run pull status
  assert::contains "$output" 'PROBLEM: s3://bucket/dev/state/users.json cannot be read: aws: Could not connect'
  rm "$FAKE/s3_error"
  handler 10_users 'echo another'
  run pull
  assert::status 0
  assert::equal $'10_users\n10_users\n10_users' "$(handled)"
}

@test "what is no document of this cluster changes nothing, is told, and is fetched once" {
  run pull
  local kept bad
  kept=$(cat "$ULTRACLUSTER_ROOT/var/lib/ultracluster/state/users.json")
  for bad in '' '{' '[]' 'null' '{"schema": true, "document": "users", "cluster": "dev"}' '{"schema": 2, "document": "users", "cluster": "dev"}' \
    '{"schema": 1, "document": "teams", "cluster": "dev"}' '{"schema": 1, "document": "users", "cluster": "prod"}' '{"schema": 1, "document": "users"}'; do
    printf '%s' "$bad" >"$FAKE/s3/users.json"
    run pull
    assert::status 0
    assert::equal 10_users "$(handled)"
    assert::equal "$kept" "$(cat "$ULTRACLUSTER_ROOT/var/lib/ultracluster/state/users.json")"
    run pull status
    assert::contains "$output" 'PROBLEM: the newest document is not taken: it'
  done
  run pull
  assert::contains "$(tail -n 1 "$FAKE/calls")" '--if-none-match "'
  run pull status
  assert::contains "$output" 'its cluster is None, not '
  document users '"users": []'
  run pull
  assert::equal $'10_users\n10_users' "$(handled)"
  run pull status
  [[ $output != *PROBLEM* ]]
}

@test "a handler that fails is called again, and its last line is told" {
  handler 10_users 'echo first; echo "bob: id 2001 is taken"; [[ -e $FAKE/mended ]]'
  run pull
  assert::status 1
  run pull
  assert::status 1
  assert::equal $'10_users\n10_users' "$(handled)"
  run pull status
  assert::contains "$output" 'not in force; PROBLEM: not all of it is done: bob: id 2001 is taken'
  touch "$FAKE/mended"
  run pull
  assert::status 0
  run pull
  assert::equal $'10_users\n10_users\n10_users' "$(handled)"
  run pull status
  [[ $output != *PROBLEM* ]]
}

@test "documents have handlers of their own: one that is missing stops no other" {
  handler 20_teams true
  run pull
  assert::status 1
  assert::equal 10_users "$(handled)"
  run pull status teams
  assert::equal "teams: no document yet; PROBLEM: there is no $URI/teams.json; a deploy writes it" "$output"
  document teams '"teams": []'
  run pull teams
  assert::status 0
  assert::equal $'10_users\n20_teams' "$(handled)"
  echo 'An error occurred (AccessDenied) when calling the GetObject operation: Access Denied' >"$FAKE/s3_error"
  run pull
  run pull status teams
  assert::contains "$output" 'is not there, or this node'
}

@test "two pulls: one after the other" {
  handler 10_users "touch '$SANDBOX/begun'; until [[ -e '$SANDBOX/goes_on' ]]; do sleep 0.02; done; echo done"
  pull &
  local -r first=$!
  until_true test -e "$SANDBOX/begun"
  WAIT=0 run pull
  touch "$SANDBOX/goes_on"
  assert::status 1
  assert::contains "$output" 'another pull does not end'
  wait "$first"
}

@test "the step lays the tool and its timer, once" {
  rm "$ULTRACLUSTER_ROOT/etc/ultracluster/pull"
  run run_steps state_pull
  assert::status 0
  assert::states state_pull=installed
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/ultracluster/pull")" $'URI=s3://bucket/dev/state\nREGION=eu-north-1\nCLUSTER=dev\nROLE=compute'
  [[ -x $ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-state ]]
  assert::called 'systemctl start ultracluster-state.timer'
  forget_calls
  run run_steps state_pull
  assert::states state_pull=already
  assert::no_changes
}

@test "a cluster without documents: nothing to do" {
  cluster_json 'del cluster["state_uri"]'
  run run_steps state_pull
  assert::states state_pull=skipped
}

@test "killed at any change, the next run completes it" {
  kill_everywhere state_pull 2
}
