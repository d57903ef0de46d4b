#!/usr/bin/env bats
# The step around the firewall; test_metadata.py has what a kernel makes of its rules.

load helpers

closed() {
  cluster_json "cluster['metadata'] = {'for': 'services', 'users': ['collector']}"
  printf 'root:x:0:0::/root:/bin/bash\ncollector:x:991:991::/:/bin/false\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash\n' >"$ULTRACLUSTER_ROOT/etc/passwd"
}

@test "metadata are closed now and at every boot, and a second run changes nothing" {
  closed
  run run_steps metadata
  assert::status 0
  assert::states metadata=installed
  assert::contains "$(cat "$FAKE/nft")" "meta skuid { 0, 991 } accept"
  assert::called 'systemctl enable ultracluster-metadata.service'
  : >"$FAKE/changes"
  run run_steps metadata
  assert::states metadata=already
  assert::equal '' "$(cat "$FAKE/changes")"
}

@test "without a firewall tool the node joins, and says what it lacks" {
  closed
  rm "$SANDBOX/bin/nft"
  run run_steps metadata
  assert::status 0
  assert::states metadata=degraded
  assert::contains "$(tail -n 1 "$LOG")" "DEGRADED metadata: metadata: users may reach the node's credentials (this image has neither nft nor iptables)"
}

@test "a user who gets through degrades the node" {
  closed
  printf '#!/bin/bash\nexit 1\n' >"$SANDBOX/probe"
  chmod +x "$SANDBOX/probe"
  ln -sf "$SANDBOX/probe" "$SANDBOX/bin/setpriv"
  run run_steps metadata
  assert::status 0
  assert::contains "$(tail -n 1 "$LOG")" "a user without rights is not refused"
}

@test "what was closed is opened where the environment says so, and nothing is done where nothing is said" {
  run run_steps metadata
  assert::states metadata=skipped
  closed
  run run_steps metadata
  cluster_json "cluster['metadata'] = {'for': 'everyone'}"
  run run_steps metadata
  assert::status 0
  [[ ! -e $FAKE/nft && ! -e $ULTRACLUSTER_ROOT/etc/systemd/system/ultracluster-metadata.service ]]
  run run_steps metadata
  assert::states metadata=skipped
}
