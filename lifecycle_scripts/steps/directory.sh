# shellcheck shell=bash
# Libraries: files packages
# People's accounts from a directory (LDAP, Microsoft Active Directory), through SSSD and over TLS. No domain is joined: each new
# or replaced node would have to be, with an account that may add computers, and leave one behind when it goes. A directory that
# does not answer stops nothing: whom a node knows it goes on knowing, and it joins degraded. The work is in files/directory.py.

# file of the scripts -> place on the node
declare -rA DIRECTORY_FILES=(
  ['files/directory.py']=/usr/local/sbin/ultracluster-directory
  ['files/directory_probe.py']=/usr/local/sbin/ultracluster-directory-probe
  ['files/directory.service']=/etc/systemd/system/ultracluster-directory.service
  ['files/directory.timer']=/etc/systemd/system/ultracluster-directory.timer
  ['files/home.sh']=/usr/local/sbin/ultracluster-home
  ['files/home_service.py']=/usr/local/sbin/ultracluster-home-service
  ['files/home.socket']=/etc/systemd/system/ultracluster-home.socket
  ['files/home@.service']=/etc/systemd/system/ultracluster-home@.service
  ['files/home_profile.sh']=/etc/profile.d/ultracluster-home.sh
  ['lib/home.sh']=/opt/ultracluster/directory/home.sh
)
readonly DIRECTORY_UNITS=(ultracluster-directory.timer ultracluster-home.socket)
readonly DIRECTORY_SETTINGS=/etc/ultracluster/directory.json
readonly DIRECTORY_HOMES=/etc/ultracluster/homes
readonly DIRECTORY_CONF=/etc/sssd/sssd.conf
readonly DIRECTORY_PAM=/usr/share/pam-configs/ultracluster-home
readonly DIRECTORY_SSHD=/etc/pam.d/sshd
readonly DIRECTORY_PAM_LINE="session optional pam_exec.so seteuid quiet /usr/local/sbin/ultracluster-home # ultracluster"

directory::detect() {
  local missing
  if [[ -z ${CLUSTER_DIRECTORY:-} ]]; then
    [[ -e $ULTRACLUSTER_ROOT$DIRECTORY_SETTINGS ]] || step::not_applicable "the environment names no directory"
    step::absent "to be taken away"
  fi
  missing=$(directory::missing)
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present "in place"
}

# What is not as it should be, one thing per line
directory::missing() {
  local name unit
  directory::has_sssd || echo "sssd"
  for name in "${!DIRECTORY_FILES[@]}"; do
    files::same "$ULTRACLUSTER_HOME/$name" "${DIRECTORY_FILES[$name]}" || echo "${DIRECTORY_FILES[$name]}"
  done
  files::has "$DIRECTORY_HOMES" "$(directory::homes)" || echo "$DIRECTORY_HOMES"
  directory::is_switched || echo "/etc/nsswitch.conf"
  directory::logs_in || echo "PAM"
  for unit in "${DIRECTORY_UNITS[@]}"; do
    systemctl is-enabled --quiet "$unit" || echo "$unit"
  done
  if ! files::has "$DIRECTORY_SETTINGS" "$CLUSTER_DIRECTORY"; then
    echo "$DIRECTORY_SETTINGS"
  else
    directory::tool check || echo "sssd's configuration"
  fi
}

directory::tool() { python3 -IS "$ULTRACLUSTER_HOME/files/directory.py" "$@"; }

# Of files/home.sh: whose homes, and where
directory::homes() {
  local lowest highest folder=${CLUSTER_DIRECTORY_HOME%/%u} mount=''
  read -r lowest highest <<<"$CLUSTER_DIRECTORY_IDS"
  for mount in "${OPENZFS_PATH:-}" "${LUSTRE_PATH:-}" ''; do
    [[ -z $mount || $folder/ != "$mount"/* ]] || break
  done
  printf 'LOWEST=%q\nHIGHEST=%q\nHOMES=%q\nMOUNT=%q\n' "$lowest" "$highest" "$folder" "$mount"
}

# --- sssd itself ---

# With the part that speaks LDAP, and those that name services and PAM load
directory::has_sssd() {
  local -r root=$ULTRACLUSTER_ROOT
  [[ -x $root/usr/sbin/sssd ]] || return 1
  directory::any "$root"/usr/lib{,64}{,/*-linux-gnu}/sssd/libsss_ldap.so &&
    directory::any "$root"{,/usr}/lib{,64}{,/*-linux-gnu}/libnss_sss.so.2 &&
    directory::any "$root"{,/usr}/lib{,64}{,/*-linux-gnu}/security/pam_sss.so
}

# directory::any PATH...: is one of them there?
directory::any() {
  local path
  for path in "$@"; do [[ ! -e $path ]] || return 0; done
  return 1
}

# From the repositories that the image has. Without a way to them it must be in the image: the release's mirror has what the
# release names, and sssd is the distribution's.
directory::bring_sssd() {
  local names=(sssd-ldap sssd-client)
  ! directory::has_sssd || return 0
  [[ $(packages::system) == dnf ]] || names=(sssd-ldap libnss-sss libpam-sss)
  packages::told packages::refresh || log::warn "the lists of packages are not fresh: $(packages::cause)"
  packages::install "${names[@]}" ||
    step::fail "sssd is not in the image, and cannot be installed (${names[*]}): $(packages::cause). Without a way to the distribution's repositories it must be in the image"
  directory::has_sssd || step::fail "sssd is not whole after ${names[*]} were installed"
}

# --- names and logins ---

directory::is_switched() {
  local database
  for database in passwd group; do
    grep -Eqs "^$database:.*[[:space:]]sss([[:space:]]|\$)" "$ULTRACLUSTER_ROOT/etc/nsswitch.conf" || return 1
  done
}

# Behind what is there: the node's own users come first.
directory::switch() {
  local text
  directory::is_switched && return 0
  text=$(sed -E '/^(passwd|group|shadow|initgroups):/{/[[:space:]]sss([[:space:]]|$)/!{s/[[:space:]]*(#.*)?$/ sss \1/;s/ +$//}}' "$ULTRACLUSTER_ROOT/etc/nsswitch.conf")
  files::write /etc/nsswitch.conf <<<"$text"
}

directory::logs_in() {
  local -r pam=$ULTRACLUSTER_ROOT/etc/pam.d
  if [[ -e $pam/common-account ]]; then
    grep -qs 'pam_sss\.so' "$pam/common-auth" && grep -qs 'pam_sss\.so' "$pam/common-account" &&
      grep -qs 'ultracluster-home' "$pam/common-session"
  else
    grep -qs 'pam_sss\.so' "$pam/password-auth" && grep -qs 'ultracluster-home' "$pam/sshd"
  fi
}

# Each distribution has a tool that writes these files, and would write them again without what it does not know.
directory::let_log_in() {
  directory::logs_in && return 0
  if command -v pam-auth-update >/dev/null; then
    files::install "$ULTRACLUSTER_HOME/files/pam_home" "$DIRECTORY_PAM"
    DEBIAN_FRONTEND=noninteractive pam-auth-update --package --enable sss ultracluster-home
  elif command -v authselect >/dev/null; then
    authselect select sssd --force || step::fail "authselect does not take its profile sssd"
    grep -qsxF "$DIRECTORY_PAM_LINE" "$ULTRACLUSTER_ROOT$DIRECTORY_SSHD" ||
      { cat "$ULTRACLUSTER_ROOT$DIRECTORY_SSHD" && echo "$DIRECTORY_PAM_LINE"; } | files::write "$DIRECTORY_SSHD"
  else
    step::fail "neither pam-auth-update nor authselect is here: logins cannot be set up"
  fi
  directory::logs_in || step::fail "PAM does not ask sssd after its set-up: files in /etc/pam.d were changed by hand"
}

directory::install() {
  local name mode reason
  [[ -n ${CLUSTER_DIRECTORY:-} ]] || directory::take_away
  directory::bring_sssd
  for name in "${!DIRECTORY_FILES[@]}"; do
    mode=0644
    [[ ${DIRECTORY_FILES[$name]} != */sbin/* ]] || mode=0755
    files::install "$ULTRACLUSTER_HOME/$name" "${DIRECTORY_FILES[$name]}" "$mode"
  done
  directory::homes | files::write "$DIRECTORY_HOMES"
  files::write "$DIRECTORY_SETTINGS" <<<"$CLUSTER_DIRECTORY"
  directory::switch
  directory::let_log_in
  systemctl daemon-reload
  systemctl enable "${DIRECTORY_UNITS[@]}"
  systemctl restart "${DIRECTORY_UNITS[@]}"
  # What fails here, as a secret that cannot be read yet, the timer does later.
  reason=$(directory::tool apply 2>&1) || step::fail "${reason##*$'\n'}"
}

# It was there, and is no more. The packages stay; the password does not.
directory::take_away() {
  local path
  systemctl disable "${DIRECTORY_UNITS[@]}"
  systemctl stop "${DIRECTORY_UNITS[@]}"
  systemctl disable sssd.service
  systemctl stop sssd.service
  if [[ -e $ULTRACLUSTER_ROOT$DIRECTORY_PAM ]]; then
    rm -f -- "$ULTRACLUSTER_ROOT$DIRECTORY_PAM"
    DEBIAN_FRONTEND=noninteractive pam-auth-update --package --remove ultracluster-home
  fi
  # sssd has a copy of its configuration.
  for path in "$DIRECTORY_CONF" /var/lib/sss/db/config.ldb /etc/ultracluster/directory-ca.pem "${DIRECTORY_FILES[@]}" "$DIRECTORY_HOMES" "$DIRECTORY_SETTINGS"; do
    rm -f -- "$ULTRACLUSTER_ROOT$path"
  done
  exit 0
}

directory::verify() {
  local answer
  if [[ -z ${CLUSTER_DIRECTORY:-} ]]; then
    step::message "taken away"
    return 0
  fi
  systemctl is-active --quiet sssd.service || step::fail "sssd does not run: see journalctl -u sssd"
  answer=$(directory::tool probe 2>&1) || step::fail "${answer##*$'\n'}"
  step::message "$answer"
}
