"""Kubernetes' Pod Security Standards of release 1.36, as a judge of pods that has nothing of the package.

Written from the tables of the Kubernetes documentation, "Pod Security Standards", and compared with the
test data of kubernetes/pod-security-admission (test/testdata, v1.36): each pod there is judged as it says.
That data is not part of this repository; `POD_SECURITY_TESTDATA` names a folder with it for the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

Pod = dict[str, Any]
Level = Literal["baseline", "restricted"]

CAPABILITIES = {
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
    *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
}
SYSCTLS = {
    *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start"),
    *("net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports"),
    *("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl"),
    *("net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
}
SELINUX = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
VOLUMES = {
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected"),
    "secret",
}
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


def violations(pod: Pod, level: Level) -> list[str]:
    """What the level forbids in a pod (or in the template of one); empty if it lets the pod in."""
    found = list(_baseline(pod))
    return sorted({*found, *(_restricted(pod) if level == "restricted" else ())})


def _containers(spec: Pod) -> list[dict[str, Any]]:
    return [
        one for key in ("initContainers", "containers", "ephemeralContainers") for one in spec.get(key) or []
    ]


def _contexts(spec: Pod) -> list[dict[str, Any]]:
    return [
        spec.get("securityContext") or {},
        *(one.get("securityContext") or {} for one in _containers(spec)),
    ]


def _baseline(pod: Pod) -> Iterator[str]:
    spec = pod["spec"]
    user_namespace = spec.get("hostUsers") is False
    yield from (key for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key))
    if any("hostPath" in volume for volume in spec.get("volumes") or []):
        yield "hostPath"
    profiles = (pod.get("metadata") or {}).get("annotations") or {}
    for key, value in profiles.items():
        if key.startswith(_APPARMOR) and value != "runtime/default" and not value.startswith("localhost/"):
            yield "AppArmor"
    for context in _contexts(spec):
        if (context.get("windowsOptions") or {}).get("hostProcess"):
            yield "hostProcess"
        selinux = context.get("seLinuxOptions") or {}
        if selinux.get("type", "") not in SELINUX or selinux.get("user") or selinux.get("role"):
            yield "SELinux"
        if (context.get("seccompProfile") or {}).get("type") == "Unconfined":
            yield "seccomp"
        if (context.get("appArmorProfile") or {}).get("type") == "Unconfined":
            yield "AppArmor"
        if any(one["name"] not in SYSCTLS for one in context.get("sysctls") or []):
            yield "sysctls"
    for container in _containers(spec):
        context = container.get("securityContext") or {}
        if context.get("privileged"):
            yield "privileged"
        if not {*((context.get("capabilities") or {}).get("add") or [])} <= CAPABILITIES:
            yield "capabilities"
        if any(port.get("hostPort") for port in container.get("ports") or []):
            yield "hostPort"
        if context.get("procMount", "Default") != "Default" and not user_namespace:
            yield "procMount"
        lifecycle = container.get("lifecycle") or {}
        handlers = [container.get(f"{kind}Probe") for kind in ("liveness", "readiness", "startup")]
        for handler in (*handlers, lifecycle.get("postStart"), lifecycle.get("preStop")):
            if any(((handler or {}).get(kind) or {}).get("host") for kind in ("httpGet", "tcpSocket")):
                yield "host of a probe"


def _restricted(pod: Pod) -> Iterator[str]:
    spec = pod["spec"]
    user_namespace = spec.get("hostUsers") is False
    windows = (spec.get("os") or {}).get("name") == "windows"
    of_pod = spec.get("securityContext") or {}
    for volume in spec.get("volumes") or []:
        if not {*volume} - {"name"} <= VOLUMES:
            yield "volumes"
    for context in _contexts(spec):
        if not user_namespace and context.get("runAsUser") == 0:
            yield "runAsUser"
        if not user_namespace and context.get("runAsNonRoot") is False:
            yield "runAsNonRoot"
        if context.get("procMount", "Default") != "Default":
            yield "procMount"
    for container in _containers(spec):
        context = container.get("securityContext") or {}
        if not user_namespace and context.get("runAsNonRoot", of_pod.get("runAsNonRoot")) is not True:
            yield "runAsNonRoot"
        if windows:
            continue
        if context.get("allowPrivilegeEscalation") is not False:
            yield "allowPrivilegeEscalation"
        capabilities = context.get("capabilities") or {}
        if "ALL" not in (capabilities.get("drop") or []):
            yield "capabilities"
        if not {*(capabilities.get("add") or [])} <= {"NET_BIND_SERVICE"}:
            yield "capabilities"
        profile = context.get("seccompProfile") or of_pod.get("seccompProfile") or {}
        if profile.get("type") not in ("RuntimeDefault", "Localhost"):
            yield "seccomp"
