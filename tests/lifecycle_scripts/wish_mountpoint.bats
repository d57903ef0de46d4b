#!/usr/bin/env bats
# The step that docs/wishes/mountpoint-s3.md has for Slurm nodes: mount-s3, of AWS's repository or signed by one of Mountpoint's keys.

load helpers

readonly SIGNER=8AEFE705EBE329C0948C75A66F1C3B3AEF4B030B
readonly OTHER=0123456789ABCDEF0123456789ABCDEF01234567

scenario() {
  only_steps own
  mkdir -p "$SCRIPTS/own_steps" "$ULTRACLUSTER_ROOT/dev" "$FAKE/packages.d" "$FAKE/web"
  cp "$REPOSITORY/environments/wishes/steps/60_mountpoint.sh" "$SCRIPTS/own_steps"
  cluster_json "gpu.setdefault('steps', []).append({'file': '60_mountpoint.sh', 'need': 'optional', 'sha256': '0' * 64})"
  touch "$ULTRACLUSTER_ROOT/dev/fuse"
  echo remote >"$FAKE/remote"
  rm -f "$FAKE/any_package"
  printf '%s\n' "printf '%s\n' '#!/bin/bash' 'echo mount-s3 1.23.0' >'$SANDBOX/bin/mount-s3'" "chmod +x '$SANDBOX/bin/mount-s3'" >"$FAKE/packages.d/mount-s3"
  signed "$SIGNER"
}

# signed FINGERPRINT [STATUS]: what gpg says of the package
signed() {
  printf '%s\n' '#!/bin/bash' "[[ \$* != *--verify* ]] || { printf '%s\n' '[GNUPG:] ${2:-GOODSIG} 6F1C3B3AEF4B030B Mountpoint' '[GNUPG:] VALIDSIG ABCD 2026-01-01 1 0 4 0 1 10 00 $1'; }" >"$SANDBOX/bin/gpg"
  chmod +x "$SANDBOX/bin/gpg"
}

state_of() { report::steps | sed -n 's/.*"step": "mountpoint", "state": "\([a-z]*\)".*/\1/p' | tail -n 1; }

@test "the signed package is installed once, in the version that is named" {
  run on_init_complete
  assert::status 0
  assert::equal installed "$(state_of)"
  assert::equal 1.23.0 "$(<"$FAKE/packages/mount-s3")"
  assert::contains "$(<"$FAKE/calls")" mountpoint-s3-release/1.23.0/x86_64/mount-s3-1.23.0-x86_64.deb.asc
  [[ ! -e $ULTRACLUSTER_ROOT/var/cache/ultracluster/mountpoint ]]
  forget_calls
  rm "$REPORT"
  run on_init_complete
  assert::equal already "$(state_of)"
  assert::never_called curl
}

@test "a package of another key, or with a bad or expired signature, is refused, and the node works without" {
  local args
  for args in "$OTHER" "$SIGNER BADSIG" "$SIGNER EXPKEYSIG" ""; do
    # shellcheck disable=SC2086 # two words
    signed $args # "" is no fingerprint
    run on_init_complete
    assert::status 0
    assert::equal degraded "$(state_of)"
    assert::contains "$output" "refused mount-s3 1.23.0: none of Mountpoint's keys has signed it"
    [[ ! -e $FAKE/packages/mount-s3 ]]
    rm "$REPORT"
  done
}

@test "Amazon Linux has it in its own repository" {
  printf 'ID="amzn"\nVERSION_ID="2023"\n' >"$ULTRACLUSTER_ROOT/etc/os-release"
  rm "$SANDBOX/bin/apt-get"
  run on_init_complete
  assert::equal installed "$(state_of)"
  assert::never_called curl
}

@test "without its device nothing can be mounted" {
  rm "$ULTRACLUSTER_ROOT/dev/fuse"
  run on_init_complete
  assert::status 0
  assert::equal degraded "$(state_of)"
  assert::contains "$output" "there is no /dev/fuse"
}
