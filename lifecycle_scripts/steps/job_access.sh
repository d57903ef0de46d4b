# shellcheck shell=bash
# Libraries: files
# Users' jobs get to S3 by a role of their own: a service hands its credentials to whoever asks at a socket, by the user that the
# kernel names (files/job_credentials.py). SDKs find it through an AWS configuration that login shells and containers have.

# file in this folder -> place on the node
declare -rA JOB_ACCESS_FILES=(
  ['job_credentials.py']=/usr/local/sbin/ultracluster-job-credentials
  ['job_credentials.service']=/etc/systemd/system/ultracluster-job-credentials.service
  ['job_credentials.socket']=/etc/systemd/system/ultracluster-job-credentials.socket
  ['job_credentials_client.py']=/opt/ultracluster/jobs/credentials
  ['job_profile.sh']=/etc/profile.d/ultracluster-jobs.sh
)
readonly JOB_ACCESS_MOUNTS=/etc/enroot/mounts.d/60-ultracluster-jobs.fstab
readonly JOB_ACCESS_CONFIG=/etc/ultracluster/job-access
readonly JOB_ACCESS_AWS=/opt/ultracluster/jobs/aws_config

job_access::detect() {
  local missing
  if [[ ${NODE_JOB_ACCESS:-} != yes ]]; then
    [[ -e $ULTRACLUSTER_ROOT$JOB_ACCESS_CONFIG ]] || step::not_applicable "storage.job_buckets is not for this node"
    step::absent "to be taken away"
  fi
  [[ -n ${CLUSTER_JOB_ROLE:-} && -n ${CLUSTER_REGION:-} ]] || step::fail "cluster.json does not tell the jobs' role and its Region"
  missing=$(job_access::missing)
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present "in place"
}

# What is not as it should be, one thing per line
job_access::missing() {
  local name
  for name in "${!JOB_ACCESS_FILES[@]}"; do
    files::same "$ULTRACLUSTER_HOME/files/$name" "${JOB_ACCESS_FILES[$name]}" || echo "${JOB_ACCESS_FILES[$name]}"
  done
  ! job_access::has_enroot || files::same "$ULTRACLUSTER_HOME/files/job_mounts.fstab" "$JOB_ACCESS_MOUNTS" || echo "$JOB_ACCESS_MOUNTS"
  [[ $(cat "$ULTRACLUSTER_ROOT$JOB_ACCESS_CONFIG" 2>/dev/null) == "$(job_access::config)" ]] || echo "$JOB_ACCESS_CONFIG"
  [[ $(cat "$ULTRACLUSTER_ROOT$JOB_ACCESS_AWS" 2>/dev/null) == "$(job_access::aws)" ]] || echo "$JOB_ACCESS_AWS"
  systemctl is-enabled --quiet ultracluster-job-credentials.socket || echo "its socket"
}

job_access::has_enroot() { [[ -d $ULTRACLUSTER_ROOT/etc/enroot ]]; }

job_access::config() { printf 'ROLE=%s\nREGION=%s\n' "$CLUSTER_JOB_ROLE" "$CLUSTER_REGION"; }

job_access::aws() {
  printf '[default]\nregion = %s\ncredential_process = %s\n' "$CLUSTER_REGION" "${JOB_ACCESS_FILES['job_credentials_client.py']}"
}

job_access::install() {
  local name mode
  [[ ${NODE_JOB_ACCESS:-} == yes ]] || job_access::take_away
  for name in "${!JOB_ACCESS_FILES[@]}"; do
    mode=0644
    [[ $name != *.py ]] || mode=0755
    files::install "$ULTRACLUSTER_HOME/files/$name" "${JOB_ACCESS_FILES[$name]}" "$mode"
  done
  ! job_access::has_enroot || files::install "$ULTRACLUSTER_HOME/files/job_mounts.fstab" "$JOB_ACCESS_MOUNTS"
  job_access::config | files::write "$JOB_ACCESS_CONFIG"
  job_access::aws | files::write "$JOB_ACCESS_AWS"
  systemctl daemon-reload
  systemctl enable ultracluster-job-credentials.socket
  # One that runs has the role that it was started with.
  systemctl stop ultracluster-job-credentials.service
  systemctl restart ultracluster-job-credentials.socket
}

# It was there, and is no more.
job_access::take_away() {
  local path
  systemctl disable ultracluster-job-credentials.socket
  systemctl stop ultracluster-job-credentials.socket
  systemctl stop ultracluster-job-credentials.service
  for path in "${JOB_ACCESS_FILES[@]}" "$JOB_ACCESS_MOUNTS" "$JOB_ACCESS_AWS" "$JOB_ACCESS_CONFIG"; do
    rm -f -- "$ULTRACLUSTER_ROOT$path"
  done
  exit 0
}

job_access::verify() {
  local missing
  if [[ ${NODE_JOB_ACCESS:-} != yes ]]; then
    step::message "taken away"
    return 0
  fi
  missing=$(job_access::missing)
  [[ -z $missing ]] || step::fail "not as it should be: ${missing//$'\n'/, }"
  systemctl is-active --quiet ultracluster-job-credentials.socket || step::fail "its socket does not listen"
  step::message "$CLUSTER_JOB_ROLE"
}
