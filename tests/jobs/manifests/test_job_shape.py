"""What no API of Kubernetes takes in the pods of a job: which line, which value, why, what instead."""

from __future__ import annotations

import pytest

from ultracluster.jobs.manifests.job_shape import MOST, shape_faults

BATCH = "apiVersion: batch/v1\nkind: Job\n"
JOB = f"""\
# a comment
---
{BATCH}metadata: {{name: train}}
spec:
  template:
    spec:
"""
JOBSET = "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nspec:\n  replicatedJobs:"


def told(text: str) -> list[str]:
    return [f"{fault.line} {fault}" for fault in shape_faults(text)]


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        ("containers: [7]", "9 POD.containers[0]: it is `7`, and a container is a mapping: "),
        ("containers: [null]", "9 POD.containers[0]: it is empty, and a container is a mapping: "),
        ("containers: []", "9 POD.containers: there is no container"),
        ("containers:", "9 POD.containers: there is no container"),
        ("hostNetwork: true", "8 POD: there is no container, and a pod without one cannot be made: "),
        ("containers: {name: a}", "9 POD.containers: it is a mapping, and no list: "),
        ("containers", "8 POD: it is `containers`, and what pods are is a mapping: "),
        ("containers:\n      - name: a", "10 POD.containers[0]: has no image: write the name of the image"),
        ("containers:\n      - name: a\n        image: 7",
         "11 POD.containers[0].image: it is `7`, and no text: "),
        ("containers: [{image: b}]", "9 POD.containers[0]: has no name: write a name of lower-case letters"),
        ("containers: [{name: A_1, image: b}]", "9 POD.containers[0].name: `A_1` is no name: write"),
        ('containers: [{name: "a\\e[2J", image: b}]',
         r"9 POD.containers[0].name: `a\x1b[2J` is no name: "),
        ("containers: [{AB, command: python}]", "9 POD.containers[0].command: it is `python`, and no list: "),
        ("containers: [{AB, args: [--steps, 3]}]", "9 POD.containers[0].args[1]: it is `3`, and a"),
        ("containers: [{AB, env: {X: y}}]", "9 POD.containers[0].env: it is a mapping, and no list: "),
        ("containers: [{AB, env: [{value: y}]}]", "9 POD.containers[0].env[0]: has no name: "),
        ("containers: [{AB, env: [{name: X, value: true}]}]",
         "9 POD.containers[0].env[0].value: it is `true`, and variables are text: write it in quotes"),
        ("containers: [{AB, volumeMounts: [{name: x}]}]",
         "9 POD.containers[0].volumeMounts[0]: has no mountPath: write the folder in the container"),
        ("containers: [{AB, resources: {limits: [8]}}]",
         "9 POD.containers[0].resources.limits: it is a list, and no mapping: "),
        ("containers: [{AB, resources: 8}]", "9 POD.containers[0].resources: it is `8`, and no mapping: "),
        ("containers: [{AB}, {AB}]",
         "9 POD.containers[1].name: containers[0] has the same name, `a`: call each by its own"),
        ("{containers: [{AB}], initContainers: 1}", "9 POD.initContainers: it is `1`, and no list: "),
        ("{containers: [{AB}], volumes: [x]}", "9 POD.volumes[0]: it is `x`, and no mapping: "),
        ("{containers: [{AB}], tolerations: [x]}", "9 POD.tolerations[0]: it is `x`, and no mapping: "),
        ("{containers: [{AB}], nodeSelector: {a: 1}}", "9 POD.nodeSelector.a: it is `1`, and no text: "),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_pod(pod: str, said: str) -> None:
    found = told(f"{JOB}      {pod.replace('AB', 'name: a, image: b')}\n")
    assert len(found) == 1 and found[0].startswith(said.replace("POD", "spec.template.spec"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BATCH, "1 the job: has no spec, which its pods need: write spec"),
        (f"{BATCH}spec: 7", "3 spec: it is `7`, and has no template: write a mapping with template"),
        (f"{BATCH}spec:\n  template: [1]", "4 spec.template: it is a list, and no template of pods: "),
        (f"{BATCH}spec:\n  template: {{}}", "4 spec.template: has no spec, and a pod"),
        (f"{JOBSET} 7", "4 spec.replicatedJobs: it is `7`, and what starts pods is a list or"),
        (f"{JOBSET}\n  - name: a", "5 spec.replicatedJobs[0]: has no template, which its pods need: "),
        (f"{JOBSET}\n  - 7", "5 spec.replicatedJobs[0]: it is `7`, and has no template: "),
        (f"a: b\n---\n---\n{JOBSET}\n  - template: {{spec: {{template: {{spec: {{containers: [x]}}}}}}}}",
         "8 spec.replicatedJobs[0].template.spec.template.spec.containers[0]: it is `x`, and a"),
    ],
)  # fmt: skip
def test_what_is_wrong_on_the_way_to_pods(text: str, said: str) -> None:
    found = told(text)
    assert len(found) == 1 and found[0].startswith(said)


NEW = "{name: a, image: b, new: {c: [1]}, env: [{name: X}], resources: {limits: {cpu: 1.5, memory: 2Gi}}}"


@pytest.mark.parametrize(
    "text",
    [
        f"{JOB}      new: 7\n      containers: [{NEW}]\n",
        f"{JOBSET}\n",  # a JobSet may have none
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nspec: 7\n",  # its pods are elsewhere
        "apiVersion: example.com/v1\nkind: Job\nspec: 7\n",
        "a: b: c",
        "[" * 200,
        f"{BATCH}x: &a [*a]\n",
        f"{JOB}      containers: [&a {{env: &e [{'{}, ' * 200}]}}, {'*a, ' * 200}]",
        "just words",
        "",
    ],
)
def test_what_may_be_right_or_is_refused_elsewhere(text: str) -> None:
    assert told(text) == []


def test_of_many_faults_the_first_are_told() -> None:
    assert len(told(f"{JOB}      containers: [{'7, ' * 99}]")) == MOST
