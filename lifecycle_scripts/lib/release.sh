# shellcheck shell=bash
# The locked release: what each component's version is, and where its files come from.
[[ -z ${ULTRACLUSTER_LIB_RELEASE:-} ]] || return 0
ULTRACLUSTER_LIB_RELEASE=1

# shellcheck source-path=SCRIPTDIR source=log.sh
source "${BASH_SOURCE[0]%/*}/log.sh"

# What holds for this node, one RELEASE['component.key']=value per line, written once per run.
readonly RELEASE_FACTS=$ULTRACLUSTER_ROOT/run/ultracluster/release

# release::load: for CLUSTER_RELEASE, NODE_OS and NODE_ARCH; on failure RELEASE_ERROR says why.
# shellcheck disable=SC2034 # the caller reads RELEASE_ERROR
release::load() {
  [[ -d ${RELEASE_FACTS%/*} ]] || mkdir -p "${RELEASE_FACTS%/*}"
  RELEASE_ERROR=$(release::read "$ULTRACLUSTER_HOME/releases" "$RELEASE_FACTS") || return 1
  log::info "release $CLUSTER_RELEASE for $NODE_OS on $NODE_ARCH${CLUSTER_MIRROR:+, from $CLUSTER_MIRROR}"
}

# release::facts: sets RELEASE[component.key]. Keys: version, kind, need, floor.version, floor.mark, floor.family (of
# instance types, where the floor is its own), accelerator, install_path, signed,
# provides.NAME, files (how many), N.url, N.name, N.size, N.checksum, packages, repository.NAME, elsewhere. Beside the
# components: mirror.packages and mirror.checksum, the list of packages that the mirror has for this node.
# shellcheck disable=SC2034 # the caller reads RELEASE
release::facts() {
  declare -gA RELEASE=()
  # shellcheck source=/dev/null
  source "$RELEASE_FACTS"
}

# A mirror has <release>/<first 16 digits of the digest>/<name>. Without a checksum a file counts as not locked. What the release
# itself leaves open, the lock of the environment may complete (CLUSTER_LOCKED); nothing else.
release::read() {
  python3 -IS - "$@" "${CLUSTER_RELEASE:-}" "${NODE_OS:-}" "${NODE_ARCH:-}" "${CLUSTER_MIRROR:-}" "${NODE_INSTANCE_TYPE:-}" <<'PYTHON'
import json, os, re, shlex, sys
from urllib.parse import urlsplit

folder, target, release, system, arch, mirror, instance_type = sys.argv[1:]
family = instance_type.partition(".")[0]


def stop(reason):
    print(" ".join(reason.split()))
    sys.exit(1)


def here(entry):
    return system in (entry.get("os") or [system]) and arch in (entry.get("arch") or [arch])


def text(value):
    return "yes" if value is True else "" if value in (None, False) else str(value)


path = os.path.join(folder, release + ".lock")
if not re.fullmatch(r"([a-z][a-z0-9-]*-)?\d+\.\d+(\.\d+)?", release) or not os.path.isfile(path):
    names = os.listdir(folder) if os.path.isdir(folder) else []
    known = ", ".join(sorted(name[:-5] for name in names if name.endswith(".lock"))) or "none"
    stop(f"there is no release '{release}'; there are: {known}")
try:
    with open(path, encoding="utf-8") as file:
        lock = json.load(file)
    if lock.get("schema") != 2:
        stop(f"{path} has schema {lock.get('schema')!r}, these scripts read schema 2")
    if lock.get("release") != release:
        stop(f"{path} is of release {lock.get('release')!r}")
    components = lock["components"].items()
except (OSError, ValueError, KeyError, AttributeError) as error:
    stop(f"cannot read {path}: {error!r}")

try:
    locked = json.loads(os.environ.get("CLUSTER_LOCKED") or "{}")
    locked_files, locked_keys = locked.get("files", {}), locked.get("keys", {})
except (ValueError, AttributeError) as error:
    stop(f"what cluster.json has locked cannot be read: {error!r}")


def completed(name):
    """The digest that the environment recorded; one that is malformed is none."""
    digest = str(locked_files.get(name, ""))
    return digest if re.fullmatch("sha256:[0-9a-f]{64}", digest) else ""


facts = {}
for component, entry in components:
    def tell(key, value):
        facts[f"{component}.{key}"] = text(value)

    for key in ("version", "kind", "need", "accelerator", "install_path"):
        tell(key, entry.get(key))
    of_family = (entry.get("floors") or {}).get(family)
    floor = of_family or entry.get("floor") or {}
    for key, value in (("version", floor.get("version")), ("mark", floor.get("mark")), ("family", of_family and family)):
        facts[f"{component}.floor.{key}"] = text(value)
    for key, value in (entry.get("provides") or {}).items():
        tell(f"provides.{key}", value)
    artifacts = entry.get("artifacts") or []
    packages = entry.get("packages") or []
    files = [artifact for artifact in artifacts if here(artifact)]
    tell("files", len(files))
    for number, artifact in enumerate(files):
        url = artifact.get("url") or ""
        name = artifact.get("name") or os.path.basename(urlsplit(url).path)
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+~-]*", name):
            stop(f"{path}: {component} has a file named {name!r}")
        checksum = ""
        for algorithm, digits in (("sha512", 128), ("sha256", 64)):
            digest = artifact.get(algorithm)
            if digest and not re.fullmatch(rf"[0-9a-f]{{{digits}}}", digest):
                stop(f"{path}: {algorithm} of {name} is {digest!r}")
            if digest:
                checksum = f"{algorithm}:{digest}"
        checksum = checksum or completed(name)
        if checksum and mirror:
            url = "/".join([mirror.rstrip("/"), release, checksum.split(":")[1][:16], name])
        for key, value in (("url", url), ("name", name), ("size", artifact.get("size")), ("checksum", checksum)):
            tell(f"{number}.{key}", value)
    named = [entry for entry in packages if here(entry)]
    tell("packages", " ".join(name for entry in named for name in entry.get("names") or []))
    repository = dict((named and named[0].get("repository")) or {})
    fingerprint = str(locked_keys.get(repository.get("key_url"), ""))
    if not repository.get("key_fingerprint") and re.fullmatch("[0-9A-F]{40}", fingerprint.upper()):
        repository["key_fingerprint"] = fingerprint.upper()
    for key, value in repository.items():
        tell(f"repository.{key}", value)
    tell("elsewhere", ", ".join(sorted({
        f"{one} on {other}" for entry in artifacts + packages
        for one in entry.get("os") or ["any system"] for other in entry.get("arch") or ["any processor"]
    })))

digest = (lock.get("package_sets") or {}).get(f"{system}-{arch}")
if digest and not re.fullmatch("[0-9a-f]{64}", digest):
    stop(f"{path}: the list of packages for {system} on {arch} has the digest {digest!r}")
if digest and mirror:
    facts["mirror.packages"] = "/".join([mirror.rstrip("/"), release, digest[:16], f"packages-{system}-{arch}.json"])
    facts["mirror.checksum"] = f"sha256:{digest}"

new = target + ".new"
with open(new, "w", encoding="utf-8") as file:
    for key, value in facts.items():
        if value:
            file.write(f"RELEASE[{shlex.quote(key)}]={shlex.quote(value)}\n")
os.replace(new, target)
PYTHON
}
