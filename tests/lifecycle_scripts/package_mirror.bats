#!/usr/bin/env bats
# Packages of repositories from the mirror: what is fetched, how it is verified, and what the package manager is told.

load helpers
load software

MIRROR=s3://bucket/mirror
export REQUIRED="nccl cuda-runtime container-toolkit"

# mirror::holds SYSTEM INDEX NAME=VERSION[>NEED,...]...: the mirror has these packages, and the lock file says so.
mirror::holds() {
  cluster_json "cluster['mirror'] = '$MIRROR'"
  "$PYTHON" -IS - "$SCRIPTS/releases/2026.11.lock" "$FAKE/s3/bucket/mirror/2026.11" "$@" <<'PYTHON'
import hashlib, json, pathlib, sys

lock, folder, system, index, *packages = sys.argv[1:]
end = "rpm" if index.startswith("repodata") else "deb"


def put(name, content):
    digest = hashlib.sha256(content).hexdigest()
    place = pathlib.Path(folder, digest[:16], name)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return digest


parts = {}
for text in packages:
    package, _, needs = text.partition(">")
    name, _, version = package.partition("=")
    parts[name] = version, [need for need in needs.split(",") if need]
digests = {name: put(f"{name}.{end}", f"package {name} {version}".encode()) for name, (version, _) in parts.items()}
files = {name: f"{digest[:16]}/{name}.{end}" for name, digest in digests.items()}
rows = [
    {"name": name, "version": version, "specs": [f"{name}={version}", f"{name}-{version}"], "file": files[name],
     "sha256": digests[name], "needs": [files[need] for need in needs]}
    for name, (version, needs) in parts.items()
]
content = {"index": [{"path": one, "sha256": put(one.rpartition("/")[2], one.encode())} for one in index.split(",")],
           "packages": rows}
release = json.load(open(lock))
digest = put(f"packages-{system}-x86_64.json", json.dumps(content).encode())
release["package_sets"] = {f"{system}-x86_64": digest}
for part in release["components"].values():
    for entry in part.get("packages", ()):
        entry["repository"] = {"url": "https://example.org/repo/", "suite": "/"}
json.dump(release, open(lock, "w"))
PYTHON
}

mirror::ubuntu() {
  mirror::holds ubuntu22.04 Packages "libnccl2=2.30.7-1+cuda13.3>common" "common=1>base" base=1 "cuda-toolkit-13-2=13.2.1>base" \
    "lustre-client-modules-6.8.0-1039-aws=5>lustre-client-utils" "lustre-client-modules-6.8.0-1040-aws=5>lustre-client-utils" \
    lustre-client-utils=5
}

mirror::fetched() { sed -n 's,^aws .*/\([^/ ]*\) [^ ]*$,\1,p' "$FAKE/calls" | sort | paste -sd ' '; }

@test "a package comes with what it needs and nothing else, and no public host is asked" {
  mirror::ubuntu
  run run_steps nccl
  assert::status 0
  assert::states nccl=installed
  assert::equal "Packages base.deb common.deb libnccl2.deb packages-ubuntu22.04-x86_64.json" "$(mirror::fetched)"
  assert::never_called curl
  assert::contains "$(grep 'apt-get.* install' "$FAKE/calls")" "Dir::Etc::SourceParts=-"
  [[ ! -e $ULTRACLUSTER_ROOT/var/lib/ultracluster/work && ! -e $ULTRACLUSTER_ROOT/etc/apt ]]
}

@test "what a file of the release depends on comes from the mirror, too" {
  release::change 'components["enroot"]["packages"] = [packages("jq", "zstd")]'
  mirror::holds ubuntu22.04 Packages "jq=1.6>libonig5" libonig5=6 zstd=1
  echo 1.5 >"$FAKE/packages/zstd" # the image has that
  local -r digest=$(sha256sum <"$FAKE/web/enroot_4.2.1-1_amd64.deb")
  mkdir -p "$FAKE/s3/bucket/mirror/2026.11/${digest:0:16}"
  cp "$FAKE/web/enroot_4.2.1-1_amd64.deb" "$FAKE/s3/bucket/mirror/2026.11/${digest:0:16}/"
  run run_steps enroot
  assert::status 0
  assert::states enroot=installed
  assert::equal "Packages enroot_4.2.1-1_amd64.deb jq.deb libonig5.deb packages-ubuntu22.04-x86_64.json" "$(mirror::fetched | sed 's/\.enroot_\([^ ]*\)\.part/enroot_\1/')"
  assert::contains "$(grep 'apt-get.* install jq$' "$FAKE/calls")" "Dir::Etc::SourceParts=-"
  assert::never_called curl
}

@test "modules come for the kernel that runs" {
  mirror::ubuntu
  run run_steps lustre_client
  assert::status 0
  assert::equal "Packages lustre-client-modules-6.8.0-1039-aws.deb lustre-client-utils.deb packages-ubuntu22.04-x86_64.json" \
    "$(mirror::fetched)"
}

@test "apt reads one list, which the scripts wrote and which trusts only that folder" {
  mirror::ubuntu
  run library packages "
    packages::mirrored '$(mirror::list)' 'sha256:$(mirror::digest)' libnccl2 && cat \"\$PACKAGES_MIRRORED/mirror.list\""
  assert::status 0
  assert::contains "$output" "deb [trusted=yes] file:$ULTRACLUSTER_ROOT/var/lib/ultracluster/work/packages ./"
}

mirror::digest() {
  "$PYTHON" -IS -c 'import json, sys; print(*json.load(open(sys.argv[1]))["package_sets"].values())' "$SCRIPTS/releases/2026.11.lock"
}

mirror::list() {
  local -r digest=$(mirror::digest)
  echo "$MIRROR/2026.11/${digest:0:16}/packages-ubuntu22.04-x86_64.json"
}

@test "a release without packages of a mirror says what to do" {
  mirror::holds al2023 repodata/primary.xml,repodata/repomd.xml base=1
  run run_steps nccl
  assert::status 1
  assert::last_log_line "FAILED nccl: nccl comes from a public repository, this cluster reads only $MIRROR, and release 2026.11 records no packages of a mirror for ubuntu22.04 on x86_64: run ultracluster software mirror and deploy, or use an image that has it"
  assert::never_called apt-get
}

@test "a package that the mirror does not have" {
  mirror::holds ubuntu22.04 Packages libnccl2=2.29.1-1
  run run_steps nccl
  assert::status 1
  assert::last_log_line "FAILED nccl: nccl: the mirror has no package libnccl2=2.30.7-1+cuda13.3 for this system: run ultracluster software mirror --renew-packages and deploy"
  assert::never_called apt-get
}

@test "a tampered list, index or package is refused before apt sees it" {
  local name file
  for name in packages-ubuntu22.04-x86_64.json Packages base.deb; do
    node::renew
    mirror::ubuntu
    file=$(find "$FAKE/s3" -name "$name")
    echo evil >>"$file"
    run run_steps nccl
    assert::status 1
    assert::contains "$(tail -n 1 "$LOG")" "FAILED nccl: nccl: refused $MIRROR/2026.11/"
    assert::contains "$(tail -n 1 "$LOG")" "$name: its checksum is not sha256:"
    assert::never_called apt-get
  done
}

@test "packages come side by side, eight at most" {
  local -r index=(a b c d e f g h i j k l)
  mirror::holds ubuntu22.04 Packages "libnccl2=2.30.7-1+cuda13.3>$(IFS=, && echo "${index[*]}")" "${index[@]/%/=1}"
  mkdir "$FAKE/live"
  # shellcheck disable=SC2016 # expands on the node
  {
    echo '#!/bin/bash'
    echo ': >"$FAKE/live/$$"'
    echo 'ls "$FAKE/live" | wc -l >>"$FAKE/side_by_side"'
    # The first packages wait for one another.
    echo 'for ((tries = 0; tries < 3000; tries++)); do [[ $* == *.deb* ]] && ! grep -q "^[3-9]" "$FAKE/side_by_side" || break; sleep 0.02; done'
    echo "bash '$BATS_TEST_DIRNAME/fakes/aws' \"\$@\""
    echo 'rm "$FAKE/live/$$"'
  } >"$SANDBOX/slow"
  chmod +x "$SANDBOX/slow"
  ln -sf "$SANDBOX/slow" "$SANDBOX/bin/aws"
  run run_steps nccl
  assert::status 0
  local -r most=$(sort -n "$FAKE/side_by_side" | tail -n 1)
  assert::equal yes "$( ((most > 2 && most <= 8)) && echo yes)"
  assert::equal 15 "$(grep -c '^aws' "$FAKE/calls")"
}

@test "an object that is gone is named; with it the next run fetches only that" {
  mirror::ubuntu
  local -r file=$(find "$FAKE/s3" -name common.deb)
  mv "$file" "$SANDBOX/common.deb"
  run run_steps nccl
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "common.deb is not there, or not for this node"
  mv "$SANDBOX/common.deb" "$file"
  forget_calls
  run run_steps nccl
  assert::status 0
  assert::contains "$(mirror::fetched)" "common.deb"
  [[ $(mirror::fetched) != *Packages* ]]
}

@test "killed anywhere, the next run completes it" {
  scenario_of_software=$(declare -f scenario)
  eval "${scenario_of_software/scenario/software_scenario}"
  scenario() { software_scenario && mirror::ubuntu; }
  node::renew
  kill_everywhere nccl 2
}

@test "on Amazon Linux 2023 dnf reads the mirror beside the system's own repositories" {
  rm "$SANDBOX"/bin/{apt-get,dpkg,dpkg-query,apt-mark,dnf} "$FAKE/packages/linux-image-aws"
  printf 'ID="amzn"\nVERSION_ID="2023"\n' >"$ULTRACLUSTER_ROOT/etc/os-release"
  # The usual fake expects the verb as its third word.
  cat >"$SANDBOX/bin/dnf" <<EOT
#!/bin/bash
echo "given \$*" >>"\$FAKE/calls"
words=()
for word in "\$@"; do [[ \$word == --* ]] || words+=("\$word"); done
exec "$BATS_TEST_DIRNAME/fakes/dnf" --assumeyes --setopt "\${words[@]}"
EOT
  chmod +x "$SANDBOX/bin/dnf"
  mirror::holds al2023 repodata/primary.xml,repodata/repomd.xml "nvidia-container-toolkit=1.20.1-1>base" base=1
  run run_steps container_toolkit
  assert::status 0
  assert::states container_toolkit=installed
  assert::equal "base.rpm nvidia-container-toolkit.rpm packages-al2023-x86_64.json primary.xml repomd.xml" "$(mirror::fetched)"
  assert::contains "$(grep '^given' "$FAKE/calls")" \
    "--repofrompath=ultracluster,file://$ULTRACLUSTER_ROOT/var/lib/ultracluster/work/packages --setopt=ultracluster.gpgcheck=0"
  assert::never_called curl
}
