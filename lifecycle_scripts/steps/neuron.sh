# shellcheck shell=bash
# Libraries: contract packages software
# Trainium and Inferentia: the driver, and on nodes without Kubernetes the runtime and collectives of the same SDK.

neuron::detect() {
  local component
  software::for neuron-driver compute
  [[ $NODE_ACCELERATOR == neuron ]] || step::not_applicable "no Neuron devices"
  software::wait_for_image neuron-kmod-load
  while read -r component; do
    [[ -n ${RELEASE["$component.version"]:-} ]] || continue
    software::settle "$component" "$(neuron::version "$component")"
  done < <(neuron::components)
  step::present "driver $(neuron::version neuron-driver)"
}

neuron::components() {
  echo neuron-driver
  # In pods, the containers bring the rest.
  [[ $NODE_FAMILY == eks-al2023 || $NODE_FAMILY == hyperpod-eks ]] || printf '%s\n' neuron-runtime neuron-collectives
}

neuron::version() {
  case $1 in
    neuron-driver) software::module neuron ;;
    neuron-runtime) packages::version aws-neuronx-runtime-lib ;;
    neuron-collectives) packages::version aws-neuronx-collectives ;;
  esac
}

neuron::needs() {
  local component
  while read -r component; do
    software::lacking "$component" "$(neuron::version "$component")"
  done < <(neuron::components)
}

neuron::install() {
  local component found components=()
  mapfile -t components < <(neuron::components)
  for component in "${components[@]}"; do
    [[ -n ${RELEASE["$component.version"]:-} ]] || continue
    found=$(neuron::version "$component")
    contract::fits "$component" "$found" || software::install "$component"
  done
  software::clean "${components[@]}"
}

neuron::verify() {
  local component
  step::about neuron-driver
  [[ -n ${NODE_BAKE:-} ]] || [[ -n $(compgen -G "$ULTRACLUSTER_ROOT/dev/neuron*") ]] || step::fail "the neuron module shows no device"
  while read -r component; do
    [[ -n ${RELEASE["$component.version"]:-} ]] || continue
    software::proven "$component" "$(neuron::version "$component")" "$component"
  done < <(neuron::components)
}
