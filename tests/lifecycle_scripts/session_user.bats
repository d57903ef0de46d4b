#!/usr/bin/env bats
# The user of people's sessions: made once, with the same id everywhere, and never one who may sudo.

load helpers

scenario() {
  printf 'root:x:0:0:root:/root:/bin/bash\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash\n' >"$ULTRACLUSTER_ROOT/etc/passwd"
  printf 'root:x:0:\nubuntu:x:1000:\n' >"$ULTRACLUSTER_ROOT/etc/group"
  mkdir -p "$ULTRACLUSTER_ROOT/home" "$ULTRACLUSTER_ROOT/etc/skel"
  echo 'export A=1' >"$ULTRACLUSTER_ROOT/etc/skel/.bashrc"
  echo '70 1 0:70 / /home rw shared:9 - nfs4 fs-4567.fsx.us-east-1.amazonaws.com:/fsx rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  cluster_json 'cluster["session_user"] = "ultracluster"'
}

# owned PATH ID: whose it is
owned() {
  mkdir -p "$FAKE/owners"
  echo "$2 $2" >"$FAKE/owners/$(stat --format %i "$ULTRACLUSTER_ROOT$1")"
}

message() { grep '"step": "session_user"' "$REPORT" | tail -n 1 | sed 's/.*"message": "\([^"]*\)".*/\1/'; }

@test "a user with a fixed id and a home, once" {
  run run_steps session_user
  assert::status 0
  assert::states session_user=installed
  assert::called 'useradd --uid 4999 --gid ultracluster --shell /bin/bash --no-create-home ultracluster'
  assert::equal 'export A=1' "$(cat "$ULTRACLUSTER_ROOT/home/ultracluster/.bashrc")"
  assert::equal 700 "$(stat --format %a "$ULTRACLUSTER_ROOT/home/ultracluster")"
  assert::equal ultracluster "$(ls -A "$ULTRACLUSTER_ROOT/home")"
  forget_calls
  run run_steps session_user
  assert::states session_user=already
  assert::no_changes
}

@test "a user of the directory or image stays as he is" {
  echo 'ultracluster:x:70001:70001::/home/ultracluster:/bin/bash' >>"$ULTRACLUSTER_ROOT/etc/passwd"
  mkdir "$ULTRACLUSTER_ROOT/home/ultracluster"
  owned /home/ultracluster 70001
  run run_steps session_user
  assert::states session_user=already
  assert::no_changes
}

@test "a home that is there, of another node or an earlier cluster, is never touched" {
  mkdir "$ULTRACLUSTER_ROOT/home/ultracluster"
  echo mine >"$ULTRACLUSTER_ROOT/home/ultracluster/file"
  owned /home/ultracluster 4999
  run run_steps session_user
  assert::states session_user=installed
  assert::equal file "$(ls -A "$ULTRACLUSTER_ROOT/home/ultracluster")"
}

@test "a home that belongs to somebody else is never touched, and said" {
  mkdir "$ULTRACLUSTER_ROOT/home/ultracluster"
  owned /home/ultracluster 1001
  run run_steps session_user
  assert::status 0
  assert::states session_user=degraded
  assert::contains "$(message)" '/home/ultracluster belongs to the id 1001, not to ultracluster (4999)'
  forget_calls
  run run_steps session_user
  assert::states session_user=degraded
  assert::no_changes
}

@test "an id that is taken, a file system that squashes root, one that is not mounted: the node joins without" {
  echo 'other:x:4999:4999::/home/other:/bin/bash' >>"$ULTRACLUSTER_ROOT/etc/passwd"
  run run_steps session_user
  assert::status 0
  assert::states session_user=degraded
  assert::contains "$(message)" 'is the id 4999 taken?'
  sed -i '/^other:/d' "$ULTRACLUSTER_ROOT/etc/passwd"
  touch "$FAKE/squashed"
  run run_steps session_user
  assert::states session_user=degraded
  assert::contains "$(message)" 'root squash'
  assert::equal '' "$(ls -A "$ULTRACLUSTER_ROOT/home")"
  rm "$FAKE/squashed"
  echo 'Disk quota exceeded' >"$FAKE/chown_fails"
  run run_steps session_user
  assert::states session_user=degraded
  assert::contains "$(message)" 'cannot be given to ultracluster: chown: changing ownership of'
  assert::contains "$(message)" ': Disk quota exceeded'
  [[ $(message) != *'root squash'* ]]
  assert::equal '' "$(ls -A "$ULTRACLUSTER_ROOT/home")"
  rm "$FAKE/chown_fails"
  sed -i '/ \/home /d' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run run_steps session_user
  assert::contains "$(message)" '/home, which has the home, is not mounted'
}

@test "who may become root is told" {
  echo 'sudo:x:27:ultracluster' >>"$ULTRACLUSTER_ROOT/etc/group"
  run run_steps session_user
  assert::contains "$(message)" 'may become root'
}

@test "sessions of the image's own user: nothing to do" {
  cluster_json 'del cluster["session_user"]'
  run run_steps session_user
  assert::states session_user=skipped
}

@test "killed at any change, the next run completes it" {
  kill_everywhere session_user 2
}
