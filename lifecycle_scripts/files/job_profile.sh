# shellcheck shell=sh
# Ultracluster: users without an AWS configuration of their own get the jobs' role. Root has the node's own.
if [ "$(id -u)" -ge 1000 ] && [ -z "${AWS_CONFIG_FILE:-}" ] && [ ! -e "${HOME:-/}/.aws/config" ]; then
  export AWS_CONFIG_FILE=/opt/ultracluster/jobs/aws_config
fi
