"""What the nodes of a group are given: nothing that others run, whose change would replace nodes of it."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from project import ENVIRONMENTS, ROOT
from rules_support import changed, environment_data, loaded
from templates import Synthesised, assembly

from ultracluster.catalog import instance_types
from ultracluster.config import load
from ultracluster.lifecycle.bundles import content_hash
from ultracluster.lifecycle.selection import OWN, files_of, steps_of, tool_files
from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configuration, script_configurations
from ultracluster.scripts_folder import scripts_folder

Get = Callable[[str], Synthesised]
ENTRIES = sorted(
    file.stem for file in scripts_folder().glob("*.sh") if file.stem != "bake"
)  # an image is baked from the whole folder
PARALLELCLUSTER = ["parallelcluster_on_node_start", "parallelcluster_on_node_configured"]


def relative(files: list[Path]) -> set[str]:
    return {file.relative_to(scripts_folder()).as_posix() for file in files}


# Which files


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_steps_are_those_that_bash_runs(entry: str) -> None:
    told = subprocess.run(
        ["bash", "-c", f'source "{scripts_folder()}/lib/steps.sh"; steps::of {entry}'],
        capture_output=True,
        text=True,
        check=True,
    )

    assert list(steps_of(scripts_folder(), entry)) == told.stdout.split()


@pytest.mark.parametrize("entry", ENTRIES)
def test_whatever_a_script_names_is_there(entry: str) -> None:
    files = files_of(scripts_folder(), [entry], release="2026.11")
    names = relative(files)
    for file in files:
        if file.suffix != ".sh":
            continue
        code = [line for line in file.read_text().splitlines() if not line.lstrip().startswith("#")]
        for path in re.findall(r"\$ULTRACLUSTER_HOME/([a-z_]+/[\w.-]+)", "\n".join(code)):
            assert path in names or path == "lib/run_verb.sh" or "$" in path, f"{file.name}: {path}"
        for path in re.findall(r"\b(?:files|verify)/[\w-]+\.(?:sh|conf|service|json)\b", "\n".join(code)):
            assert path in names, f"{file.name}: {path}"


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_starts_with_nothing_but_its_own_files(entry: str, tmp_path: Path) -> None:
    """Every library is sourced before the usage is checked; every step can be sourced."""
    for file in files_of(scripts_folder(), [entry], release="2026.11"):
        target = tmp_path / file.relative_to(scripts_folder())
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    ran = subprocess.run(
        ["bash", str(tmp_path / f"{entry}.sh"), "-x", "-y", "-z"],
        env={"PATH": "/usr/bin:/bin", "ULTRACLUSTER_ROOT": str(tmp_path / "root")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "No such file" not in ran.stderr
    steps = subprocess.run(
        ["bash", "-c", 'for step in "$ULTRACLUSTER_HOME"/steps/*.sh; do (source "$step"); done'],
        env={"PATH": "/usr/bin:/bin", "ULTRACLUSTER_ROOT": str(tmp_path), "ULTRACLUSTER_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No such file" not in steps.stderr, steps.stderr
    assert {f"{step}.sh" for step in steps_of(scripts_folder(), entry) if step != OWN} == {
        file.name for file in (tmp_path / "steps").iterdir()
    }


def test_limits_and_scratch_have_their_files_and_no_tool_comes_along() -> None:
    names = relative(files_of(scripts_folder(), ["hyperpod_eks_on_create"], release="hyperpod-eks-2026.09"))

    assert {"files/limits.conf", "files/sysctl.conf", "files/scratch.sh", "files/scratch.service"} <= names
    assert "releases/hyperpod-eks-2026.09.lock" in names and "releases/2026.11.lock" not in names
    assert not [one for one in names if one.startswith(("acceptance/", "verify/fabric"))]
    assert not names & {"steps/pyxis.sh", "files/self_extracting.sh", "files/from_s3.sh", "bake.sh"}


def test_slurm_nodes_have_all_of_the_collectors_and_pods_bring_them_elsewhere() -> None:
    folder = scripts_folder()
    collectors = {file.relative_to(folder).as_posix() for file in (folder / "metrics").rglob("*.[pj]*")}
    collectors = {one for one in collectors if not one.endswith(".pyc")}
    for entry in ("hyperpod_on_init_complete", "hyperpod_on_create", *PARALLELCLUSTER[1:], "pcs_node"):
        names = relative(files_of(folder, [entry], release="2026.11"))
        assert collectors | {"lib/telemetry.sh", "files/metrics_agent.py", "files/metrics_place.py"} <= names
        assert "files/ultracluster_metrics.py" in names, entry
    for entry in ("eks_user_data", "hyperpod_eks_on_create"):
        names = relative(files_of(folder, [entry], release="2026.11"))
        assert not {one for one in names if "metrics" in one or "telemetry" in one}, entry


def test_tools_are_what_people_run() -> None:
    names = relative(tool_files(scripts_folder()))

    assert {"verify/fabric.sh", "verify/nccl_patterns.json", "acceptance/nccl_tests.sbatch"} <= names
    assert "lib/node.sh" in names and not [one for one in names if one.startswith("steps/")]


@pytest.mark.parametrize(
    ("entries", "release", "also", "says"),
    [
        (
            ["no_such_entry"],
            None,
            [],
            "has no entry 'no_such_entry'; it has bake, bake_kubernetes, eks_user_data",
        ),
        (["pcs_node"], "2020.01", [], r"has no releases/2020\.01\.lock"),
        (["pcs_node"], None, ["files/nothing.sh"], r"has no files/nothing\.sh"),
    ],
)
def test_what_is_not_there_is_named(entries: list[str], release: Any, also: list[str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        files_of(scripts_folder(), entries, release=release, also=also)


# What changes the hash


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("releases/2026.11.lock", False),
        ("verify/fabric.sh", False),
        ("acceptance/nccl_tests.sbatch", False),
        ("steps/slurm.sh", False),  # of on-create
        ("files/from_s3.sh", False),
        ("hyperpod_eks_on_create.sh", False),
        ("README.md", False),
        ("releases/hyperpod-slurm-2026.09.lock", True),
        ("steps/enroot.sh", True),
        ("lib/fetch.sh", True),
        ("files/sysctl.conf", True),
        ("hyperpod_on_init_complete.sh", True),
    ],
)
def test_the_hash_covers_what_the_entry_runs(path: str, counts: bool, tmp_path: Path) -> None:
    copy = tmp_path / "scripts"
    shutil.copytree(scripts_folder(), copy)

    def hashed() -> str:
        files = files_of(copy, ["hyperpod_on_init_complete"], release="hyperpod-slurm-2026.09")
        return content_hash(copy, files, {"schema": 1})

    before = hashed()
    with (copy / path).open("a") as file:
        file.write("\n# changed\n")

    assert (hashed() != before) is counts


def places(made: Synthesised) -> dict[str, str]:
    """Where the nodes of each group get their scripts, as the templates say it."""
    found: dict[str, str] = {}
    for cluster in made.resources("AWS::SageMaker::Cluster").values():
        for group in cluster["Properties"]["InstanceGroups"]:
            found[group["InstanceGroupName"]] = json.dumps(group["LifeCycleConfig"])
    for group in made.resources("AWS::PCS::ComputeNodeGroup").values():
        found[group["Properties"]["Name"]] = json.dumps(group["Properties"]["NodeLifecycleActions"])
    for cluster in made.resources("Custom::PclusterCluster").values():
        configuration = cluster["Properties"]["ClusterConfiguration"]
        for queue in configuration["Scheduling"]["SlurmQueues"]:
            found[queue["Name"]] = json.dumps(queue["CustomActions"])
        found["head"] = json.dumps(configuration["HeadNode"]["CustomActions"])
    for template in made.resources("AWS::EC2::LaunchTemplate").values():
        data = json.dumps(template["Properties"]["LaunchTemplateData"].get("UserData", ""))
        if "eks_user_data" in data:
            (name,) = re.findall(r"--group (\w+)", data)
            found[name] = data
    return found


@pytest.mark.parametrize(
    ("name", "changes", "differ"),
    [
        ("dev", {"node_groups.controller.instance_type": "m5.4xlarge"}, {"controller"}),
        ("prod", {"node_groups.login.instance_type": "m5.4xlarge"}, {"login"}),
        ("pcs-p6-b200", {"node_groups.login.instance_type": "m7i.4xlarge"}, {"login"}),
        ("parallelcluster-p5", {"node_groups.login.instance_type": "m7i.4xlarge"}, {"head"}),
        (
            "hyperpod-eks-p5",
            {
                "node_groups.more": {
                    "role": "compute",
                    "instance_type": "p5.48xlarge",
                    "count": 1,
                    "capacity": {"kind": "on-demand"},
                }
            },
            {"more"},
        ),
        (
            "eks-p5en",
            {"node_groups.more": {"role": "compute", "instance_type": "g6e.12xlarge", "count": 1}},
            {"more"},
        ),
    ],
)
def test_a_change_of_one_group_gives_no_other_group_other_scripts(
    name: str, changes: dict[str, Any], differ: set[str], synthesised: Get
) -> None:
    before = places(synthesised(name))
    environment = loaded(changed(environment_data(name), changes)).environment
    after = places(assembly(environment, checked=False))

    assert before.keys() <= after.keys() and before
    assert {one for one in after if after[one] != before.get(one)} == differ


# cluster.json


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_group_is_told_of_itself_and_of_controllers(name: str) -> None:
    environment = load(ROOT / "environments" / f"{name}.yaml").environment
    for group, told in script_configurations(resolve(environment)).by_group.items():
        groups: Any = told["node_groups"]
        others = {one: facts for one, facts in groups.items() if one != group}

        assert groups[group]["instance_type"] == environment.node_groups[group].instance_type
        assert others == {
            one: {"role": "controller"} for one in environment.groups("controller") if one != group
        }


@pytest.mark.parametrize(
    ("name", "budget", "volume"),
    [
        ("prod", None, "/opt/sagemaker"),
        ("hyperpod-eks-p5", None, "/opt/sagemaker"),
        ("pcs-p6-b200", 25, None),
        ("eks-p5en", 12, None),
        ("parallelcluster-p5", 25, None),
    ],
)
def test_the_orchestrators_bounds_reach_the_nodes(name: str, budget: Any, volume: Any) -> None:
    environment = load(ROOT / "environments" / f"{name}.yaml").environment
    (group, *_) = environment.groups("compute")
    told: Any = script_configuration(resolve(environment), group)

    assert told["budget_minutes"] == budget
    assert told["node_groups"][group]["data_volume"] == volume
    assert told["node_groups"][group]["nvswitch"] is True


def test_what_nobody_knows_of_a_declared_type_is_left_out() -> None:
    """The scripts then go by the name of the type: unknown is not no."""
    declared = {
        "vcpu": 192,
        "memory_gib": 4096,
        "accelerator": "NVIDIA B400",
        "accelerators": 8,
        "network_gbps": 6400,
        "network_cards": 17,
        "efa_interfaces": 16,
        "addresses": 17,
        "source": "announced at a conference",
    }
    changes = {"instance_types": {"p9.48xlarge": declared}, "node_groups.gpu.instance_type": "p9.48xlarge"}
    told: Any = script_configuration(
        resolve(loaded(changed(environment_data("dev"), changes)).environment), "gpu"
    )

    assert told["node_groups"]["gpu"]["efa_interfaces"] == 16
    assert not told["node_groups"]["gpu"].keys() & {"nvswitch", "lustre_efa_interfaces"}
    assert told["node_groups"]["gpu"]["gds"] is False, "nobody asks for it"


def test_no_node_with_efa_is_told_that_it_has_none() -> None:
    """AWS names no number for p6e-gb200: its nodes must have the smallest layout, and look for more."""
    told: Any = script_configuration(
        resolve(load(ROOT / "environments/parallelcluster-gb200.yaml").environment), "gb200"
    )
    assert told["node_groups"]["gb200"]["efa_interfaces"] == 4

    for kind in instance_types().values():
        assert bool(kind.least_efa_interfaces) == bool(kind.efa_cards), kind.name


@pytest.mark.parametrize(
    ("asked", "kind", "gds"),
    [
        (True, "p5.48xlarge", True),
        (False, "p5.48xlarge", False),
        # FSx for Lustre User Guide, "Configuring EFA clients", does not list it
        (True, "g6e.12xlarge", False),
    ],
)
def test_nodes_get_nvidia_fs_where_the_environment_asks_for_it(asked: bool, kind: str, gds: bool) -> None:
    changes = {"storage.lustre.gds": asked, "node_groups.train.instance_type": kind}
    told: Any = script_configuration(
        resolve(loaded(changed(environment_data("prod"), changes)).environment), "train"
    )

    assert told["node_groups"]["train"]["gds"] is gds


def test_what_completes_the_lock_travels_along_where_there_is_something() -> None:
    environment = load(ROOT / "environments" / "prod.yaml").environment
    locked = {"files": {"a.zip": "sha256:00"}, "keys": {}}

    assert "locked" not in script_configuration(resolve(environment), "train")
    assert script_configurations(resolve(environment), locked=locked).by_group["train"]["locked"] == locked


# The upload


@pytest.mark.parametrize("name", ["prod", "hyperpod-eks-p5", "parallelcluster-p5"])
def test_what_nodes_are_told_to_fetch_is_uploaded_with_deployed_values(
    name: str, synthesised: Get, tmp_path: Path
) -> None:
    """Through the code of the CDK's own function."""
    made = synthesised(name)
    (upload,) = [
        one["Properties"]
        for one in made.resources("Custom::CDKBucketDeployment").values()
        if one["Properties"]["DestinationBucketKeyPrefix"] == name
    ]
    (key,), (markers,) = upload["SourceObjectKeys"], upload["SourceMarkers"]
    values = {marker: at_deploy(value) for marker, value in markers.items()}
    uploader(made).extract_and_replace_markers(str(made.folder / f"asset.{key}"), str(tmp_path), values, {})
    wanted = set(re.findall(rf"/{name}/([0-9a-f]{{12}})\b", " ".join(places(made).values())))

    kept = {"state"} if (tmp_path / "state").exists() else set[str]()
    assert bool(kept) == (name != "hyperpod-eks-p5")
    assert {folder.name for folder in tmp_path.iterdir()} == wanted | {"tools"} | kept
    for folder in (one for one in tmp_path.iterdir() if one.name not in kept):
        cluster = json.loads((folder / "cluster.json").read_text())
        assert "<<marker" not in json.dumps(cluster)
        if markers:
            assert cluster["mounts"]["lustre"]["dns_name"] == f"{name}-storage-LustreDnsName.example"
        if kept:
            assert cluster["state_uri"] == f"s3://{name}-buckets-ScriptsBucketName.example/{name}/state"
    for file in (tmp_path / "state").glob("*.json"):
        assert json.loads(file.read_text())["document"] == file.stem
    everyone = json.loads((tmp_path / "tools" / "cluster.json").read_text())["node_groups"]
    assert all("instance_type" in facts for facts in everyone.values())
    assert (tmp_path / "tools" / "verify" / "fabric.sh").is_file()


def at_deploy(value: Any) -> str:
    """What CloudFormation puts in the place of an export, or of a text with one in it."""
    if isinstance(value, str):
        return value
    if "Fn::Join" in value:
        return value["Fn::Join"][0].join(at_deploy(one) for one in value["Fn::Join"][1])
    return f"{value['Fn::ImportValue']}.example"


def uploader(made: Synthesised) -> ModuleType:
    (file,) = [
        file for file in made.folder.glob("asset.*/index.py") if "extract_and_replace" in file.read_text()
    ]
    spec = importlib.util.spec_from_file_location("uploader", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_hundred_groups_are_one_upload_and_one_template() -> None:
    """CloudFormation takes 500 resources and 1 MB."""
    groups = {
        f"node_groups.group{number}": {
            "role": "compute",
            "instance_type": "p5.48xlarge",
            "count": 1,
            "partition": f"part{number}",
        }
        for number in range(97)
    }
    environment = loaded(changed(environment_data("dev"), groups)).environment
    made = assembly(environment, checked=False)
    text = (made.folder / "dev-cluster.template.json").read_text()

    assert len(places(made)) == 97 + len(environment_data("dev")["node_groups"])
    assert len(set(places(made).values())) == len(places(made))
    assert len(made.templates["dev-cluster"]["Resources"]) < 30
    assert len(json.dumps(json.loads(text))) < 200_000
    (upload,) = made.resources("Custom::CDKBucketDeployment").values()
    assert len(json.dumps(upload)) < 2_000
    (key,) = upload["Properties"]["SourceObjectKeys"]
    with zipfile.ZipFile(made.folder / f"asset.{key}") as archive:
        folders = {name.split("/")[0] for name in archive.namelist()}
    assert len(folders - {"tools", "state"}) == len(places(made)) == len(folders) - 2
