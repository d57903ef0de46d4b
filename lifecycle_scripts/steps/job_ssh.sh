# shellcheck shell=bash
# Libraries: files mounts
# People reach compute nodes by SSH only where a job of theirs runs: Slurm's pam_slurm_adopt lets them in, and makes what they
# start a part of that job, which ends with it. Without the module nobody but administrators gets in: it is made of Slurm's own
# sources, not of its headers (contribs/pam_slurm_adopt), and a module of another Slurm asks the job's daemon in a language that it
# does not know. Login nodes and controllers are left open: some run slurmd, and nobody could log in there
# (awslabs/awsome-distributed-ai#777, #778). Sessions of Session Manager are no SSH, and go on. Slurm's own configuration is not
# touched (TaskPlugin is HyperPod's; PrologFlags=Contain comes with the cluster's settings).

readonly JOB_SSH_PAM=/etc/pam.d/sshd
readonly JOB_SSH_ACCESS=/etc/security/ultracluster-ssh.conf
readonly JOB_SSH_SSHD=/etc/ssh/sshd_config.d/00-ultracluster-jobs.conf
readonly JOB_SSH_FOLDER=/opt/ultracluster/ssh/folder
readonly JOB_SSH_MARK='# ultracluster'
# Fail closed: whom the module cannot judge stays out.
readonly JOB_SSH_OPTIONS="action_no_jobs=deny action_unknown=newest action_generic_failure=deny action_adopt_failure=deny"
# Below the file system that all nodes have
readonly JOB_SSH_KEYS=.ultracluster/node-keys
# file in this folder -> place on the node
declare -rA JOB_SSH_FILES=(
  ['ssh_key.sh']=/opt/ultracluster/bin/ssh-key
  ['node_keys.sh']=/opt/ultracluster/bin/node-keys
  ['ssh_profile.sh']=/etc/profile.d/ultracluster-ssh.sh
  ['ssh_nodes.conf']=/etc/ssh/ssh_config.d/50-ultracluster.conf
)

job_ssh::detect() {
  local missing
  if [[ -z ${CLUSTER_JOB_SSH:-} ]]; then
    [[ -e $ULTRACLUSTER_ROOT$JOB_SSH_ACCESS ]] || step::not_applicable "every user may reach every node by SSH"
    step::absent "to be opened"
  fi
  missing=$(job_ssh::missing)
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present "in place"
}

# What is not as it should be, one thing per line
job_ssh::missing() {
  local name
  for name in "${!JOB_SSH_FILES[@]}"; do
    files::same "$ULTRACLUSTER_HOME/files/$name" "${JOB_SSH_FILES[$name]}" || echo "${JOB_SSH_FILES[$name]}"
  done
  job_ssh::is_known || echo "this node's host keys for the others"
  [[ $NODE_ROLE == compute ]] && job_ssh::has_sshd || return 0
  [[ $(cat "$ULTRACLUSTER_ROOT$JOB_SSH_ACCESS" 2>/dev/null) == "$(job_ssh::access)" ]] || echo "$JOB_SSH_ACCESS"
  [[ $(cat "$ULTRACLUSTER_ROOT$JOB_SSH_SSHD" 2>/dev/null) == "$(job_ssh::sshd)" ]] || echo "$JOB_SSH_SSHD"
  for name in $(job_ssh::included); do
    [[ $(cat "$ULTRACLUSTER_ROOT$(job_ssh::copy "$name")" 2>/dev/null) == "$(job_ssh::without_logind "$name")" ]] || job_ssh::copy "$name"
  done
  [[ $(cat "$ULTRACLUSTER_ROOT$JOB_SSH_PAM" 2>/dev/null) == "$(job_ssh::pam)" ]] || echo "$JOB_SSH_PAM"
}

# --- who gets in ---

# Of pam_access, without groups: a directory may have a group of any name.
job_ssh::access() {
  local user
  echo "# Ultracluster: who may reach this node by SSH without a job on it"
  for user in root $CLUSTER_JOB_SSH; do echo "+:$user:ALL"; done
  echo "-:ALL:ALL"
}

job_ssh::sshd() { printf '# Ultracluster: PAM says who gets in (%s)\nUsePAM yes\n' "$JOB_SSH_PAM"; }

# Path of the module that belongs to the Slurm of this node and can be loaded; nothing where there is none
job_ssh::module() {
  local -r root=$ULTRACLUSTER_ROOT
  local prefix path
  for prefix in /opt/slurm "$root"/opt/aws/pcs/scheduler/slurm-"${CLUSTER_SLURM_VERSION:-}"*; do
    prefix=${prefix#"$root"}
    [[ -x $root$prefix/bin/srun || -x $root$prefix/sbin/slurmd ]] || continue
    # Where its own build puts it; /lib/security, where a build as root may (contribs/pam_slurm_adopt, PAM_DIR)
    for path in "$prefix"/lib{,64}/security "$prefix"/lib/slurm {,/usr}/lib{,64}/security {,/usr}/lib/"$(uname -m)"-linux-gnu/security; do
      job_ssh::is_module "$path/pam_slurm_adopt.so" "$prefix" && echo "$path/pam_slurm_adopt.so" && return
    done
    return 0
  done
  # Slurm of the distribution
  [[ -x $root/usr/sbin/slurmd ]] || return 0
  for path in {,/usr}/lib{,64}/security {,/usr}/lib/"$(uname -m)"-linux-gnu/security; do
    job_ssh::is_module "$path/pam_slurm_adopt.so" /usr && echo "$path/pam_slurm_adopt.so" && return
  done
  return 0
}

# job_ssh::is_module PATH PREFIX: is it there, and does the loader find its libslurm, below PREFIX?
job_ssh::is_module() {
  local needs
  [[ -e $ULTRACLUSTER_ROOT$1 ]] || return 1
  needs=$(ldd "$ULTRACLUSTER_ROOT$1" 2>/dev/null) || return 1
  [[ $needs != *'not found'* ]] || return 1
  [[ $needs != *libslurm* || $2 == /usr || $needs == *"$2/"*libslurm* ]]
}

# What PAM asks of sshd. Ours come first: what the distribution includes may end with "sufficient", and then nothing that follows
# is asked. An administrator jumps over the second line.
job_ssh::account() {
  local module
  module=$(job_ssh::module)
  if [[ -n $module ]]; then
    echo "account [success=1 default=ignore] pam_access.so nodefgroup noaudit accessfile=$JOB_SSH_ACCESS $JOB_SSH_MARK"
    echo "account required $module $JOB_SSH_OPTIONS $JOB_SSH_MARK"
  else
    echo "account required pam_access.so nodefgroup accessfile=$JOB_SSH_ACCESS $JOB_SSH_MARK"
  fi
}

# The file without our lines, and with the names of what it includes that are the distribution's
job_ssh::original() {
  sed -E "/ $JOB_SSH_MARK\$/{/pam_(access|slurm_adopt)/d;s/ultracluster-([a-z-]+) $JOB_SSH_MARK\$/\1/}" "$ULTRACLUSTER_ROOT$JOB_SSH_PAM"
}

# Files that its sessions include and that know pam_systemd, which moves a session out of the job's cgroup into one of logind's
# (Slurm, pam_slurm_adopt: "PAM Config")
job_ssh::included() {
  local name
  [[ -n $(job_ssh::module) ]] || return 0
  job_ssh::original | sed -nE 's/^(@include|-?session[[:space:]]+(include|substack))[[:space:]]+([a-z-]+)[[:space:]]*$/\3/p' | sort -u |
    while read -r name; do
      ! grep -Eqs '^-?session.*pam_systemd\.so' "$ULTRACLUSTER_ROOT/etc/pam.d/$name" || echo "$name"
    done
}

job_ssh::copy() { echo "/etc/pam.d/ultracluster-$1"; }

job_ssh::without_logind() {
  echo "# Ultracluster: /etc/pam.d/$1 without pam_systemd, for sshd on nodes of jobs"
  sed -E '/^-?session.*pam_systemd\.so/d' "$ULTRACLUSTER_ROOT/etc/pam.d/$1"
}

# The whole file as it should be
job_ssh::pam() {
  local account text name
  account=$(job_ssh::account)
  text=$(job_ssh::original)
  if [[ $account == *pam_slurm_adopt* ]]; then
    text=$(sed -E '/^-?session.*pam_systemd\.so/d' <<<"$text")
    for name in $(job_ssh::included); do
      text=$(sed -E "s/^(@include|-?session[[:space:]]+(include|substack))([[:space:]]+)${name}[[:space:]]*\$/\1\3ultracluster-$name $JOB_SSH_MARK/" <<<"$text")
    done
  fi
  # Before the first line that is of accounts
  awk -v ours="$account" '!done && (/^-?account/ || /^@include[[:space:]]+common-account/) { print ours; done = 1 } { print } END { if (!done) print ours }' <<<"$text"
}

# --- nodes know each other ---

job_ssh::shared() {
  local path
  for path in "${OPENZFS_PATH:-}" "${LUSTRE_PATH:-}"; do
    [[ -z $path || -z $(mounts::at "$path") ]] || { echo "$path/$JOB_SSH_KEYS" && return; }
  done
}

# Names by which users call this node
job_ssh::names() {
  {
    hostname
    hostname --short
    hostname --fqdn
    echo "$NODE_ADDRESS"
  } 2>/dev/null | grep -E '^[A-Za-z0-9][A-Za-z0-9._:-]*$' | sort -u
}

job_ssh::keys() {
  local names file
  names=$(job_ssh::names)
  for file in "$ULTRACLUSTER_ROOT"/etc/ssh/ssh_host_*_key.pub; do
    [[ ! -e $file ]] || awk -v names="${names//$'\n'/,}" '{ print names, $1, $2 }' "$file"
  done
}

job_ssh::is_known() {
  local folder keys name
  folder=$(job_ssh::shared)
  [[ -n $folder ]] || return 0
  [[ $(cat "$ULTRACLUSTER_ROOT$JOB_SSH_FOLDER" 2>/dev/null) == "$folder" ]] || return 1
  keys=$(job_ssh::keys)
  while read -r name; do
    [[ $(cat "$ULTRACLUSTER_ROOT$folder/$name" 2>/dev/null) == "$keys" ]] || return 1
  done < <(job_ssh::names)
}

job_ssh::make_known() {
  local folder name path
  folder=$(job_ssh::shared)
  if [[ -z $folder ]]; then
    log::warn "no shared file system is mounted: nodes do not know each other's host keys, and users have no key on all of them"
    return 0
  fi
  mkdir -p "$ULTRACLUSTER_ROOT$folder" || step::fail "$folder cannot be made: may this node's root write there (root squash)?"
  # Where users may write, one of them may have been first: he would tell everybody which nodes to trust.
  for path in "$ULTRACLUSTER_ROOT${folder%/*}" "$ULTRACLUSTER_ROOT$folder"; do
    [[ -d $path && ! -L $path && -O $path ]] || step::fail "${path#"$ULTRACLUSTER_ROOT"} is not root's own folder: remove it, or move it away"
    chmod 0755 "$path"
  done
  while read -r name; do
    job_ssh::keys | files::write "$folder/$name" || step::fail "${FILES_ERROR:-$folder cannot be written}"
  done < <(job_ssh::names)
  files::write "$JOB_SSH_FOLDER" <<<"$folder"
}

# --- all of it ---

job_ssh::install() {
  local name mode
  [[ -n ${CLUSTER_JOB_SSH:-} ]] || job_ssh::open
  for name in "${!JOB_SSH_FILES[@]}"; do
    mode=0644
    [[ ${JOB_SSH_FILES[$name]} != */bin/* ]] || mode=0755
    files::install "$ULTRACLUSTER_HOME/files/$name" "${JOB_SSH_FILES[$name]}" "$mode"
  done
  [[ $NODE_ROLE != compute ]] || job_ssh::close
  job_ssh::make_known
}

# Where it is not installed nobody gets in by SSH, and there is nothing to close.
job_ssh::has_sshd() { command -v sshd >/dev/null || [[ -x $ULTRACLUSTER_ROOT/usr/sbin/sshd ]]; }

# PAM's file comes last, when sshd has taken its configuration, and the modules are there: a run that is killed leaves sshd as it
# was, or closed.
job_ssh::close() {
  local name pam why had=''
  job_ssh::has_sshd || return 0
  [[ -e $ULTRACLUSTER_ROOT$JOB_SSH_PAM ]] || step::fail "there is no $JOB_SSH_PAM: sshd does not ask PAM here"
  job_ssh::has_pam_access || step::fail "pam_access.so is not on this image"
  pam=$(job_ssh::pam)
  job_ssh::access | files::write "$JOB_SSH_ACCESS"
  for name in $(job_ssh::included); do
    job_ssh::without_logind "$name" | files::write "$(job_ssh::copy "$name")"
  done
  [[ ! -e $ULTRACLUSTER_ROOT$JOB_SSH_SSHD ]] || had=yes
  job_ssh::sshd | files::write "$JOB_SSH_SSHD"
  if ! why=$(job_ssh::accepted); then
    [[ -n $had ]] || rm -f -- "$ULTRACLUSTER_ROOT$JOB_SSH_SSHD"
    step::fail "$why; it has its former configuration"
  fi
  files::write "$JOB_SSH_PAM" <<<"$pam"
  job_ssh::reload
}

job_ssh::reload() {
  systemctl try-reload-or-restart ssh.service sshd.service 2>/dev/null || log::warn "sshd did not read its configuration again"
}

# It was for jobs only, and is open to everybody again. Keys of users and nodes stay: they are of use there, too.
job_ssh::open() {
  local pam path
  pam=$(job_ssh::original)
  files::write "$JOB_SSH_PAM" <<<"$pam"
  for path in "$JOB_SSH_SSHD" "$JOB_SSH_ACCESS" /etc/pam.d/ultracluster-{common-session,password-auth,system-auth}; do
    rm -f -- "$ULTRACLUSTER_ROOT$path"
  done
  job_ssh::reload
  exit 0
}

job_ssh::has_pam_access() {
  local path
  for path in "$ULTRACLUSTER_ROOT"{,/usr}/lib{,64}{,/*-linux-gnu}/security/pam_access.so; do
    [[ ! -e $path ]] || return 0
  done
  return 1
}

# Does sshd take what it is given, and ask PAM? Prints why not.
job_ssh::accepted() {
  local sshd=$ULTRACLUSTER_ROOT/usr/sbin/sshd settings
  [[ -x $sshd ]] || sshd=$(command -v sshd)
  settings=$("$sshd" -T 2>&1) || {
    settings=${settings//$'\r'/}
    echo "sshd refuses its configuration: ${settings##*$'\n'}"
    return 1
  }
  [[ $'\n'${settings,,}$'\n' == *$'\nusepam yes\n'* ]] || { echo "sshd's own configuration turns PAM off, and does not read ${JOB_SSH_SSHD%/*}" && return 1; }
}

job_ssh::verify() {
  local missing
  if [[ -z ${CLUSTER_JOB_SSH:-} ]]; then
    step::message "open to every user"
    return 0
  fi
  missing=$(job_ssh::missing)
  [[ -z $missing ]] || step::fail "not as it should be: ${missing//$'\n'/, }"
  if [[ $NODE_ROLE != compute ]]; then
    step::message "users get from here to the nodes of their jobs"
  elif [[ -n $(job_ssh::module) ]]; then
    step::message "$(job_ssh::module)"
  else
    step::message "closed to all but $CLUSTER_JOB_SSH: no pam_slurm_adopt.so of this node's Slurm"
  fi
}
