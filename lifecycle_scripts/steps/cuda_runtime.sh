# shellcheck shell=bash
# Libraries: software
# The CUDA toolkit under /usr/local/cuda-X.Y, several of them side by side on most images.

cuda_runtime::detect() {
  software::for cuda-runtime compute
  software::settle cuda-runtime "$(cuda_runtime::version)"
  step::present "CUDA $(cuda_runtime::version)"
}

# The newest of those here, with as many numbers as the release says: 13.2.1 is a 13.2.
cuda_runtime::version() {
  local -r wanted=${RELEASE['cuda-runtime.version']}
  local -r dots=${wanted//[^.]/}
  local folder text version number newest=''
  for folder in "$ULTRACLUSTER_ROOT"/usr/local/cuda-[0-9]*; do
    [[ -e $folder/version.json || -e $folder/bin/nvcc || -n $(compgen -G "$folder/targets/*/lib/libcudart.so.*") ]] || continue
    text='' version=${folder##*/cuda-}
    [[ ! -e $folder/version.json ]] || IFS= read -r -d '' text <"$folder/version.json" || true
    [[ ! ${text//[ $'\n']/} =~ \"cuda\":\{[^\}]*\"version\":\"([0-9.]+)\" ]] || version=${BASH_REMATCH[1]}
    IFS=. read -ra number <<<"$version"
    printf -v version '.%s' "${number[@]:0:${#dots}+1}"
    newest+=${version#.}$'\n'
  done
  [[ -z $newest ]] || software::newest <<<"${newest%$'\n'}"
}

cuda_runtime::needs() { software::lacking cuda-runtime "$(cuda_runtime::version)"; }

cuda_runtime::install() {
  software::install cuda-runtime
  software::clean cuda-runtime
}

cuda_runtime::verify() {
  software::proven cuda-runtime "$(cuda_runtime::version)" "under /usr/local"
}
