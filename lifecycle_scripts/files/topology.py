"""The network below the nodes as Slurm reads it in `topology.yaml`.

A place is where a node is: `{"path": [...], "block": ...}`, the ids of its switches from the root to the
leaf, and the domain that NVLink joins (`CapacityBlockId`, or the id of an UltraServer). What comes out has
every node once, one root over all, and a bounded depth, whatever goes in: a node in no switch could never be
in a job with others. Names are made of ids, so a node that is replaced moves, and no other line changes.

Read by the `ultracluster` command and by the head node, with Python 3.6 and newer: no annotations.
"""

import hashlib
import re

ROOT = "ultracluster"
UNPLACED = "unplaced"
"""The leaf of nodes of which nobody says where they are, as of those that do not run."""
LAYERS = 4
"""Of a path, the lowest: EC2 tells three, and says that there may be more (DescribeInstanceTopology)."""
DEPTH = LAYERS + 2
"""Levels of switches at most: the root, the layers, and a leaf for nodes beside which there are switches."""
NODE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,62})\Z")
_ID = re.compile(r"[A-Za-z]([A-Za-z0-9-]{0,54})\Z")
"""Slurm takes names of 64 characters, and reads brackets in them as ranges of numbers."""


def place_of_instance(instance):
    """The place in one entry of DescribeInstanceTopology's `Instances`; None where it tells nothing."""
    if not isinstance(instance, dict):
        return None
    return place(instance.get("NetworkNodes"), instance.get("CapacityBlockId"))


def place_of_labels(labels):
    """The place in the labels of a node: of HyperPod's resource_config.json, or of Kubernetes."""
    if not isinstance(labels, dict):
        return None
    plain = {key.rsplit("/", 1)[-1]: value for key, value in labels.items() if isinstance(key, str)}
    path = [plain.get(f"network-node-layer-{layer}") for layer in range(1, LAYERS + 1)]
    while path and path[-1] is None:
        path.pop()
    return place(path, plain.get("ultraserver-id"))


def place(path, block):
    """A place of what was answered; None where that is no path and no block."""
    ids = path if isinstance(path, list) else []
    good = all(isinstance(one, str) and one.strip() for one in ids) and len(set(ids)) == len(ids)
    ids = [one.strip() for one in ids][-LAYERS:] if good else []
    block = block.strip() if isinstance(block, str) else ""
    return {"path": ids, "block": block or None} if ids or block else None


def tree(nodes, places):
    """Switches with `children` or `nodes`, leaves first and the root last.

    Args:
        nodes: names of all nodes of the cluster, as Slurm has them.
        places: by node; a node without one is below the leaf `unplaced`.

    Raises:
        ValueError: a name that Slurm would not read as one node, or no node at all.
    """
    names = _checked(nodes)
    members = {}
    for node in names:
        path = tuple((places.get(node) or {}).get("path") or ())
        members.setdefault(path or (UNPLACED,), []).append(node)
    inner = {path[:end] for path in members for end in range(1, len(path))}
    # where switches hang, Slurm takes no nodes beside them
    members = {(*path, "") if path in inner else path: below for path, below in members.items()}
    paths = {path[:end] for path in members for end in range(1, len(path) + 1)}
    called = _switch_names(paths, members)
    switches = [{"switch": called[path], "nodes": members[path]} for path in sorted(members)]
    for path in sorted(paths - set(members), key=lambda one: (-len(one), one)):
        below = [called[one] for one in paths if len(one) == len(path) + 1 and one[:-1] == path]
        switches.append({"switch": called[path], "children": sorted(below)})
    top = sorted(called[one] for one in paths if len(one) == 1)
    switches.append({"switch": ROOT, "children": top})
    return {"tree": switches}


def blocks(nodes, places, size):
    """Blocks of at most `size` nodes: Slurm keeps a job that fits into one of them in it.

    Args:
        nodes: as of `tree`.
        places: by node; nodes without a block share blocks of their own.
        size: nodes of one UltraServer: 18 of u-p6e-gb200x72.

    Raises:
        ValueError: as `tree`, or no size.
    """
    if size < 1:
        raise ValueError(f"a block has at least one node, not {size}")
    members = {}
    for node in _checked(nodes):
        members.setdefault((places.get(node) or {}).get("block") or "", []).append(node)
    found = []
    taken = set()
    for block in sorted(members):
        name = _name(block, taken) if block else UNPLACED
        parts = range(0, len(members[block]), size)
        for number, start in enumerate(parts, start=1):
            part = _free(f"{name}-{number}" if len(parts) > 1 else name, (block, str(number)), taken)
            taken.add(part)
            found.append({"block": part, "nodes": members[block][start : start + size]})
    return {"blocks": found, "size": size}


def faults(topology, nodes):
    """Why a topology must not be used, as lines; none for what `tree` and `blocks` make."""
    rows = topology.get("tree") or topology.get("blocks") or []
    placed = [node for row in rows for node in row.get("nodes", ())]
    names = [row.get("switch") or row.get("block") for row in rows]
    wanted = sorted(set(nodes))
    found = []
    if sorted(placed) != wanted:
        odd = {node for node in wanted if node not in placed} | {
            node for node in placed if node not in wanted
        }
        odd |= {node for node in set(placed) if placed.count(node) > 1}
        found.append("not once: " + ", ".join(sorted(odd)[:5]))
    if len(set(names)) < len(names):
        found.append("two of one name")
    if topology.get("size", 1) < 1:
        found.append("blocks of no nodes")
    if "tree" in topology:
        children = {row["switch"]: row.get("children", ()) for row in rows}
        reached, level, depth = {ROOT}, [ROOT], 0
        while level and depth <= DEPTH:
            depth += 1
            level = [child for one in level for child in children.get(one, ())]
            reached.update(level)
        if level or depth > DEPTH:
            found.append(f"deeper than {DEPTH} levels")
        if reached != set(names):
            found.append("not all below one root")
    return found


def as_yaml(topology, head=""):
    """`topology.yaml`, which Slurm reads from 25.05 on."""
    lines = [head] if head else []
    lines += ["- topology: default", "  cluster_default: true"]
    if "tree" in topology:
        lines += ["  tree:", "    switches:"]
        for row in topology["tree"]:
            below = "nodes" if "nodes" in row else "children"
            lines += ["      - switch: " + _quoted(row["switch"])]
            lines += [f"        {below}: " + _quoted(",".join(row[below]))]
    else:
        lines += ["  block:", "    block_sizes:", "      - " + str(topology["size"]), "    blocks:"]
        for row in topology["blocks"]:
            lines += ["      - block: " + _quoted(row["block"])]
            lines += ["        nodes: " + _quoted(",".join(row["nodes"]))]
    return "\n".join(lines) + "\n"


def natural(name):
    """Sorts node-2 before node-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", name)]


def _checked(nodes):
    names = sorted(set(nodes), key=lambda name: (natural(name), name))
    if not names:
        raise ValueError("there are no nodes")
    for name in names:
        if not isinstance(name, str) or not NODE.match(name):
            raise ValueError(f"{name!r} is no name of one node")
    return names


def _switch_names(paths, members):
    """A name for each path: the id at its end. An id at two places, which AWS should not tell, is that of the
    place with more nodes."""
    weight = dict.fromkeys(paths, 0)
    for path, below in members.items():
        for end in range(1, len(path) + 1):
            weight[path[:end]] += len(below)
    called = {}
    taken = {ROOT}
    for path in sorted(paths, key=lambda one: (one != (UNPLACED,), one[-1] == "", -weight[one], one)):
        if path == (UNPLACED,):
            name = UNPLACED
        elif path[-1] == "":
            name = _free(called[path[:-1]] + "-n", path, taken)
        else:
            name = _name(path[-1], taken, path)
        called[path] = name
        taken.add(name)
    return called


def _name(one, taken, path=()):
    """The id itself where it can be a name."""
    if not _ID.match(one) or one == UNPLACED:
        one = "id-" + _digest(one)
    return _free(one, path or (one,), taken)


def _free(name, path, taken):
    if name not in taken:
        return name
    return name[:54] + "-" + _digest("/".join(path))[:8]


def _digest(text):
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _quoted(text):
    """No name of a switch or node is a number, a truth or nothing to YAML."""
    return f'"{text}"'
