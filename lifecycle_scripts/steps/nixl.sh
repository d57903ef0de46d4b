# shellcheck shell=bash
# NIXL, the transfer library of inference servers, for those who ask for it. Its wheel is unpacked into a folder of its own;
# programs find it with PYTHONPATH.

nixl::detect() {
  software::for nixl compute
  [[ -e $ULTRACLUSTER_ROOT$(nixl::own) ]] || step::absent "no $(nixl::own)"
  step::present "$(nixl::own)"
}

nixl::own() {
  printf '/opt/ultracluster/nixl-%s' "${RELEASE['nixl.version']}"
}

nixl::fetch() { release::facts && software::fetch nixl; }

nixl::install() {
  release::facts
  software::unpack nixl
  software::publish "$UNPACKED" "$(nixl::own)"
  software::clean nixl
}

nixl::verify() {
  release::facts
  [[ -d $ULTRACLUSTER_ROOT$(nixl::own) ]] || step::fail "there is no $(nixl::own) after the set-up"
  step::version "${RELEASE['nixl.version']}"
  step::message "$(nixl::own)"
}
