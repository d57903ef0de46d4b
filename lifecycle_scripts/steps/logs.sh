# shellcheck shell=bash
# Libraries: files
# Log rotation: our own logs, and Slurm's where the image does not rotate them. AWS's scripts for HyperPod do so, too
# (awslabs/awsome-distributed-ai, base-config, enable_slurm_log_rotation); ParallelCluster's image has its own.

readonly LOGS_FOLDER=/etc/logrotate.d
readonly LOGS_OURS=$LOGS_FOLDER/ultracluster
readonly LOGS_SLURM=$LOGS_FOLDER/ultracluster-slurm
# Where orchestrators have them, unless their configuration names another place (logs::of_slurm)
readonly LOGS_USUAL=(/var/log/slurm/{slurmctld,slurmd,slurmdbd}.log /var/log/{slurmctld,slurmd,slurmdbd}.log)

logs::detect() {
  local missing
  missing=$(logs::missing)
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present
}

logs::missing() {
  files::same "$ULTRACLUSTER_HOME/files/logrotate.conf" "$LOGS_OURS" || echo "$LOGS_OURS"
  local -r slurm=$(logs::slurm)
  if [[ -n $slurm ]]; then
    files::has "$LOGS_SLURM" "$slurm"
  else
    [[ ! -s $ULTRACLUSTER_ROOT$LOGS_SLURM ]]
  fi || echo "$LOGS_SLURM"
}

logs::install() {
  files::same "$ULTRACLUSTER_HOME/files/logrotate.conf" "$LOGS_OURS" || files::install "$ULTRACLUSTER_HOME/files/logrotate.conf" "$LOGS_OURS"
  local -r slurm=$(logs::slurm)
  if [[ -n $slurm ]]; then
    files::write "$LOGS_SLURM" <<<"$slurm"
  else
    rm -f -- "$ULTRACLUSTER_ROOT$LOGS_SLURM"
  fi
}

logs::verify() {
  local missing said="ours"
  missing=$(logs::missing)
  [[ -z $missing ]] || step::fail "not as it should be: ${missing//$'\n'/, }"
  [[ ! -e $ULTRACLUSTER_ROOT$LOGS_SLURM ]] || said+=" and Slurm's"
  if [[ -x $ULTRACLUSTER_ROOT/usr/sbin/logrotate ]]; then
    step::message "rotated: $said"
  else
    log::warn "nothing rotates logs: this image has no logrotate"
    step::message "nothing rotates logs: this image has no logrotate"
  fi
}

# The rotation of Slurm's logs; empty where somebody else rotates them all, and where there is no Slurm. Slurm's daemons open their logs
# again at SIGUSR2; to copy and truncate would lose lines (slurm.conf manual, "Log files").
logs::slurm() {
  local path paths=() words
  [[ $NODE_FAMILY != *eks* ]] || return 0
  logs::rotated
  while IFS= read -r path; do
    logs::is_rotated "$path" || paths+=("$path")
  done < <(logs::of_slurm)
  ((${#paths[@]} > 0)) || return 0
  printf '# Ultracluster, by %s\n%s {%s\n' "the slurm.conf manual" "${paths[*]}" "$LOGS_HOW"
}

# shellcheck disable=SC2016 # nothing is to be expanded
readonly LOGS_HOW='
    size 20M
    rotate 5
    compress
    missingok
    notifempty
    nocopytruncate
    create
    sharedscripts
    postrotate
        for daemon in slurmctld slurmd slurmdbd; do pkill -x --signal SIGUSR2 "$daemon" || true; done
    endscript
}'

# One path per line, each once
logs::of_slurm() {
  local path paths=("${LOGS_USUAL[@]}") file line
  for file in "$ULTRACLUSTER_ROOT"{/opt/slurm/etc,/var/spool/slurmd/conf-cache}/slurm{,dbd}.conf; do
    [[ -r $file ]] || continue
    while IFS= read -r line; do
      [[ ${line,,} =~ ^[[:space:]]*(slurmctldlogfile|slurmdlogfile|logfile)[[:space:]]*= ]] || continue
      path=${line#*=} path=${path%%[[:space:]]#*} path=${path//[[:space:]]/}
      # A pattern of names (%h) is what the daemon makes of it.
      [[ $path != /* || $path == *%* || " ${paths[*]} " == *" $path "* ]] || paths+=("$path")
    done <"$file"
  done
  printf '%s\n' "${paths[@]}"
}

# logs::rotated: sets `words` to the paths and patterns in files that are not ours
logs::rotated() {
  local file files=()
  words=()
  for file in "$ULTRACLUSTER_ROOT$LOGS_FOLDER"/*; do
    [[ ! -f $file || $file == "$ULTRACLUSTER_ROOT$LOGS_SLURM" ]] || files+=("$file")
  done
  ((${#files[@]} > 0)) || return 0
  # In quotes of either kind, or in none
  mapfile -t words < <(grep -hoE "[\"']?/[^[:space:]{\"']+" "${files[@]}")
  words=("${words[@]#[\"\']}")
}

# logs::is_rotated PATH: by one of `words`? logrotate refuses a log that two files name.
logs::is_rotated() {
  local word
  for word in "${words[@]}"; do
    # A pattern, whose * does not stand for a folder
    # shellcheck disable=SC2053
    [[ $1 != $word || ${1//[^\/]/} != "${word//[^\/]/}" ]] || return 0
  done
  return 1
}
