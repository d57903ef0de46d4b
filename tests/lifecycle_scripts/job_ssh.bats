#!/usr/bin/env bats
# What the step writes for sshd, PAM and ssh; tests/slurm_twin/test_ssh.py has real nodes and real logins.

load helpers

readonly PAM=etc/pam.d/sshd

asked() {
  cluster_json "cluster['job_ssh'] = {'admins': ['ubuntu']}"
  local -r root=$ULTRACLUSTER_ROOT
  mkdir -p "$root"/{etc/pam.d,etc/ssh,usr/sbin,usr/lib/security,opt/slurm/bin,opt/slurm/lib/security,home}
  touch "$root/usr/lib/security/pam_access.so"
  printf '#!/bin/bash\necho "slurm 25.11.4"\n' >"$root/opt/slurm/bin/srun"
  # sshd as it reads its configuration: see `broken`
  cat >"$root/usr/sbin/sshd" <<'SH'
#!/bin/bash
[[ ! -e $FAKE/broken ]] || { cat "$FAKE/broken" >&2; exit 255; }
echo "usepam ${USEPAM:-yes}"
SH
  # shellcheck disable=SC2016 # the scripts expand it
  printf '#!/bin/bash\n[[ -e $1 ]] && cat "$FAKE/ldd" 2>/dev/null\n' >"$SANDBOX/bin/ldd"
  # shellcheck disable=SC2016 # the scripts expand it
  printf '#!/bin/bash\necho "gpu-1${1:+.example.com}"\n' >"$SANDBOX/bin/hostname"
  chmod +x "$root"/usr/sbin/sshd "$root"/opt/slurm/bin/srun "$SANDBOX"/bin/{ldd,hostname}
  echo 'ssh-ed25519 AAAAkey root@gpu-1' >"$root/etc/ssh/ssh_host_ed25519_key.pub"
  echo '51 1 0:61 / /home rw - nfs4 fs-4567:/fsx rw' >>"$root/proc/self/mountinfo"
  debian
}

debian() {
  printf '@include common-auth\naccount    required     pam_nologin.so\n@include common-account\n@include common-session\nsession    required     pam_limits.so\n' >"$ULTRACLUSTER_ROOT/$PAM"
  printf 'session required pam_unix.so\nsession optional\t\tpam_systemd.so\n' >"$ULTRACLUSTER_ROOT/etc/pam.d/common-session"
}

module() {
  touch "$ULTRACLUSTER_ROOT/opt/slurm/lib/security/pam_slurm_adopt.so"
  echo "libslurm.so.43 => ${1:-/opt/slurm/lib/libslurm.so.43}" >"$FAKE/ldd"
}

pam() { cat "$ULTRACLUSTER_ROOT/$PAM"; }

@test "a node without sshd has nothing to close, and is not degraded for it" {
  asked
  rm "$ULTRACLUSTER_ROOT/usr/sbin/sshd"
  run run_steps job_ssh
  assert::equal 0 "$status"
  assert::contains "$output" 'job_ssh: installed'
  [[ ! -e $ULTRACLUSTER_ROOT/etc/security/ultracluster-ssh.conf ]]
}

@test "a compute node lets in whose job runs there, before anything that may be sufficient" {
  asked
  module
  run run_steps job_ssh
  assert::status 0
  assert::states job_ssh=installed
  assert::equal $'@include common-auth
account [success=1 default=ignore] pam_access.so nodefgroup noaudit accessfile=/etc/security/ultracluster-ssh.conf # ultracluster
account required /opt/slurm/lib/security/pam_slurm_adopt.so action_no_jobs=deny action_unknown=newest action_generic_failure=deny action_adopt_failure=deny # ultracluster
account    required     pam_nologin.so
@include common-account
@include ultracluster-common-session # ultracluster
session    required     pam_limits.so' "$(pam)"
  assert::equal $'# Ultracluster: who may reach this node by SSH without a job on it\n+:root:ALL\n+:ubuntu:ALL\n-:ALL:ALL' \
    "$(cat "$ULTRACLUSTER_ROOT/etc/security/ultracluster-ssh.conf")"
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/pam.d/ultracluster-common-session")" $'\nsession required pam_unix.so'
  [[ $(cat "$ULTRACLUSTER_ROOT/etc/pam.d/ultracluster-common-session") != *session*pam_systemd.so* ]]
  : >"$FAKE/changes"
  run run_steps job_ssh
  assert::states job_ssh=already
  assert::equal '' "$(cat "$FAKE/changes")"
}

@test "without Slurm's own module only administrators get in" {
  asked
  run run_steps job_ssh
  assert::status 0
  assert::equal $'@include common-auth
account required pam_access.so nodefgroup accessfile=/etc/security/ultracluster-ssh.conf # ultracluster
account    required     pam_nologin.so
@include common-account
@include common-session
session    required     pam_limits.so' "$(pam)"
  assert::contains "$(report::steps)" "closed to all but ubuntu: no pam_slurm_adopt.so of this node's Slurm"
}

@test "a module of another Slurm, or one that cannot be loaded, is not taken" {
  asked
  module /usr/lib/x86_64-linux-gnu/libslurm.so.38
  run run_steps job_ssh
  [[ $(pam) != *pam_slurm_adopt* ]]
  module 'not found'
  run run_steps job_ssh
  [[ $(pam) != *pam_slurm_adopt* ]]
  # the distribution's beside a Slurm in /opt
  rm "$ULTRACLUSTER_ROOT/opt/slurm/lib/security/pam_slurm_adopt.so"
  touch "$ULTRACLUSTER_ROOT/usr/lib/security/pam_slurm_adopt.so"
  module /usr/lib/x86_64-linux-gnu/libslurm.so.38
  rm "$ULTRACLUSTER_ROOT/opt/slurm/lib/security/pam_slurm_adopt.so"
  run run_steps job_ssh
  [[ $(pam) != *pam_slurm_adopt* ]]
}

@test "Amazon Linux includes what Debian includes by another word" {
  asked
  module
  printf '#%%PAM-1.0\nauth       substack     password-auth\naccount    required     pam_nologin.so\naccount    include      password-auth\nsession    include      password-auth\nsession    include      postlogin\n' >"$ULTRACLUSTER_ROOT/$PAM"
  printf 'account sufficient pam_localuser.so\n-session    optional    pam_systemd.so\nsession required pam_unix.so\n' >"$ULTRACLUSTER_ROOT/etc/pam.d/password-auth"
  run run_steps job_ssh
  assert::states job_ssh=installed
  assert::contains "$(pam)" $'session    include      ultracluster-password-auth # ultracluster\nsession    include      postlogin'
  assert::contains "$(pam)" $'password-auth\naccount [success=1'
  assert::contains "$(pam)" $'# ultracluster\naccount    required     pam_nologin.so\naccount    include      password-auth'
  assert::equal $'# Ultracluster: /etc/pam.d/password-auth without pam_systemd, for sshd on nodes of jobs\naccount sufficient pam_localuser.so\nsession required pam_unix.so' \
    "$(cat "$ULTRACLUSTER_ROOT/etc/pam.d/ultracluster-password-auth")"
}

@test "an update of the distribution is taken up" {
  asked
  module
  run run_steps job_ssh
  echo 'session optional pam_sss.so' >>"$ULTRACLUSTER_ROOT/etc/pam.d/common-session"
  run run_steps job_ssh
  assert::states job_ssh=installed
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/pam.d/ultracluster-common-session")" 'session optional pam_sss.so'
  debian
  run run_steps job_ssh
  assert::states job_ssh=installed
  assert::equal 1 "$(pam | grep -c pam_slurm_adopt)"
}

@test "what sshd refuses is taken back" {
  asked
  module
  echo 'line 3: Bad configuration option' >"$FAKE/broken"
  run run_steps job_ssh
  assert::status 0
  assert::contains "$(tail -n 1 "$LOG")" "DEGRADED job_ssh: job_ssh: people may reach this node by SSH without a job on it (sshd refuses its configuration: line 3: Bad configuration option; it has its former configuration)"
  [[ $(pam) != *ultracluster* && ! -e $ULTRACLUSTER_ROOT/etc/ssh/sshd_config.d/00-ultracluster-jobs.conf ]]
  assert::never_called 'systemctl try-reload'
  rm "$FAKE/broken"
  sed -i 's/:-yes/:-no/' "$ULTRACLUSTER_ROOT/usr/sbin/sshd"
  run run_steps job_ssh
  assert::contains "$(tail -n 1 "$LOG")" "sshd's own configuration turns PAM off"
  [[ $(pam) != *ultracluster* ]]
}

@test "login nodes and controllers stay open, and everybody finds the others' keys" {
  asked
  module
  node::is_login
  run run_steps job_ssh
  assert::states job_ssh=installed
  [[ $(pam) != *ultracluster* ]]
  assert::equal 'gpu-1,gpu-1.example.com ssh-ed25519 AAAAkey' "$(sed 's/^10[^,]*,//' "$ULTRACLUSTER_ROOT/home/.ultracluster/node-keys/gpu-1")"
  assert::equal "$(cat "$ULTRACLUSTER_ROOT/home/.ultracluster/node-keys/gpu-1")" "$(cat "$ULTRACLUSTER_ROOT/home/.ultracluster/node-keys/10.1.0.11")"
  assert::equal /home/.ultracluster/node-keys "$(cat "$ULTRACLUSTER_ROOT/opt/ultracluster/ssh/folder")"
}

@test "a folder of host keys that somebody else has made is not used" {
  asked
  node::is_login
  mkdir -m 700 "$SANDBOX/elsewhere"
  ln -s "$SANDBOX/elsewhere" "$ULTRACLUSTER_ROOT/home/.ultracluster"
  run run_steps job_ssh
  assert::contains "$output" "/home/.ultracluster is not root's own folder"
  assert::equal 700 "$(stat --format %a "$SANDBOX/elsewhere")"
}

@test "where every user may reach every node nothing changes" {
  asked
  cluster_json "del cluster['job_ssh']"
  run run_steps job_ssh
  assert::states job_ssh=skipped
  [[ $(pam) != *ultracluster* ]]
}

@test "what was closed is opened again when that is asked for" {
  local before
  asked
  module
  before=$(pam)
  run run_steps job_ssh
  cluster_json "del cluster['job_ssh']"
  run run_steps job_ssh
  assert::states job_ssh=installed
  assert::equal "$before" "$(pam)"
  assert::equal '' "$(find "$ULTRACLUSTER_ROOT"/etc/{pam.d,security,ssh/sshd_config.d} -name '*ultracluster*')"
  run run_steps job_ssh
  assert::states job_ssh=skipped
}

@test "sshd that somebody breaks later leaves the node closed" {
  asked
  module
  run run_steps job_ssh
  echo 'broken' >"$FAKE/broken"
  : >"$ULTRACLUSTER_ROOT/etc/security/ultracluster-ssh.conf"
  run run_steps job_ssh
  assert::contains "$(tail -n 1 "$LOG")" "sshd refuses its configuration"
  assert::contains "$(pam)" "pam_slurm_adopt.so"
  [[ -e $ULTRACLUSTER_ROOT/etc/ssh/sshd_config.d/00-ultracluster-jobs.conf ]]
}

@test "killed anywhere, the next run completes it" {
  scenario() {
    asked
    module
  }
  scenario
  kill_everywhere job_ssh 4
}
