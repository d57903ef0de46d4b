#!/usr/bin/env bats
# The entries of every orchestrator: who the node is there, and which steps it gets.

load helpers
load software

# entry NAME [ARGUMENT...]
entry() { on_node "$SCRIPTS/$1.sh" "${@:2}"; }

# elsewhere TYPE FILE...: not HyperPod, an instance of this type
elsewhere() {
  local file
  rm -r "$ULTRACLUSTER_ROOT/opt/ml"
  mkdir -p "$ULTRACLUSTER_ROOT/sys/devices/virtual/dmi/id"
  echo "$1" >"$ULTRACLUSTER_ROOT/sys/devices/virtual/dmi/id/product_name"
  for file in "${@:2}"; do
    mkdir -p "$ULTRACLUSTER_ROOT${file%/*}"
    touch "$ULTRACLUSTER_ROOT$file"
  done
  empty_release
}

# What is installed is not what these tests are about.
empty_release() {
  local file
  for file in "$SCRIPTS"/releases/*.lock; do
    printf '{"schema": 2, "release": "%s", "components": {}}' "$(basename "$file" .lock)" >"$file"
  done
}

mounts() {
  "$REAL/python3" -IS -c '
import json, sys
mounts = json.load(open(sys.argv[1]))["mounts"]
lustre, openzfs = mounts["lustre"], mounts["openzfs"]
print(lustre["path"], lustre["dns_name"], lustre["mount_name"], "yes" if lustre["efa"] else "no", *openzfs.values())
' "$SCRIPTS/cluster.json"
}

steps() {
  "$REAL/python3" -IS -c 'import json, sys; print(*[line["step"] for line in map(json.loads, open(sys.argv[1])) if "step" in line])' "$REPORT"
}

@test "ParallelCluster: the node's type is in cfnconfig" {
  local type role
  only_steps topology
  elsewhere p5.48xlarge /etc/parallelcluster/cfnconfig
  while read -r type role; do
    printf 'stack_name=dev\ncfn_node_type=%s\n' "$type" >"$ULTRACLUSTER_ROOT/etc/parallelcluster/cfnconfig"
    run entry parallelcluster_on_node_configured
    assert::status 0
    assert::contains "$output" "this is a $role node"
  done <<<$'HeadNode controller\nComputeFleet compute\nLoginNode login'
  assert::contains "$output" "parallelcluster image"
}

@test "ParallelCluster: no cfnconfig, or one that says nothing, is an error" {
  elsewhere p5.48xlarge /etc/parallelcluster/cfnconfig
  run entry parallelcluster_on_node_start
  assert::status 1
  assert::last_log_line "FAILED node: $ULTRACLUSTER_ROOT/etc/parallelcluster/cfnconfig does not tell the node's type"
}

@test "PCS: the group is given, or the one with this instance type" {
  only_steps topology
  elsewhere m5.xlarge /opt/aws/pcs/scheduler/slurm-25.11/bin/srun
  cluster_json 'cluster["mounts"] = {}'
  run entry pcs_node
  assert::status 0
  assert::contains "$output" "this is a login node of group 'entrance' (m5.xlarge"
  run entry pcs_node --group head
  assert::contains "$output" "this is a controller node of group 'head'"
  run entry pcs_node --group nobody
  assert::status 1
  assert::last_log_line "FAILED node: group 'nobody' is not in $SCRIPTS/cluster.json, which knows entrance, gpu, head"
  run entry pcs_node --role x
  assert::status 2
}

@test "PCS: what is mounted is told by arguments, and kept in cluster.json" {
  local efa
  only_steps topology
  elsewhere m5.xlarge /opt/aws/pcs/scheduler/slurm-25.11/bin/srun
  cluster_json 'cluster.pop("mounts", None)'
  for efa in yes no; do
    run entry pcs_node --lustre /fsx fs-1.fsx.us-east-2.amazonaws.com abcdefgh "$efa" \
      --openzfs /home fs-2.fsx.us-east-2.amazonaws.com /fsx --group head
    assert::status 0
    assert::contains "$output" "this is a controller node of group 'head'"
    assert::equal "/fsx fs-1.fsx.us-east-2.amazonaws.com abcdefgh $efa /home fs-2.fsx.us-east-2.amazonaws.com /fsx" "$(mounts)"
  done
  run entry pcs_node --openzfs /home fs-2.fsx.us-east-2.amazonaws.com /fsx
  assert::status 0
  run entry pcs_node --lustre /fsx fs-1.fsx.us-east-2.amazonaws.com abcdefgh maybe
  assert::status 2
  run entry pcs_node --lustre /fsx fs-1.fsx.us-east-2.amazonaws.com
  assert::status 2
  assert::contains "$output" "usage: pcs_node.sh"
  run entry pcs_node --lustre /fsx 'fs-1;reboot' abcdefgh no
  assert::status 1
  assert::contains "$output" "mounts.lustre.dns_name is 'fs-1;reboot'"
}

@test "PCS: the role of jobs is told by an argument, and handed out where the group says so" {
  local -r role=arn:aws:iam::111122223333:role/dev-jobs
  only_steps job_access
  elsewhere p5.48xlarge /opt/aws/pcs/scheduler/slurm-25.11/bin/srun
  cluster_json 'cluster.pop("mounts", None); cluster["region"] = "us-east-2"; gpu["job_access"] = True'
  run entry pcs_node --job-role "$role" --group gpu
  assert::status 0
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/ultracluster/job-access")" "ROLE=$role"
  run entry pcs_node --job-role 'arn:aws:iam::1:role/a' --group gpu
  assert::status 1
  assert::contains "$output" "job_role is 'arn:aws:iam::1:role/a'"
  run entry pcs_node --job-role
  assert::status 2
}

@test "PCS: the place of the state's documents is an argument, too" {
  only_steps metadata state_pull
  elsewhere p5.48xlarge /opt/aws/pcs/scheduler/slurm-25.11/bin/srun
  cluster_json 'cluster.pop("mounts", None); cluster["region"] = "us-east-2"'
  run entry pcs_node --state s3://bucket/dev/state --group gpu
  assert::status 0
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/ultracluster/pull")" $'URI=s3://bucket/dev/state\nREGION=us-east-2\nCLUSTER=dev\nROLE=compute'
  run entry pcs_node --state 's3://bucket/../x y' --group gpu
  assert::status 1
  assert::contains "$output" "state_uri is 's3://bucket/../x y'"
  run entry pcs_node --state
  assert::status 2
}

@test "PCS: where metrics go is an argument, and stands beside what is known of them" {
  local -r url=https://aps-workspaces.us-east-2.amazonaws.com/workspaces/ws-0123/api/v1/remote_write
  only_steps topology
  elsewhere p5.48xlarge /opt/aws/pcs/scheduler/slurm-25.11/bin/srun
  cluster_json 'cluster.pop("mounts", None); cluster["metrics"] = {"scrape_seconds": 30, "max_series_per_node": 2000, "labels": {"cluster": "dev"}, "region": "us-east-2"}'
  run entry pcs_node --metrics-url "$url" --group gpu
  assert::status 0
  assert::contains "$(cat "$SCRIPTS/cluster.json")" '"scrape_seconds": 30'
  assert::contains "$(cat "$SCRIPTS/cluster.json")" "\"remote_write_url\": \"$url\""
  run entry pcs_node --metrics-url
  assert::status 2
}

@test "PCS: the prolog and its IMEX part are at their paths on every node, and are renewed" {
  local -r runner=$ULTRACLUSTER_ROOT/opt/ultracluster/prolog
  local -r prolog=$runner.d/91_ultracluster_imex
  local group
  only_steps imex
  elsewhere m5.xlarge /opt/aws/pcs/scheduler/slurm-25.11/bin/srun
  cluster_json 'cluster["mounts"] = {}'
  for group in head entrance gpu; do
    rm -rf "$runner" "${prolog%/*}"
    run entry pcs_node --group "$group"
    assert::status 0
    assert::contains "$output" 'imex: installed'
    cmp "$SCRIPTS/files/imex_prolog.sh" "$prolog"
    cmp "$SCRIPTS/files/slurm_prolog.sh" "$runner"
    [[ -x $prolog && -x $runner ]]
  done
  run entry pcs_node
  assert::contains "$output" 'imex: already'
  chmod -x "$prolog"
  run entry pcs_node
  assert::contains "$output" 'imex: installed'
  rm "$runner"
  run entry pcs_node
  assert::contains "$output" 'imex: installed'
  echo old >"$prolog"
  run entry pcs_node
  assert::contains "$output" 'imex: installed'
  cmp "$SCRIPTS/files/imex_prolog.sh" "$prolog"
  # Slurm runs it on every node of the cluster; on one that is no UltraServer it is without effect
  run on_node SLURM_JOB_ID=7 "$runner"
  assert::status 0
  assert::equal '' "$output"
}

@test "PCS: the prolog runs every executable of its folder in order, and ends with the first that fails" {
  local -r folder=$SANDBOX/slurm
  mkdir -p "$folder/prolog.d"
  cp "$SCRIPTS/files/slurm_prolog.sh" "$folder/prolog"
  run bash "$folder/prolog"
  assert::status 0
  # shellcheck disable=SC2016 # the prolog expands it
  printf '#!/bin/bash\necho "first $SLURM_JOB_ID"\n' >"$folder/prolog.d/10_first"
  printf '#!/bin/bash\necho second\nexit 3\n' >"$folder/prolog.d/20_second"
  printf '#!/bin/bash\necho third\n' >"$folder/prolog.d/30_third"
  echo 'echo never' >"$folder/prolog.d/15_notes"
  chmod +x "$folder/prolog.d/"{10_first,20_second,30_third}
  SLURM_JOB_ID=7 run bash "$folder/prolog"
  assert::status 3
  assert::equal $'first 7\nsecond' "$output"
  rm "$folder/prolog.d/20_second"
  SLURM_JOB_ID=7 run bash "$folder/prolog"
  assert::status 0
  assert::equal $'first 7\nthird' "$output"
}

@test "EKS: every node is a compute node, and gets what reaches into the kernel" {
  elsewhere p5.48xlarge /usr/bin/nodeadm
  run entry eks_user_data
  assert::status 0
  assert::contains "$output" "compute node of group 'gpu' (p5.48xlarge, 10.1.0.21, eks-al2023 image, accelerator: nvidia)"
  assert::equal "limits nvidia_driver efa gdrcopy neuron lustre_client lustre_tuning nvidia_fs lustre_efa container_toolkit holds scratch container_storage logs proof" "$(steps)"
}

@test "a type that cluster.json does not know is taken from the PCI bus" {
  only_steps topology
  elsewhere g6.4xlarge /usr/bin/nodeadm
  mkdir -p "$ULTRACLUSTER_ROOT/sys/bus/pci/devices/0000:01:00.0"
  (cd "$ULTRACLUSTER_ROOT/sys/bus/pci/devices/0000:01:00.0" && echo 0x10de >vendor && echo 0x27b8 >device && echo 0x030200 >class)
  run entry eks_user_data
  assert::status 0
  assert::contains "$output" "compute node of group '(compute)' (g6.4xlarge, 10.1.0.21, eks-al2023 image, accelerator: nvidia)"
}

@test "HyperPod on EKS has no Slurm steps" {
  sed -i 's/"ClusterType": "Slurm"/"ClusterType": "Kubernetes"/' "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json"
  empty_release
  run entry hyperpod_eks_on_create
  assert::status 0
  assert::contains "$output" "hyperpod-eks image"
  assert::equal "limits nvidia_driver efa gdrcopy neuron lustre_client lustre_tuning nvidia_fs lustre_efa container_toolkit holds session_user scratch container_storage logs proof" "$(steps)"
}

@test "on an EKS image the EFA installer runs in its minimal form, and that is right" {
  rm -r "$ULTRACLUSTER_ROOT/opt/ml"
  mkdir -p "$ULTRACLUSTER_ROOT"/{usr/bin,sys/devices/virtual/dmi/id}
  touch "$ULTRACLUSTER_ROOT/usr/bin/nodeadm"
  echo p5.48xlarge >"$ULTRACLUSTER_ROOT/sys/devices/virtual/dmi/id/product_name"
  only_steps efa
  run entry eks_user_data
  assert::status 0
  assert::called "efa_installer.sh -y --minimal"
  [[ ! -e $ULTRACLUSTER_ROOT/opt/amazon/efa/bin/fi_info ]]
}

@test "an image is baked without a cluster, and nothing is started" {
  elsewhere p5.48xlarge
  rm "$SCRIPTS/cluster.json"
  software::lock
  run entry bake --release 2026.11 --accelerator nvidia --efa yes --component nixl
  assert::status 0
  assert::contains "$(cat "$REPORT")" '"step": "lustre_client", "state": "installed"'
  assert::contains "$(cat "$REPORT")" '"step": "nixl", "state": "installed"'
  assert::never_called 'systemctl start'
  assert::never_called modprobe
}

@test "baking needs a release" {
  run entry bake
  assert::status 2
  assert::contains "$output" "bake.sh --release YYYY.MM"
  run entry bake --release 2030.01
  assert::status 1
  assert::last_log_line "FAILED release: there is no release '2030.01'; there are: 2026.07, 2026.11"
}

@test "one file with everything in it unpacks itself once, and runs an entry" {
  only_steps topology
  elsewhere m5.xlarge /opt/aws/pcs/scheduler/slurm-25.11/bin/srun
  cluster_json 'cluster["mounts"] = {}'
  { cat "$SCRIPTS/files/self_extracting.sh" && tar --create --gzip --directory "$SCRIPTS" .; } >"$SANDBOX/node.sh"
  run on_node bash "$SANDBOX/node.sh" pcs_node --group entrance
  assert::status 0
  assert::contains "$output" "this is a login node of group 'entrance'"
  run on_node bash "$SANDBOX/node.sh" nothing
  assert::status 2
  assert::contains "$output" "there is no entry nothing.sh in node.sh"
}
