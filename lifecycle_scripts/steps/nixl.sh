# shellcheck shell=bash
# Libraries: fetch software
# NIXL, the transfer library of inference servers, for those who ask for it. Its wheel is unpacked into a folder of its own,
# which programs name in PYTHONPATH. It is built for one Python (nixl_cu13-1.5.1-cp312-...), brings all it links to but
# libfabric and CUDA, and needs numpy. Programs import `nixl`: the wheel of that name, or a few lines of ours.

nixl::detect() {
  software::for nixl compute
  [[ -e $ULTRACLUSTER_ROOT$(nixl::own) ]] || step::absent "no $(nixl::own)"
  step::present "$(nixl::own)"
}

nixl::own() {
  printf '/opt/ultracluster/nixl-%s' "${RELEASE['nixl.version']}"
}

nixl::needs() { echo nixl; }

nixl::install() {
  local wheel
  local -r staged=$SOFTWARE_WORK/nixl/staged
  software::require nixl
  software::fetch nixl
  rm -rf -- "$staged"
  mkdir -p "$staged"
  for wheel in "${SOFTWARE_FILES[@]}"; do
    python3 -IS -m zipfile -e "$wheel" "$staged" || step::fail "cannot unpack ${wheel##*/}: $(fetch::space "$SOFTWARE_WORK") MiB are free"
  done
  rm -rf -- "$staged"/*.data # headers of what it is built with
  if [[ ! -e $staged/nixl/__init__.py ]]; then
    mkdir "$staged/nixl"
    nixl::package >"$staged/nixl/__init__.py"
  fi
  software::publish "$staged" "$(nixl::own)"
  software::clean nixl
}

# Programs import nixl and nixl._api; the library may be loaded only once, under its own name.
nixl::package() {
  cat <<'EOT'
import importlib
import importlib.util
import sys

_name = next(name for name in ("nixl_cu13", "nixl_cu12") if importlib.util.find_spec(name))
for _module in ("_bindings", "_utils", "logging", "_api"):
    sys.modules[f"nixl.{_module}"] = importlib.import_module(f"{_name}.{_module}")
sys.modules["nixl"] = importlib.import_module(_name)
EOT
}

nixl::verify() {
  local own said
  own=$(nixl::own)
  [[ -d $ULTRACLUSTER_ROOT$own ]] || step::fail "there is no $own after the set-up"
  # The library itself, without numpy, which the system's Python may lack
  said=$(timeout 60 python3 -IS -c '
import glob, importlib.machinery, importlib.util, sys

folders = glob.glob(sys.argv[1] + "/nixl_cu*")
spec = importlib.machinery.PathFinder.find_spec("_bindings", folders)
if spec is None:
    sys.exit("no wheel for Python %d.%d" % sys.version_info[:2])
spec.loader.exec_module(importlib.util.module_from_spec(spec))
' "$ULTRACLUSTER_ROOT$own" 2>&1) || step::fail "the library of NIXL does not load: ${said##*$'\n'}"
  step::version "${RELEASE['nixl.version']}"
  step::message "PYTHONPATH=$own"
}
