#!/usr/bin/env bats
# The homes of the image's users on a fresh shared file system.
# shellcheck disable=SC2016 # what a fake does is expanded by the fake

load helpers

# The shared file system is mounted at /home; what it hides is what the image has.
scenario() {
  touch "$FAKE/binds"
  printf 'root:x:0:0:root:/root:/bin/bash\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash\nnobody:x:65534:65534::/nonexistent:/bin/false\n' >"$ULTRACLUSTER_ROOT/etc/passwd"
  mkdir -p "$ULTRACLUSTER_ROOT/home" "$SANDBOX/image/home/ubuntu/.ssh"
  echo 'ssh-ed25519 AAAA' >"$SANDBOX/image/home/ubuntu/.ssh/authorized_keys"
  chmod 700 "$SANDBOX/image/home/ubuntu/.ssh"
  echo '70 1 0:70 / /home rw shared:9 - nfs4 fs-4567.fsx.us-east-1.amazonaws.com:/fsx rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  homes::bind "$SANDBOX/image"
}

# homes::bind FOLDER: what `mount --bind /` shows
homes::bind() {
  rm -f "$SANDBOX/bin/mount" "$SANDBOX/bin/umount"
  printf '#!/bin/bash\nCOMMAND=mount\nsource %q\nCOMMAND=mount\nchange "$@"\ncp -a %q/. "$3"\n' "$BATS_TEST_DIRNAME/fakes/_fake.bash" "$1" >"$SANDBOX/bin/mount"
  printf '#!/bin/bash\nsource %q\nchange "$@"\nrm -rf "$1"\n' "$BATS_TEST_DIRNAME/fakes/_fake.bash" >"$SANDBOX/bin/umount"
  chmod +x "$SANDBOX/bin/mount" "$SANDBOX/bin/umount"
}

@test "a fresh file system gets the homes of the image, once" {
  run run_steps homes
  assert::status 0
  assert::states homes=installed
  assert::equal 'ssh-ed25519 AAAA' "$(cat "$ULTRACLUSTER_ROOT/home/ubuntu/.ssh/authorized_keys")"
  assert::equal 700 "$(stat --format %a "$ULTRACLUSTER_ROOT/home/ubuntu/.ssh")"
  assert::equal ubuntu "$(ls -A "$ULTRACLUSTER_ROOT/home")"
  [[ ! -e $ULTRACLUSTER_ROOT/run/ultracluster/under ]]
  forget_calls
  run run_steps homes
  assert::states homes=already
  assert::no_changes
}

@test "a home that is there is never touched" {
  mkdir "$ULTRACLUSTER_ROOT/home/ubuntu"
  echo mine >"$ULTRACLUSTER_ROOT/home/ubuntu/file"
  run run_steps homes
  assert::states homes=already
  assert::equal file "$(ls -A "$ULTRACLUSTER_ROOT/home/ubuntu")"
}

@test "another node was faster: its copy stays, ours goes" {
  # It appears while ours is copied.
  printf 'mkdir -p %q; echo theirs >%q\n' "$ULTRACLUSTER_ROOT/home/ubuntu" "$ULTRACLUSTER_ROOT/home/ubuntu/file" >>"$SANDBOX/bin/mount"
  sed -i 's/homes::exists "$home" || homes::copy/homes::copy/' "$SCRIPTS/steps/homes.sh"
  run run_steps homes
  assert::status 0
  assert::equal file "$(ls -A "$ULTRACLUSTER_ROOT/home/ubuntu")"
  assert::equal ubuntu "$(ls -A "$ULTRACLUSTER_ROOT/home")"
}

@test "what somebody puts in the place of the copy is neither followed nor given away" {
  local victim=$BATS_TEST_TMPDIR/victim
  mkdir -m 755 "$victim"
  # In a folder that everybody may write (1777) somebody is faster than mkdir.
  for owner in '' 'nobody:'; do
    VICTIM=$victim run bash -c 'source "$1"; rm() { command rm "$@"; ln -s "$VICTIM" "${@: -1}"; }
      home::make /home/alice /etc/skel "$2"' - "$SCRIPTS/lib/home.sh" "$owner"
    assert::status 1
    assert::equal '' "$(ls -A "$victim")"
    assert::equal "755 $(id -un)" "$(stat --format '%a %U' "$victim")"
  done
}

@test "killed at any change, the next run completes it" {
  kill_everywhere homes 2
}

@test "no shared homes, none of the image, nothing mounted: nothing to do" {
  sed -i '/ \/home /d' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run run_steps homes
  assert::states homes=skipped
  sed -i '/ubuntu/d' "$ULTRACLUSTER_ROOT/etc/passwd"
  run run_steps homes
  assert::states homes=skipped
}
