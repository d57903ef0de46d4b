#!/usr/bin/env bats
# The step that lays the service for credentials of the jobs' role; test_job_credentials.py has what it answers.

load helpers

readonly ROLE=arn:aws:iam::111122223333:role/dev-jobs

asked() {
  cluster_json "cluster.update(region='eu-north-1', job_role='$ROLE'); gpu['job_access'] = True"
  mkdir -p "$ULTRACLUSTER_ROOT/etc/enroot/mounts.d"
}

@test "users of nodes and containers find the service" {
  asked
  run run_steps job_access
  assert::status 0
  assert::states job_access=installed
  assert::equal $'[default]\nregion = eu-north-1\ncredential_process = /opt/ultracluster/jobs/credentials' \
    "$(cat "$ULTRACLUSTER_ROOT/opt/ultracluster/jobs/aws_config")"
  assert::equal $'ROLE='"$ROLE"$'\nREGION=eu-north-1' "$(cat "$ULTRACLUSTER_ROOT/etc/ultracluster/job-access")"
  [[ -x $ULTRACLUSTER_ROOT/opt/ultracluster/jobs/credentials && -e $ULTRACLUSTER_ROOT/etc/enroot/mounts.d/60-ultracluster-jobs.fstab ]]
  assert::called 'systemctl restart ultracluster-job-credentials.socket'
  : >"$FAKE/changes"
  run run_steps job_access
  assert::states job_access=already
  assert::equal '' "$(cat "$FAKE/changes")"
}

@test "a new role is taken up, and what is no longer asked for is taken away" {
  asked
  run run_steps job_access
  cluster_json "cluster['job_role'] += '2'"
  run run_steps job_access
  assert::states job_access=installed
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/ultracluster/job-access")" "${ROLE}2"
  cluster_json "del gpu['job_access']"
  run run_steps job_access
  assert::status 0
  assert::equal '' "$(find "$ULTRACLUSTER_ROOT"/{etc,opt,usr} -type f '(' -name '*job*' -o -name '*aws_config*' ')')"
  run run_steps job_access
  assert::states job_access=skipped
}

@test "a node that is not told the role joins without it" {
  asked
  cluster_json "cluster['job_role'] = None"
  run run_steps job_access
  assert::status 0
  assert::contains "$(tail -n 1 "$LOG")" "DEGRADED job_access: job_access: jobs have no role for S3"
}

@test "login shells of users name the configuration, and leave one of their own alone" {
  local -r profile=$REPOSITORY/lifecycle_scripts/files/job_profile.sh
  named() { env "$@" sh -c "id() { echo \$WHO; }; . '$profile'; echo \"\${AWS_CONFIG_FILE:-none}\""; }
  mkdir -p "$SANDBOX/own/.aws"
  touch "$SANDBOX/own/.aws/config"
  assert::equal /opt/ultracluster/jobs/aws_config "$(named WHO=1000 HOME="$SANDBOX" AWS_CONFIG_FILE=)"
  assert::equal none "$(named WHO=0 HOME="$SANDBOX" AWS_CONFIG_FILE=)"
  assert::equal none "$(named WHO=1000 HOME="$SANDBOX/own" AWS_CONFIG_FILE=)"
  assert::equal /mine "$(named WHO=1000 HOME="$SANDBOX" AWS_CONFIG_FILE=/mine)"
}
