"""The pod spec as a Go struct, in which the API shows forbidden changes.

Volume sources of clouds and storage systems, and claim templates, are shown as in JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.go_structs import go_struct

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = {"Name": ""}
_PAIR = {"Name": "", "Value": ""}
_KEYS = {"Items": [{"Key": "", "Path": "", "Mode": None}]}
_MODE = {"DefaultMode": None}
_OPTIONAL = {"Optional": None}
_ONE_KEY = {"Name": "", "Key": "", **_OPTIONAL}
_PROFILE = {"Type": "", "LocalhostProfile": None}
_FIELD = {"APIVersion": "", "FieldPath": ""}
_RESOURCE = {"ContainerName": "", "Resource": "", "Divisor": "0"}
_FILES = {"Items": [{"Path": "", "FieldRef": (_FIELD,), "ResourceFieldRef": (_RESOURCE,), "Mode": None}]}

_ISCSI = {
    "TargetPortal": "",
    "IQN": "",
    "Lun": 0,
    "ISCSIInterface": "",
    "FSType": "",
    "ReadOnly": False,
    "Portals": None,
    "DiscoveryCHAPAuth": False,
    "SessionCHAPAuth": False,
    "SecretRef": (_NAME,),
    "InitiatorName": None,
}
_PROJECTION = {
    "Secret": ({"Name": "", **_KEYS, **_OPTIONAL},),
    "DownwardAPI": (_FILES,),
    "ConfigMap": ({"Name": "", **_KEYS, **_OPTIONAL},),
    "ServiceAccountToken": ({"Audience": "", "ExpirationSeconds": 0, "Path": ""},),
    "ClusterTrustBundle": None,
    "PodCertificate": None,
}
_DRIVER = {
    "Driver": "",
    "ReadOnly": None,
    "FSType": None,
    "VolumeAttributes": None,
    "NodePublishSecretRef": (_NAME,),
}
_VOLUME = {
    "Name": "",
    "HostPath": ({"Path": "", "Type": None},),
    "EmptyDir": ({"Medium": "", "SizeLimit": None},),
    **dict.fromkeys(("GCEPersistentDisk", "AWSElasticBlockStore", "GitRepo")),
    "Secret": ({"SecretName": "", **_KEYS, **_MODE, **_OPTIONAL},),
    "NFS": ({"Server": "", "Path": "", "ReadOnly": False},),
    "ISCSI": (_ISCSI,),
    "Glusterfs": None,
    "PersistentVolumeClaim": ({"ClaimName": "", "ReadOnly": False},),
    **dict.fromkeys(("RBD", "Quobyte", "FlexVolume", "Cinder", "CephFS", "Flocker")),
    "DownwardAPI": ({**_FILES, **_MODE},),
    **dict.fromkeys(("FC", "AzureFile")),
    "ConfigMap": ({"Name": "", **_KEYS, **_MODE, **_OPTIONAL},),
    **dict.fromkeys(("VsphereVolume", "AzureDisk", "PhotonPersistentDisk")),
    "Projected": ({"Sources": [_PROJECTION], **_MODE},),
    **dict.fromkeys(("PortworxVolume", "ScaleIO", "StorageOS")),
    "CSI": (_DRIVER,),
    "Ephemeral": ({"VolumeClaimTemplate": None},),
    "Image": ({"Reference": "", "PullPolicy": ""},),
}

_VALUE = {
    "FieldRef": (_FIELD,),
    "ResourceFieldRef": (_RESOURCE,),
    "ConfigMapKeyRef": (_ONE_KEY,),
    "SecretKeyRef": (_ONE_KEY,),
    "FileKeyRef": ({"VolumeName": "", "Path": "", "Key": "", **_OPTIONAL},),
}
_RESOURCES = {"Limits": None, "Requests": None, "Claims": [{"Name": "", "Request": ""}]}
_MOUNT = {
    "Name": "",
    "ReadOnly": False,
    "RecursiveReadOnly": None,
    "MountPath": "",
    "SubPath": "",
    "MountPropagation": None,
    "SubPathExpr": "",
}
_ACTION = {
    "Exec": ({"Command": None},),
    "HTTPGet": ({"Path": "", "Port": 0, "Host": "", "Scheme": "", "HTTPHeaders": [_PAIR]},),
    "TCPSocket": ({"Port": 0, "Host": ""},),
}
_PROBE = {
    **_ACTION,
    "GRPC": ({"Port": 0, "Service": None},),
    "InitialDelaySeconds": 0,
    "TimeoutSeconds": 0,
    "PeriodSeconds": 0,
    "SuccessThreshold": 0,
    "FailureThreshold": 0,
    "TerminationGracePeriodSeconds": None,
}
_HOOK = {**_ACTION, "Sleep": ({"Seconds": 0},)}
_SE_LINUX = {"User": "", "Role": "", "Type": "", "Level": ""}
_WINDOWS = dict.fromkeys(("GMSACredentialSpecName", "GMSACredentialSpec", "RunAsUserName", "HostProcess"))
_SHARED_CONTEXT = {
    "SELinuxOptions": (_SE_LINUX,),
    "WindowsOptions": (_WINDOWS,),
    **dict.fromkeys(("RunAsUser", "RunAsGroup", "RunAsNonRoot")),
}
_CONTEXT = {
    "Capabilities": ({"Add": None, "Drop": None},),
    "Privileged": None,
    **_SHARED_CONTEXT,
    **dict.fromkeys(("ReadOnlyRootFilesystem", "AllowPrivilegeEscalation", "ProcMount")),
    "SeccompProfile": (_PROFILE,),
    "AppArmorProfile": (_PROFILE,),
}
_CONTAINER = {
    "Name": "",
    "Image": "",
    **dict.fromkeys(("Command", "Args")),
    "WorkingDir": "",
    "Ports": [{"Name": "", "HostPort": 0, "ContainerPort": 0, "Protocol": "", "HostIP": ""}],
    "EnvFrom": [{"Prefix": "", **dict.fromkeys(("ConfigMapRef", "SecretRef"), ({"Name": "", **_OPTIONAL},))}],
    "Env": [{"Name": "", "Value": "", "ValueFrom": (_VALUE,)}],
    "Resources": _RESOURCES,
    "ResizePolicy": [{"ResourceName": "", "RestartPolicy": ""}],
    "RestartPolicy": None,
    "RestartPolicyRules": [{"Action": "", "ExitCodes": ({"Operator": "", "Values": None},)}],
    "VolumeMounts": [_MOUNT],
    "VolumeDevices": [{"Name": "", "DevicePath": ""}],
    **dict.fromkeys(("LivenessProbe", "ReadinessProbe", "StartupProbe"), (_PROBE,)),
    "Lifecycle": ({"PostStart": (_HOOK,), "PreStop": (_HOOK,), "StopSignal": None},),
    **dict.fromkeys(("TerminationMessagePath", "TerminationMessagePolicy", "ImagePullPolicy"), ""),
    "SecurityContext": (_CONTEXT,),
    **dict.fromkeys(("Stdin", "StdinOnce", "TTY"), False),
}
EPHEMERAL_CONTAINER = {**_CONTAINER, "TargetContainerName": ""}

_POD_CONTEXT = {
    **dict.fromkeys(("HostNetwork", "HostPID", "HostIPC"), False),
    **dict.fromkeys(("ShareProcessNamespace", "HostUsers")),
    **_SHARED_CONTEXT,
    **dict.fromkeys(("SupplementalGroups", "SupplementalGroupsPolicy", "FSGroup", "FSGroupChangePolicy")),
    "Sysctls": [_PAIR],
    "SeccompProfile": (_PROFILE,),
    "AppArmorProfile": (_PROFILE,),
    "SELinuxChangePolicy": None,
}
_EXPRESSION = {"Key": "", "Operator": "", "Values": None}
NODE_TERM = {"MatchExpressions": [_EXPRESSION], "MatchFields": [_EXPRESSION]}
_POD_TERM = {
    "LabelSelector": None,
    "Namespaces": None,
    "TopologyKey": "",
    **dict.fromkeys(("NamespaceSelector", "MatchLabelKeys", "MismatchLabelKeys")),
}
_REQUIRED, _PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("Required", "Preferred"))
_POD_AFFINITY = {_REQUIRED: [_POD_TERM], _PREFERRED: [{"Weight": 0, "PodAffinityTerm": _POD_TERM}]}
_AFFINITY = {
    "NodeAffinity": (
        {
            _REQUIRED: ({"NodeSelectorTerms": [NODE_TERM]},),
            _PREFERRED: [{"Weight": 0, "Preference": NODE_TERM}],
        },
    ),
    "PodAffinity": (_POD_AFFINITY,),
    "PodAntiAffinity": (_POD_AFFINITY,),
}
_SPREAD = {
    "MaxSkew": 0,
    **dict.fromkeys(("TopologyKey", "WhenUnsatisfiable"), ""),
    **dict.fromkeys(("LabelSelector", "MinDomains", "NodeAffinityPolicy", "NodeTaintsPolicy", "MatchLabelKeys")),
}
_POD_SPEC = {
    "Volumes": [_VOLUME],
    "InitContainers": [_CONTAINER],
    "Containers": [_CONTAINER],
    "EphemeralContainers": [EPHEMERAL_CONTAINER],
    "RestartPolicy": "",
    **dict.fromkeys(("TerminationGracePeriodSeconds", "ActiveDeadlineSeconds")),
    "DNSPolicy": "",
    "NodeSelector": None,
    "ServiceAccountName": "",
    "AutomountServiceAccountToken": None,
    "NodeName": "",
    "SecurityContext": (_POD_CONTEXT,),
    "ImagePullSecrets": [_NAME],
    **dict.fromkeys(("Hostname", "Subdomain"), ""),
    "SetHostnameAsFQDN": None,
    "Affinity": (_AFFINITY,),
    "SchedulerName": "",
    "Tolerations": [{"Key": "", "Operator": "", "Value": "", "Effect": "", "TolerationSeconds": None}],
    "HostAliases": [{"IP": "", "Hostnames": None}],
    "PriorityClassName": "",
    **dict.fromkeys(("Priority", "PreemptionPolicy")),
    "DNSConfig": ({"Nameservers": None, "Searches": None, "Options": [{"Name": "", "Value": None}]},),
    "ReadinessGates": [{"ConditionType": ""}],
    **dict.fromkeys(("RuntimeClassName", "Overhead", "EnableServiceLinks")),
    "TopologySpreadConstraints": [_SPREAD],
    "OS": (_NAME,),
    "SchedulingGates": [_NAME],
    "ResourceClaims": [{"Name": "", "ResourceClaimName": None, "ResourceClaimTemplateName": None}],
    "Resources": (_RESOURCES,),
    "HostnameOverride": None,
    "SchedulingGroup": ({"PodGroupName": None},),
}
#: Fields that Go keeps in the security context.
_MOVED_TO_CONTEXT = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
_METADATA = ("name", "generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers")


def go_pod_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod spec as a Go struct with all fields."""
    context = (spec.get("securityContext") or {}) | {name: spec[name] for name in _MOVED_TO_CONTEXT if name in spec}
    return go_struct({**spec, "securityContext": context}, _POD_SPEC)


def go_template(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod template: the non-empty fields of its metadata, and its spec as a Go struct."""
    metadata = template.get("metadata") or {}
    quoted = {name: _sorted(metadata[name]) for name in _METADATA if metadata.get(name)}
    return {**quoted, "Spec": go_pod_spec(template.get("spec") or {})}


def _sorted(value: Any) -> Any:
    return dict(sorted(value.items())) if isinstance(value, dict) else value
