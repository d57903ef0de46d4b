# shellcheck shell=bash
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
  [[ $(logs::slurm) == "$(cat "$ULTRACLUSTER_ROOT$LOGS_SLURM" 2>/dev/null)" ]] || echo "$LOGS_SLURM"
}

logs::install() {
  files::same "$ULTRACLUSTER_HOME/files/logrotate.conf" "$LOGS_OURS" || files::install "$ULTRACLUSTER_HOME/files/logrotate.conf" "$LOGS_OURS"
  if [[ -n $(logs::slurm) ]]; then
    logs::slurm | files::write "$LOGS_SLURM"
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
  local path paths=()
  [[ $NODE_FAMILY != *eks* ]] || return 0
  while IFS= read -r path; do
    logs::is_rotated "$path" || paths+=("$path")
  done < <(logs::of_slurm)
  ((${#paths[@]} > 0)) || return 0
  printf '# Ultracluster, by %s\n%s {\n' "the slurm.conf manual" "${paths[*]}"
  cat <<'EOT'
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
}
EOT
}

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

# logs::is_rotated PATH: by a file that is not ours? logrotate refuses a log that two files name.
logs::is_rotated() {
  local file word words
  for file in "$ULTRACLUSTER_ROOT$LOGS_FOLDER"/*; do
    [[ -f $file && $file != "$ULTRACLUSTER_ROOT$LOGS_SLURM" ]] || continue
    mapfile -t words < <(grep -oE '"?/[^[:space:]{"]+' "$file" | tr -d '"')
    for word in "${words[@]}"; do
      # A pattern, whose * does not stand for a folder
      # shellcheck disable=SC2053
      [[ $1 != $word || ${1//[^\/]/} != "${word//[^\/]/}" ]] || return 0
    done
  done
  return 1
}
