#!/usr/bin/env bats
# The step that lays sssd and what is around it; test_directory.py has a real directory and real logins.

load helpers

readonly ARN=arn:aws:secretsmanager:us-east-1:111122223333:secret:reader-AbCdEf

# A node with an image that has sssd, and a directory in cluster.json. `python3` stands for the tool, whose own tests are elsewhere.
asked() {
  cluster_json "cluster['directory'] = {'kind': 'ldap', 'uris': ['ldaps://ldap.example.com'], 'start_tls': False, 'ca': '',
    'search_base': 'dc=example,dc=com', 'bind_dn': 'cn=reader', 'secret': '$ARN', 'ids': 'posix', 'id_range': [5000, 60000],
    'schema': 'rfc2307', 'access_filter': None, 'home': '/home/people/%u', 'shell': '/bin/bash'}"
  local -r root=$ULTRACLUSTER_ROOT
  mkdir -p "$root"/usr/sbin "$root"/usr/lib/x86_64-linux-gnu/{sssd,security} "$root"/etc/pam.d "$root"/etc/sssd
  touch "$root"/usr/sbin/sssd "$root"/usr/lib/x86_64-linux-gnu/{sssd/libsss_ldap.so,security/pam_sss.so,libnss_sss.so.2}
  chmod +x "$root/usr/sbin/sssd"
  printf 'passwd:         files systemd\ngroup:          files systemd # ours\nshadow:         files\nhosts: files dns\n' >"$root/etc/nsswitch.conf"
  touch "$root"/etc/pam.d/common-{auth,account,session}
  printf 'root:x:0:0::/root:/bin/sh\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash\n' >"$root/etc/passwd"
  printf 'root:x:0:\nsudo:x:27:ubuntu\nubuntu:x:1000:\n' >"$root/etc/group"
  # what writes PAM's files on Debian and Ubuntu
  cat >"$SANDBOX/bin/pam-auth-update" <<'SH'
#!/bin/bash
echo "pam-auth-update $*" >>"$FAKE/calls"
[[ $* != *--enable* ]] || { for one in auth account; do echo 'x pam_sss.so' >>"$ULTRACLUSTER_ROOT/etc/pam.d/common-$one"; done
  echo 'session optional pam_exec.so /usr/local/sbin/ultracluster-home' >>"$ULTRACLUSTER_ROOT/etc/pam.d/common-session"; }
SH
  rm -f "$SANDBOX/bin/aws" # a link to the fake that all tests share
  cat >"$SANDBOX/bin/aws" <<'SH'
#!/bin/bash
echo "aws $*" >>"$FAKE/calls"
[[ -e $FAKE/secret ]] || { echo "AccessDeniedException" >&2; exit 254; }
printf '{"SecretString": "%s"}' "$(cat "$FAKE/secret")"
SH
  chmod +x "$SANDBOX"/bin/{pam-auth-update,aws}
  echo word >"$FAKE/secret"
  mkdir -p "$FAKE/units/sssd"
}

@test "names are asked behind the node's own, and homes are those of the directory's ids" {
  asked
  run run_steps directory
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/nsswitch.conf")" $'passwd:         files systemd sss\ngroup:          files systemd sss # ours\nshadow:         files sss\nhosts: files dns'
  assert::equal $'LOWEST=5000\nHIGHEST=60000\nHOMES=/home/people\nMOUNT=/home' "$(cat "$ULTRACLUSTER_ROOT/etc/ultracluster/homes")"
  assert::called "pam-auth-update --package --enable sss ultracluster-home"
  assert::called "systemctl enable ultracluster-directory.timer ultracluster-home.socket"
  [[ -x $ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-directory && -e $ULTRACLUSTER_ROOT/opt/ultracluster/directory/home.sh ]]
}

@test "sssd.conf is root's, holds the password, and names the node's own groups" {
  local conf=$ULTRACLUSTER_ROOT/etc/sssd/sssd.conf
  asked
  run run_steps directory
  assert::equal 600 "$(stat -c %a "$conf")"
  conf=$(cat "$conf")
  assert::contains "$conf" $'\nldap_default_authtok = word\n'
  assert::contains "$conf" $'\nmin_id = 5000\nmax_id = 60000\n'
  assert::contains "$conf" $'\nfilter_users = root, ubuntu\n'
  [[ $conf =~ filter_groups\ =\ [^$'\n']*sudo,\ ubuntu,\ wheel ]]
  assert::equal '' "$(grep -rl word "$ULTRACLUSTER_ROOT"/{run,var,etc/ultracluster} || true)"
}

@test "a node whose directory or password is out of reach joins without it, and says why" {
  asked
  run run_steps directory
  assert::status 0
  assert::contains "$(tail -n 1 "$LOG")" "DEGRADED directory: directory: people of the directory may be unknown here (ldap.example.com:636: no address of that name"
  rm "$FAKE/secret" "$ULTRACLUSTER_ROOT/etc/sssd/sssd.conf"
  run run_steps directory
  assert::status 0
  assert::contains "$(tail -n 1 "$LOG")" "the password cannot be read from $ARN: AccessDeniedException"
}

@test "an image without sssd gets it from the distribution, and joins without it where that cannot be" {
  asked
  rm "$ULTRACLUSTER_ROOT/usr/lib/x86_64-linux-gnu/libnss_sss.so.2"
  run run_steps directory
  assert::status 0
  grep -q '^apt-get .*install sssd-ldap libnss-sss libpam-sss$' "$FAKE/calls" || { cat "$FAKE/calls" && return 1; }
  assert::contains "$(tail -n 1 "$LOG")" "DEGRADED directory"
}

@test "what cannot be a line of sssd.conf is refused by the tool" {
  asked
  printf 'two\\nlines' >"$FAKE/secret"
  run run_steps directory
  assert::contains "$(tail -n 1 "$LOG")" "the password in $ARN has a line break, or blanks around it"
  [[ ! -e $ULTRACLUSTER_ROOT/etc/sssd/sssd.conf ]]
}

@test "what is no longer asked for goes, with the password" {
  asked
  run run_steps directory
  cluster_json "del cluster['directory']"
  mkdir -p "$ULTRACLUSTER_ROOT/var/lib/sss/db"
  touch "$ULTRACLUSTER_ROOT/var/lib/sss/db/config.ldb"
  run run_steps directory
  assert::states directory=installed
  assert::equal '' "$(find "$ULTRACLUSTER_ROOT"/{etc,usr/local,opt/ultracluster,var/lib/sss} -type f '(' -name '*sssd.conf' -o -name '*directory*' -o -name '*home*' -o -name config.ldb ')')"
  run run_steps directory
  assert::states directory=skipped
}

@test "killed anywhere, the next run completes it" {
  scenario() { asked; }
  scenario
  kill_everywhere directory 4
}
