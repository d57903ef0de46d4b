# shellcheck shell=bash
# Who this node is: its group, role and type, and what the cluster looks like around it.
[[ -z ${ULTRACLUSTER_LIB_NODE:-} ]] || return 0
ULTRACLUSTER_LIB_NODE=1

# shellcheck source-path=SCRIPTDIR source=retry.sh
source "${BASH_SOURCE[0]%/*}/retry.sh"
# shellcheck source-path=SCRIPTDIR source=image_family.sh
source "${BASH_SOURCE[0]%/*}/image_family.sh"

# Written by HyperPod before any script runs; the variable is HyperPod's own.
readonly RESOURCE_CONFIG=${SAGEMAKER_RESOURCE_CONFIG_PATH:-$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json}

# Exports NODE_GROUP, NODE_ROLE, NODE_INSTANCE_TYPE, NODE_ADDRESS, NODE_ACCELERATORS, NODE_EFA_INTERFACES,
# NODE_LOCAL_NVME_DISKS; NODE_ACCELERATOR_NAME (EC2's, "H100"), NODE_EFA_LAYOUTS (other right numbers of interfaces), NODE_NVSWITCH, NODE_IMEX and NODE_GDS (yes, no), NODE_MIG (profiles of each GPU), NODE_LUSTRE_EFA_INTERFACES and NODE_DATA_VOLUME, empty
# where cluster.json does not tell (cluster.schema.json has its form); CLUSTER_NAME, CLUSTER_ENVIRONMENT, CLUSTER_RELEASE, CLUSTER_MIRROR, CLUSTER_COMPONENTS (optional
# ones that are asked for), CLUSTER_SESSION_USER (to be made), CLUSTER_STRICT (no version but the release's), CLUSTER_LOCKED (JSON:
# digests and keys that complete the release), CLUSTER_BUDGET_MINUTES (for a run), CLUSTER_NODES (how many may start at once),
# CLUSTER_METADATA (services or everyone) and CLUSTER_METADATA_USERS, NODE_JOB_ACCESS (yes: its users' jobs get CLUSTER_JOB_ROLE of
# CLUSTER_REGION), CLUSTER_HEALTH (JSON: settings of the health loop, empty where it is off), CLUSTER_METRICS (JSON: how metrics are
# collected and where they go, empty where nothing is) with single values of it in CLUSTER_METRICS_{REMOTE_WRITE_URL,REGION,SCRAPE_SECONDS}
# and all that collectors read of this node in CLUSTER_METRICS_DOCUMENT (JSON), CLUSTER_SLURM (JSON: Slurm's settings,
# on controllers), CLUSTER_TOPOLOGY (tree: this head node writes it), CLUSTER_STATE_URI (where documents of the cluster's state are),
# CLUSTER_ORCHESTRATOR, CLUSTER_DIRECTORY (JSON: where people's accounts come from) with its
# CLUSTER_DIRECTORY_{IDS,HOME} (lowest and highest, a pattern), CLUSTER_JOB_SSH (who may reach nodes by SSH
# without a job there),
# NODE_STEPS (the team's own steps, `10_proxy:required`), CLUSTER_CONTROLLERS, and per mount LUSTRE_{PATH,DNS_NAME,MOUNT_NAME,EFA}
# (of several file systems one with EFA, if there is one: set-up and probes look at it) with the others in LUSTRE_FURTHER
# (`/scratch,<dns name>,<mount name>` each), OPENZFS_{PATH,DNS_NAME,VOLUME_PATH}; with image_family.sh NODE_OS, NODE_ARCH, NODE_FAMILY and NODE_ACCELERATOR. On
# failure NODE_ERROR says why. What follows is HyperPod's way to tell; node::load_here is for all others.
node::load() {
  image_family::load
  # A new node may see resource_config.json before it is entered there: look again for a while.
  retry::run "${ULTRACLUSTER_NODE_DEADLINE:-60}" node::identify || return 1
  node::tell
}

# node::load_here ROLE GROUP: the role is what the orchestrator's own file says, empty where it does not tell; the group is
# what the entry was called with, empty for the one that has this instance type.
node::load_here() {
  image_family::load
  local -r type=$(image_family::instance_type)
  export NODE_HERE
  NODE_HERE="$1|$2|$type|$(devices::on_bus nvidia)|$(devices::on_bus neuron)|$(devices::on_bus efa)"
  node::identify || return 1
  node::tell
}

node::tell() {
  NODE_ACCELERATOR=${NODE_ACCELERATOR:-$(image_family::accelerator)}
  export NODE_ACCELERATOR
  log::announce "this is a $NODE_ROLE node of group '$NODE_GROUP' ($NODE_INSTANCE_TYPE, $NODE_ADDRESS, $NODE_FAMILY image, accelerator: $NODE_ACCELERATOR)"
}

node::identify() {
  local facts status=0 key value
  facts=$(node::describe) || status=$?
  while IFS='=' read -r key value; do
    [[ -z $key ]] || export "$key=$value"
  done <<<"$facts"
  return "$status"
}

# The address that faces the cluster: routing picks it, the destination need not exist.
node::primary_address() {
  local route
  route=$(ip -o route get 10.254.254.254 2>/dev/null) || true
  [[ $route == *' src '* ]] || return 0
  route=${route##* src }
  printf '%s' "${route%%[[:space:]]*}"
}

node::addresses() {
  local address
  while read -r _ _ _ address _; do printf '%s\n' "${address%%/*}"; done < <(ip -o address show scope global)
}

# Prints KEY=value lines. Status 1: not found (yet); 78: another look would be no better.
node::describe() {
  local addresses
  mapfile -t addresses < <(node::addresses)
  python3 -IS - "$RESOURCE_CONFIG" "$ULTRACLUSTER_HOME/cluster.json" "$(node::primary_address)" "${addresses[@]}" <<'PYTHON'
import ipaddress, json, os, re, sys

GIVE_UP = 78
ROLES = ("controller", "login", "compute", "system")
FORMS = {
    "path": r"/[A-Za-z0-9._/-]+",
    "dns_name": r"[A-Za-z0-9.-]{1,253}",
    "mount_name": r"[A-Za-z0-9_-]{1,8}",
    "volume_path": r"/[A-Za-z0-9._:/-]*",
}
# Optional components of the release that nodes with `metrics` have
METRICS = ("node-exporter", "dcgm-exporter", "prometheus")
KEYS = {"lustre": ("path", "dns_name", "mount_name"), "openzfs": ("path", "dns_name", "volume_path")}


def stop(status, reason):
    print("NODE_ERROR=" + " ".join(reason.split()))
    sys.exit(status)


def of_another_shape(kind, error, where):
    """A value that no check below expects: to look once more would not help."""
    while where.tb_next:
        where = where.tb_next
    print(f"NODE_ERROR={cluster_path} or {resource_path} has another shape than its scheme: {' '.join(repr(error).split())} (line {where.tb_lineno})", flush=True)
    os._exit(GIVE_UP)


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        stop(GIVE_UP, f"cannot read {path}: {error}")
    if not isinstance(data, dict):
        stop(GIVE_UP, f"cannot read {path}: not an object")
    return data


def same_address(text):
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return text


resource_path, cluster_path, primary, *own = sys.argv[1:]
sys.excepthook = of_another_shape
cluster = read(cluster_path)
if cluster.get("schema") != 1:
    stop(GIVE_UP, f"{cluster_path} has schema {cluster.get('schema')!r}, these scripts read schema 1")
groups = cluster.get("node_groups")
if not isinstance(groups, dict) or not all(isinstance(group, dict) for group in groups.values()):
    stop(GIVE_UP, f"{cluster_path} has no usable node_groups")
for name, group in groups.items():
    if group.get("role") not in ROLES:
        stop(GIVE_UP, f"{cluster_path}: group '{name}' has role {group.get('role')!r}, not one of {', '.join(ROLES)}")

def on_hyperpod():
    """Group, type and address of the instance with one of our addresses."""
    resources = read(resource_path)
    everyone = []  # (group name, instance type, address)
    for group in resources.get("InstanceGroups") or []:
        for instance in group.get("Instances") or []:
            # AgentIpAddress belongs to the service's account: never compared.
            address = same_address(instance.get("CustomerIpAddress"))
            everyone.append((group.get("Name"), group.get("InstanceType") or "", address))

    addresses = [same_address(address) for address in [primary, *own] if address]
    me = [member for member in everyone if primary and member[2] == addresses[0]] or [member for member in everyone if member[2] in addresses]
    if not me:
        listed = ", ".join(map(str, dict.fromkeys(addresses))) or "none"
        stop(1, f"no address of this node ({listed}) is in {resource_path}")
    if len(me) > 1:
        names = ", ".join(f"{address} in '{name}'" for name, _, address in me)
        stop(1, f"the addresses of this node belong to several instances in {resource_path}: {names}")
    return me[0], resources, everyone


def elsewhere():
    """Group by name, or by instance type and the role that the orchestrator's file tells."""
    role, name, instance_type, nvidia, neuron, efa = os.environ["NODE_HERE"].split("|")
    same = [
        key for key, group in groups.items()
        if group.get("instance_type", "").removeprefix("ml.") == instance_type and role in ("", group["role"])
    ]
    if not name:
        # Several groups of one type and role differ in nothing that matters to a step.
        name = same[0] if same else ""
    elif name not in groups:
        stop(GIVE_UP, f"group '{name}' is not in {cluster_path}, which knows {', '.join(sorted(groups)) or 'none'}")
    elif role and groups[name]["role"] != role:
        stop(GIVE_UP, f"{cluster_path}: group '{name}' has role {groups[name]['role']!r}, but this is a {role} node")
    if not name:
        name = f"({role or 'compute'})"
        groups[name] = {"role": role or "compute", "accelerators": int(nvidia) or int(neuron), "efa_interfaces": int(efa)}
    return (name, instance_type, primary), {}, []


(name, instance_type, address), resources, everyone = elsewhere() if os.environ.get("NODE_HERE") else on_hyperpod()
if name not in groups:
    stop(GIVE_UP, f"instance group '{name}' is not in {cluster_path}, which knows {', '.join(sorted(groups)) or 'none'}")
group = groups[name]

slurm = resources.get("SlurmConfig") or {}
controllers = [slurm.get("PrimaryControllerIp"), *(slurm.get("SecondaryControllerIps") or [])]
controllers = [controller for controller in controllers if controller] or [
    str(address) for group_name, _, address in everyone if (groups.get(group_name) or {}).get("role") == "controller"
]


def count(key):
    value = group.get(key) or 0
    if isinstance(value, bool) or not isinstance(value, int):
        stop(GIVE_UP, f"{cluster_path}: {key} of group '{name}' is {value!r}, not a number")
    return value


def number_or_nothing(key):
    return count(key) if key in group else ""


def path_or_nothing(key):
    value = group.get(key) or ""
    if value and (not isinstance(value, str) or not re.fullmatch(FORMS["path"], value)):
        stop(GIVE_UP, f"{cluster_path}: {key} of group '{name}' is {value!r}, not a path")
    return value


def yes_or_no(key):
    """Empty where cluster.json does not tell."""
    return {True: "yes", False: "no"}.get(group.get(key), "")


def name_or_nothing(key):
    value = group.get(key) or ""
    if value and (not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9 .+-]{1,40}", value)):
        stop(GIVE_UP, f"{cluster_path}: {key} of group '{name}' is {value!r}, not a name")
    return value


def word(key, form):
    value = cluster.get(key) or ""
    if value and (not isinstance(value, str) or not re.fullmatch(form, value)):
        stop(GIVE_UP, f"{cluster_path}: {key} is {value!r}")
    return value


def section(key):
    """An object of the cluster's; empty where there is none."""
    value = cluster.get(key) or {}
    if not isinstance(value, dict):
        stop(GIVE_UP, f"{cluster_path}: {key} is {value!r}, not an object")
    return value


def text(key):
    value = cluster.get(key)
    if value is not None and not isinstance(value, str):
        stop(GIVE_UP, f"{cluster_path}: {key} is {value!r}, not a text")
    return value or ""


def components():
    names = cluster.get("components") or []
    if not isinstance(names, list) or not all(re.fullmatch(r"[a-z0-9-]+", str(name)) for name in names):
        stop(GIVE_UP, f"{cluster_path}: components is {names!r}, not a list of names")
    return " ".join([*names, *(METRICS if cluster.get("metrics") else ())])


def own_steps():
    """`10_proxy:required 20_agent:optional`: each with its file, which the name cannot leave."""
    steps = []
    for step in group.get("steps") or []:
        found = isinstance(step, dict) and re.fullmatch(r"(\d\d_[a-z][a-z0-9_]{0,29})\.sh", str(step.get("file")))
        if not found or step.get("need") not in ("required", "optional"):
            stop(GIVE_UP, f"{cluster_path}: steps of group '{name}' has {step!r}")
        if not os.path.isfile(os.path.join(os.path.dirname(cluster_path), "own_steps", step["file"])):
            stop(GIVE_UP, f"own_steps/{step['file']}, which {cluster_path} names, is not among the scripts")
        steps.append(f"{found[1]}:{step['need']}")
    return " ".join(steps)


def mig():
    """`4g.40gb:0,1g.10gb:4 -`: profiles of each GPU with their places, `-` of one that stays whole; empty where none is cut."""
    layouts = group.get("mig") or []
    form = r"([1-9]g\.[0-9]+gb(\+me)?:[0-7](,(?!$)|$))*"
    if not isinstance(layouts, list) or not all(isinstance(one, str) and re.fullmatch(form, one) for one in layouts):
        stop(GIVE_UP, f"{cluster_path}: mig of group '{name}' is {layouts!r}")
    return " ".join(one or "-" for one in layouts)


def metadata_users():
    users = (cluster.get("metadata") or {}).get("users") or []
    if not isinstance(users, list) or not all(re.fullmatch(r"[a-z_][a-z0-9_-]{0,31}", str(user)) for user in users):
        stop(GIVE_UP, f"{cluster_path}: metadata.users is {users!r}")
    return " ".join(users)


def slurm_settings(role):
    """Slurm's settings as one line of JSON; empty where there are none, and where another node has slurm.conf."""
    section = cluster.get("slurm")
    if section is None or role != "controller":
        return ""
    rows = section.get("settings") if isinstance(section, dict) else None
    forms = {"name": r"[A-Za-z][A-Za-z0-9_]*", "value": r'[!$-\[\]-~]+|"[ !$-\[\]-~]*"'}
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and all(re.fullmatch(form, str(row.get(key) or "")) for key, form in forms.items()) for row in rows
    ):
        stop(GIVE_UP, f"{cluster_path}: slurm.settings is {rows!r}")
    return json.dumps(section)


def metrics():
    """Where metrics go and how, with the fields that land in a configuration; empty where nothing is collected."""
    told = section("metrics")
    forms = {"region": r"[a-z]{2}(-[a-z]+)+-\d", "role_arn": r"arn:aws[a-z-]*:iam::\d{12}:role/[A-Za-z0-9+=,.@_/-]+", "remote_write_url": r"https://[!-~]+"}
    for key, form in forms.items():
        value = told.get(key)
        if value is not None and (not isinstance(value, str) or not re.fullmatch(form, value)):
            stop(GIVE_UP, f"{cluster_path}: metrics.{key} is {value!r}")
    labels = told.get("labels") or {}
    if not isinstance(labels, dict) or not all(re.fullmatch(r"[a-z][a-z0-9_]*", str(name)) and isinstance(value, str) for name, value in labels.items()):
        stop(GIVE_UP, f"{cluster_path}: metrics.labels is {labels!r}, not texts by name")
    return json.dumps(told, sort_keys=True) if told else ""


metadata = (cluster.get("metadata") or {}).get("for", "")
if metadata not in ("", "services", "everyone"):
    stop(GIVE_UP, f"{cluster_path}: metadata.for is {metadata!r}, not services or everyone")
accelerator = group.get("accelerator") or ""
if accelerator not in ("", "nvidia", "neuron", "none"):
    stop(GIVE_UP, f"{cluster_path}: accelerator of group '{name}' is {accelerator!r}, not nvidia, neuron or none")
minutes = cluster.get("budget_minutes")
if minutes is not None and (isinstance(minutes, bool) or not isinstance(minutes, int) or minutes < 1):
    stop(GIVE_UP, f"{cluster_path}: budget_minutes is {minutes!r}, not a number of minutes")
locked = cluster.get("locked")
if locked is not None and not (isinstance(locked, dict) and all(isinstance(locked.get(key, {}), dict) for key in ("files", "keys"))):
    stop(GIVE_UP, f"{cluster_path}: locked is {locked!r}, not an object with files and keys")
health = cluster.get("health")
if health is not None and not (isinstance(health, dict) and health.get("mode") in ("dry-run", "enforce")):
    stop(GIVE_UP, f"{cluster_path}: health is {health!r}, not an object with mode dry-run or enforce")
facts = {
    "NODE_GROUP": name,
    "NODE_ROLE": group["role"],
    "NODE_INSTANCE_TYPE": instance_type[3:] if instance_type.startswith("ml.") else instance_type,
    "NODE_ADDRESS": address,
    "NODE_ACCELERATORS": count("accelerators"),
    "NODE_EFA_INTERFACES": count("efa_interfaces"),
    "NODE_LOCAL_NVME_DISKS": count("local_nvme_disks"),
    "CLUSTER_NAME": text("cluster"),
    "CLUSTER_ORCHESTRATOR": word("orchestrator", r"[a-z][a-z0-9-]*"),
    "CLUSTER_STATE_URI": word("state_uri", r"s3://[a-z0-9][a-z0-9.-]+(/[A-Za-z0-9._-]+)+"),
    "CLUSTER_ENVIRONMENT": text("environment"),
    "CLUSTER_RELEASE": text("release"),
    "CLUSTER_MIRROR": word("mirror", r"s3://[a-z0-9][a-z0-9.-]+(/[A-Za-z0-9._/-]*)?"),
    "CLUSTER_SLURM_VERSION": word("slurm_version", r"\d\d\.\d\d"),
    "CLUSTER_COMPONENTS": components(),
    "CLUSTER_SESSION_USER": word("session_user", r"[a-z_][a-z0-9_-]{0,31}"),
    "CLUSTER_STRICT": "yes" if cluster.get("strict") is True else "",
    "CLUSTER_BUDGET_MINUTES": minutes or "",
    "CLUSTER_CONTROLLERS": " ".join(controllers),
    "CLUSTER_NODES": len(everyone) or "",
    "CLUSTER_METADATA": metadata,
    "CLUSTER_SLURM": slurm_settings(group["role"]),
    "CLUSTER_METADATA_USERS": metadata_users(),
    "CLUSTER_JOB_ROLE": word("job_role", r"arn:aws[a-z-]*:iam::\d{12}:role/[A-Za-z0-9+=,.@_/-]+"),
    "CLUSTER_REGION": word("region", r"[a-z]{2}(-[a-z]+)+-\d"),
    "CLUSTER_TOPOLOGY": word("topology", "tree"),
    "NODE_JOB_ACCESS": yes_or_no("job_access"),
    "CLUSTER_DIRECTORY": json.dumps(section("directory"), sort_keys=True) if section("directory") else "",
    "CLUSTER_DIRECTORY_IDS": " ".join(map(str, section("directory").get("id_range") or [])),
    "CLUSTER_DIRECTORY_HOME": section("directory").get("home") or "",
    "CLUSTER_JOB_SSH": " ".join(section("job_ssh").get("admins", [])) if section("job_ssh") else "",
    "CLUSTER_LOCKED": json.dumps(locked) if locked else "",
    "CLUSTER_HEALTH": json.dumps(health) if health else "",
    "CLUSTER_METRICS": metrics(),
    **{f"CLUSTER_METRICS_{key.upper()}": section("metrics").get(key) or "" for key in ("remote_write_url", "region", "scrape_seconds")},
    "NODE_ACCELERATOR": accelerator,
    "NODE_LUSTRE_EFA_INTERFACES": number_or_nothing("lustre_efa_interfaces"),
    "NODE_LUSTRE_EFA_LIMITED": yes_or_no("lustre_efa_limited"),
    "NODE_GDS": yes_or_no("gds"),
    "NODE_DATA_VOLUME": path_or_nothing("data_volume"),
    "NODE_ACCELERATOR_NAME": name_or_nothing("accelerator_name"),
    "NODE_EFA_LAYOUTS": " ".join(str(one) for one in group.get("efa_layouts") or [] if isinstance(one, int)),
    "NODE_NVSWITCH": yes_or_no("nvswitch"),
    "NODE_IMEX": yes_or_no("imex"),
    "NODE_MIG": mig(),
    "NODE_STEPS": own_steps(),
}


def mount(kind, place, found):
    """The values of a mount, in the order of KEYS."""
    values = []
    for key in KEYS[kind]:
        value = found.get(key) if isinstance(found, dict) else None
        if not isinstance(value, str) or not re.fullmatch(FORMS[key], value):
            stop(GIVE_UP, f"{cluster_path}: mounts.{place}.{key} is {value!r}")
        values.append(value)
    return values


def lustre():
    """The file systems that this group mounts, one with EFA first."""
    mounts = cluster.get("mounts") or {}
    named = {"storage.lustre": ("lustre", mounts["lustre"])} if mounts.get("lustre") is not None else {}
    further = mounts.get("further_lustre") or {}
    if not isinstance(further, dict):
        stop(GIVE_UP, f"{cluster_path}: mounts.further_lustre is {further!r}, not an object")
    named |= {key: (f"further_lustre.{key}", one) for key, one in further.items()}
    wanted = group.get("lustre", list(named))
    if not isinstance(wanted, list):
        stop(GIVE_UP, f"{cluster_path}: lustre of group '{name}' is {wanted!r}, not a list of names")
    own = [(mount("lustre", place, one), one.get("efa") is True) for key, (place, one) in named.items() if key in wanted]
    return sorted(own, key=lambda one: not one[1])


shared = lustre()
for values, efa in shared[:1]:
    facts |= {f"LUSTRE_{key}".upper(): value for key, value in zip(KEYS["lustre"], values)}
    if efa:
        facts["LUSTRE_EFA"] = "yes"
facts["LUSTRE_FURTHER"] = " ".join(",".join(values) for values, _ in shared[1:])
homes = (cluster.get("mounts") or {}).get("openzfs")
if homes is not None:
    facts |= {f"OPENZFS_{key}".upper(): value for key, value in zip(KEYS["openzfs"], mount("openzfs", "openzfs", homes))}


def collectors_document():
    """Facts of this node for the agent's configuration and the collectors."""
    names = ("NODE_GROUP", "NODE_ROLE", "NODE_INSTANCE_TYPE", "NODE_ADDRESS", "NODE_ACCELERATOR", "LUSTRE_PATH")
    names += tuple(f"CLUSTER_{name}" for name in ("NAME", "ENVIRONMENT", "ORCHESTRATOR", "RELEASE"))
    keys = {"NODE_GROUP": "node_group", "CLUSTER_NAME": "cluster", "LUSTRE_PATH": "lustre_path"}
    document = section("metrics") | {keys.get(key, key.partition("_")[2].lower()): str(facts[key]) for key in names if facts.get(key)}
    document |= {key: facts[f"NODE_{key.upper()}"] for key in ("accelerators", "efa_interfaces")}
    if shared:
        document["lustre_efa"] = facts.get("LUSTRE_EFA") == "yes"
    if place := facts.get("OPENZFS_PATH") or facts.get("LUSTRE_PATH"):
        document["shared"] = place
    return json.dumps(document, sort_keys=True)


if facts["CLUSTER_METRICS"]:
    facts["CLUSTER_METRICS_DOCUMENT"] = collectors_document()
for key, value in facts.items():
    if "\n" in str(value):
        stop(GIVE_UP, f"{cluster_path}: {value!r} is no value, it has several lines")
for key, value in facts.items():
    print(f"{key}={value}")
PYTHON
}
