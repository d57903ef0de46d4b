#!/usr/bin/env bats
# The shared file systems, in OnCreate mode.

load helpers

@test "fstab has one entry per file system, for the boot, and keeps what was there" {
  run_steps filesystems
  assert::equal "UUID=0123 / ext4 defaults 0 1
fs-0123.fsx.us-east-1.amazonaws.com@tcp:/abcdefgh /fsx lustre defaults,relatime,flock,_netdev,x-systemd.automount,x-systemd.requires=network-online.target 0 0
fs-4567.fsx.us-east-1.amazonaws.com:/fsx /home nfs defaults,nfsvers=4.2,nconnect=16,_netdev,x-systemd.automount,x-systemd.requires=network-online.target 0 0" "$(cat "$ULTRACLUSTER_ROOT/etc/fstab")"
}

@test "an fstab entry of an earlier file system is replaced" {
  echo 'fs-old@tcp:/oldoldol /fsx lustre defaults 0 0' >>"$ULTRACLUSTER_ROOT/etc/fstab"
  run run_steps filesystems
  assert::equal 1 "$(grep -c ' /fsx ' "$ULTRACLUSTER_ROOT/etc/fstab")"
}

@test "Lustre over EFA waits for the client's set-up at boot" {
  mkdir -p "$ULTRACLUSTER_ROOT/etc/systemd/system"
  touch "$ULTRACLUSTER_ROOT/etc/systemd/system/configure-efa-fsx-lustre-client.service"
  run run_steps filesystems
  assert::contains "$(grep lustre "$ULTRACLUSTER_ROOT/etc/fstab")" \
    "x-systemd.after=configure-efa-fsx-lustre-client.service"
  # Without EFA it is mounted over TCP.
  [[ $(grep lustre "$ULTRACLUSTER_ROOT/etc/fstab") != *requires=configure-efa* ]]
}

@test "a file system that the service has mounted is left alone" {
  mkdir "$ULTRACLUSTER_ROOT/fsx"
  echo '98 1 0:60 / /fsx rw - autofs systemd-1 rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  echo '99 1 0:61 / /fsx rw - lustre 10.1.0.9@tcp:/abcdefgh rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run run_steps filesystems
  assert::status 0
  assert::never_called 'mount -t lustre'
}

@test "another mount in the place of a file system is refused" {
  echo '99 1 0:61 / /fsx rw - lustre 10.1.0.9@tcp:/somebody rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run run_steps filesystems
  assert::status 1
  assert::last_log_line "FAILED filesystems: /fsx is taken by another mount: lustre 10.1.0.9@tcp:/somebody"
}

@test "name resolution that is down for a while is waited for" {
  echo 3 >"$FAKE/dns_failures"
  PATIENCE=600 run run_steps filesystems
  assert::status 0
  assert::contains "$output" "attempt 3 ended with status 2"
}

@test "name resolution that stays down is named, and nothing is mounted" {
  echo 10000 >"$FAKE/dns_failures"
  run run_steps filesystems
  assert::status 1
  assert::last_log_line "FAILED filesystems: the name fs-0123.fsx.us-east-1.amazonaws.com is not resolved"
  assert::never_called 'mount -t'
}

@test "a mount that fails at first is repeated, one that never works is named" {
  echo 2 >"$FAKE/mount_failures"
  PATIENCE=600 run run_steps filesystems
  assert::status 0
  echo 10000 >"$FAKE/mount_failures"
  sed -i '/lustre/d' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run run_steps filesystems
  assert::status 1
  assert::last_log_line "FAILED filesystems: cannot mount fs-0123.fsx.us-east-1.amazonaws.com@tcp:/abcdefgh on /fsx"
}

@test "an image without the Lustre client is named" {
  rm "$SANDBOX/bin/mount.lustre"
  run run_steps filesystems
  assert::status 1
  assert::last_log_line "FAILED filesystems: this image has no lustre client (mount.lustre): build it in"
}

@test "without file systems in cluster.json the step is skipped" {
  sed -i 's/"lustre"/"other"/; s/"openzfs"/"another"/' "$SCRIPTS/cluster.json"
  run run_steps filesystems
  assert::status 0
  assert::states filesystems=skipped
}

further() {
  cluster_json "cluster['mounts']['further_lustre'] = {'fast': {'path': '/fast', 'dns_name': 'fs-0999.fsx.us-east-1.amazonaws.com', 'mount_name': 'zyxwvuts', 'efa': $1}}"
}

@test "further Lustre file systems are mounted beside the first" {
  further False
  run run_steps filesystems
  assert::status 0
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/fstab")" 'fs-0999.fsx.us-east-1.amazonaws.com@tcp:/zyxwvuts /fast lustre defaults,relatime,flock'
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/fstab")" ' /fsx lustre '
  assert::called "mount -t lustre -o relatime,flock fs-0999.fsx.us-east-1.amazonaws.com@tcp:/zyxwvuts $ULTRACLUSTER_ROOT/fast"
  run run_steps filesystems
  assert::states filesystems=already
}

@test "a group mounts its own Lustre file systems only" {
  further False
  cluster_json 'gpu["lustre"] = ["fast"]'
  run run_steps filesystems
  assert::status 0
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/fstab")" ' /fast lustre '
  [[ $(cat "$ULTRACLUSTER_ROOT/etc/fstab") != *' /fsx lustre '* ]]
}

@test "of several Lustre file systems set-up and probes look at one with EFA" {
  further True
  # shellcheck disable=SC2016 # that shell expands it
  run library node 'source "$ULTRACLUSTER_HOME/lib/log.sh"; node::load; echo "$LUSTRE_PATH $LUSTRE_EFA $LUSTRE_FURTHER"'
  assert::contains "$output" '/fast yes /fsx,fs-0123.fsx.us-east-1.amazonaws.com,abcdefgh'
}

@test "HyperPod has mounted one Lustre file system, and the other is mounted after it" {
  further False
  mkdir -p "$ULTRACLUSTER_ROOT/fsx"
  echo 'fs-0123@tcp:/abcdefgh /fsx lustre noatime,flock,_netdev,x-systemd.automount 0 0' >>"$ULTRACLUSTER_ROOT/etc/fstab"
  echo '99 1 0:61 / /fsx rw - lustre 10.1.0.9@tcp:/abcdefgh rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run on_init_complete
  assert::status 0
  assert::contains "$(cat "$REPORT")" '"step": "filesystems", "state": "installed"'
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/fstab")" 'fs-0123@tcp:/abcdefgh /fsx lustre noatime'
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/fstab")" '@tcp:/zyxwvuts /fast lustre '
  [[ $(cat "$ULTRACLUSTER_ROOT/etc/fstab") != *' /home nfs '* ]]
}
