# shellcheck shell=bash
# Libraries: files
# What users, slurmd and pods may lock, open and start; shared memory that outlives a logout; huge pages for EFA.
# The figures and their sources are in the files that this step installs.

# file in this folder -> place on the node
declare -A LIMITS_FILES=(
  ['limits.conf']=/etc/security/limits.d/99-ultracluster.conf
  ['slurmd-limits.conf']=/etc/systemd/system/slurmd.service.d/10-ultracluster-limits.conf
  ['logind.conf']=/etc/systemd/logind.conf.d/99-ultracluster.conf
  ['sysctl.conf']=/etc/sysctl.d/99-ultracluster.conf
)
# Kubernetes has no field for limits: containers have those of containerd.
[[ ${ULTRACLUSTER_ENTRY:-} != *eks* ]] || LIMITS_FILES['containerd-limits.conf']=/etc/systemd/system/containerd.service.d/10-ultracluster-limits.conf
# ParallelCluster has a unit of its own for it.
[[ $NODE_ROLE != compute || ${NODE_ACCELERATOR:-} != nvidia || $NODE_FAMILY == *eks* || $NODE_FAMILY == parallelcluster ]] ||
  LIMITS_FILES['slurmd-gpus.conf']=/etc/systemd/system/slurmd.service.d/20-ultracluster-gpus.conf
readonly LIMITS_FILES
readonly LIMITS_PTRACE=/etc/sysctl.d/99-ultracluster-ptrace.conf
readonly LIMITS_HUGE_PAGES=/etc/sysctl.d/99-ultracluster-huge-pages.conf

limits::detect() {
  local missing
  missing=$(limits::missing)
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present "in force"
}

# One line per thing that is not as it should be: the file, or what is in force in spite of it.
limits::missing() {
  local name
  for name in "${!LIMITS_FILES[@]}"; do
    files::same "$ULTRACLUSTER_HOME/files/$name" "${LIMITS_FILES[$name]}" || echo "${LIMITS_FILES[$name]}"
  done
  limits::kernel_follows || echo "kernel settings"
  limits::unit_follows slurmd || echo "limits of the running slurmd"
  limits::containerd_follows || echo "limits of the running containerd"
  limits::logind_follows || echo "RemoveIPC of the running logind"
  limits::huge_pages_follow || echo "huge pages"
  limits::ptrace_follows || echo "kernel.yama.ptrace_scope"
}

limits::install() {
  local name missing
  missing=$(limits::missing)
  for name in "${!LIMITS_FILES[@]}"; do
    [[ $missing != *"${LIMITS_FILES[$name]}"* ]] || files::install "$ULTRACLUSTER_HOME/files/$name" "${LIMITS_FILES[$name]}"
  done
  systemctl daemon-reload
  limits::kernel_follows || sysctl --quiet --load="$ULTRACLUSTER_ROOT${LIMITS_FILES['sysctl.conf']}"
  # The limits of a running slurmd are raised in place: a restart could end its jobs.
  limits::unit_follows slurmd ||
    prlimit --pid "$(limits::pid slurmd)" --memlock=unlimited --stack=unlimited --nofile=131072 --nproc=unlimited
  limits::containerd_follows || prlimit --pid "$(limits::pid containerd)" --memlock=unlimited
  limits::logind_follows || systemctl kill --signal=HUP systemd-logind.service
  limits::huge_pages_follow || limits::reserve_huge_pages
  if ! limits::ptrace_follows; then
    files::write "$LIMITS_PTRACE" <<<"kernel.yama.ptrace_scope = 0"
    sysctl --quiet --load="$ULTRACLUSTER_ROOT$LIMITS_PTRACE"
  fi
}

limits::verify() {
  local missing
  missing=$(limits::missing)
  # logind is asked once: what it does not take up now, it does at the next boot.
  missing=${missing//RemoveIPC of the running logind/}
  [[ -z ${missing//[[:space:]]/} ]] || step::fail "not in force: ${missing//$'\n'/, }"
  limits::logind_follows || log::warn "logind keeps RemoveIPC until the next boot"
  ! limits::needs_ptrace || [[ $(limits::ptrace) != [23] ]] ||
    log::warn "kernel.yama.ptrace_scope is $(limits::ptrace) by this image and stays: libfabric copies between processes of a node by a slower way"
  step::message "in force; $(limits::huge_pages_message)"
}

limits::kernel_follows() {
  local key value found
  while IFS=' =' read -r key value; do
    [[ $key == [a-z]* ]] || continue
    found=$ULTRACLUSTER_ROOT/proc/sys/${key//.//}
    [[ ! -r $found || $(<"$found") == "$value" ]] || return 1
  done <"$ULTRACLUSTER_HOME/files/sysctl.conf"
}

# Libfabric copies between processes of one node with process_vm_readv (CMA), which Ubuntu's default of 1 allows towards children only.
# AWS has it disabled where EFA is used (EC2 User Guide, "Get started with EFA and MPI", step "Disable ptrace protection"; ParallelCluster's
# cookbook, resources/efa/partial/_disable_ptrace_debian.rb). 2 and 3 are somebody's hardening, never a default: they stay.
limits::needs_ptrace() { [[ $NODE_ROLE == compute ]] && ((NODE_EFA_INTERFACES > 0)); }

limits::ptrace() {
  local scope=''
  { read -r scope <"$ULTRACLUSTER_ROOT/proc/sys/kernel/yama/ptrace_scope"; } 2>/dev/null || true
  printf '%s' "$scope"
}

limits::ptrace_follows() { ! limits::needs_ptrace || [[ $(limits::ptrace) != 1 ]]; }

# limits::pid UNIT
limits::pid() {
  systemctl show --property=MainPID --value "$1.service" 2>/dev/null || true
}

limits::containerd_follows() {
  [[ ! -v LIMITS_FILES['containerd-limits.conf'] ]] || limits::unit_follows containerd
}

# limits::unit_follows UNIT: what runs may lock all memory; what does not run will read the file.
limits::unit_follows() {
  local pid
  pid=$(limits::pid "$1")
  [[ -n $pid && $pid != 0 ]] || return 0
  local limit soft hard
  while read -r _ limit _ soft hard _; do
    [[ "$limit $soft $hard" != 'locked unlimited unlimited' ]] || return 0
  done <"$ULTRACLUSTER_ROOT/proc/$pid/limits"
  return 1
}

# Where the bus does not answer, the file has to do.
limits::logind_follows() {
  local answer
  answer=$(busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager RemoveIPC 2>/dev/null) || return 0
  [[ $answer != 'b true' ]]
}

# Libfabric takes its bounce buffers from huge pages; without them it works a little slower. One rule: pages that somebody has
# reserved (the image, the EFA installer unless it ran with --minimal, an administrator) stay as they are; where there are none, the
# least that its makers' check asks for is reserved (awslabs/libfabric-ci-scripts, efa-check.sh): 110 MiB for each CPU and one page;
# none where a huge page has more than 16 MiB (awslabs/libfabric-ci-scripts#158).
limits::huge_pages_wanted() {
  local size
  if ((NODE_EFA_INTERFACES == 0)); then
    echo 0
    return
  fi
  size=$(limits::memory Hugepagesize) # KiB
  if ((size == 0 || size > 16384)); then
    echo 0
    return
  fi
  echo $((110 * 1024 * $(getconf _NPROCESSORS_ONLN) / size + 1))
}

limits::memory() {
  local key value found=0
  while read -r key value _; do
    [[ $key != "$1:" ]] || found=$value
  done <"$ULTRACLUSTER_ROOT/proc/meminfo"
  echo "$found"
}

# A kernel that found fewer free pages than asked for is not asked again: it is at the next boot.
limits::huge_pages_follow() {
  (($(limits::memory HugePages_Total) > 0 || $(limits::huge_pages_wanted) == 0))
}

limits::reserve_huge_pages() {
  local wanted
  wanted=$(limits::huge_pages_wanted)
  files::write "$LIMITS_HUGE_PAGES" <<<"vm.nr_hugepages = $wanted"
  sysctl --quiet --load="$ULTRACLUSTER_ROOT$LIMITS_HUGE_PAGES" || log::warn "the kernel did not take vm.nr_hugepages=$wanted"
}

limits::huge_pages_message() {
  local whose="as they were"
  [[ ! -e $ULTRACLUSTER_ROOT$LIMITS_HUGE_PAGES ]] || whose="of $(limits::huge_pages_wanted) asked for"
  printf '%s huge pages, %s' "$(limits::memory HugePages_Total)" "$whose"
}
