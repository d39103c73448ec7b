"""Cells of configuration, storage, access and cluster resources."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.tables.cells import age, field, go_selector, human_duration, name, since

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from aioinformer.testing.admission.tables.cells import Cells

_ACCESS_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_OLD_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_STORAGE_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def fields(*paths: tuple[str, Any] | str) -> Cells:
    """Return the cells function for the columns name, some fields, and age.

    Args:
        paths: dotted paths, alone ("" if missing) or with the text for a missing value.
    """
    pairs = [(path, "") if isinstance(path, str) else path for path in paths]

    def cells(obj: Mapping[str, Any], now: datetime) -> list[Any]:
        return [name(obj), *(field(obj, path, default) for path, default in pairs), age(obj, now)]

    return cells


def count(path: str, *more: str) -> Cells:
    """Return the cells function for the columns name, total number of entries in some fields, and age."""

    def cells(obj: Mapping[str, Any], now: datetime) -> list[Any]:
        return [name(obj), sum(len(field(obj, each, ())) for each in (path, *more)), age(obj, now)]

    return cells


def _secret(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    return [name(obj), obj.get("type", "Opaque"), len(obj.get("data") or ()), age(obj, now)]


def _event(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    """Return the cells of an event of the core group or of events.k8s.io."""
    new = "regarding" in obj or "note" in obj
    first_field = "deprecatedFirstTimestamp" if new else "firstTimestamp"
    last_field = "deprecatedLastTimestamp" if new else "lastTimestamp"
    first = since(obj, first_field, now) if obj.get(first_field) else since(obj, "eventTime", now)
    last = since(obj, last_field, now) if obj.get(last_field) else first
    times = obj.get("deprecatedCount" if new else "count") or 1
    if obj.get("series"):
        last, times = since(obj, "series.lastObservedTime", now), field(obj, "series.count", 0)
    about = obj.get("regarding" if new else "involvedObject") or {}
    kind = about.get("kind", "").lower()
    source = obj.get("deprecatedSource" if new else "source") or {}
    component = source.get("component") or obj.get("reportingController") or obj.get("reportingComponent") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        str(obj.get("note" if new else "message") or "").strip(),
        first,
        times,
        name(obj),
    ]


def _binding(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    role = f"{field(obj, 'roleRef.kind', '')}/{field(obj, 'roleRef.name', '')}"
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.get("subjects") or ():
        account = subject.get("kind") == "ServiceAccount"
        shown = f"{subject.get('namespace', '')}/{subject['name']}" if account else subject["name"]
        subjects.setdefault(subject.get("kind", ""), []).append(shown)
    return [name(obj), role, age(obj, now), *(", ".join(names) for names in list(subjects.values())[:3])]


def _access_modes(modes: list[str]) -> str:
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in modes)


def _phase(obj: Mapping[str, Any]) -> str:
    return "Terminating" if field(obj, "metadata.deletionTimestamp") else str(field(obj, "status.phase", ""))


def _storage_class_name(obj: Mapping[str, Any]) -> str:
    annotations = field(obj, "metadata.annotations", {})
    return str(annotations.get(_OLD_STORAGE_CLASS) or field(obj, "spec.storageClassName", ""))


def _volume(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    claim = field(obj, "spec.claimRef")
    return [
        name(obj),
        field(obj, "spec.capacity.storage", "0"),
        _access_modes(field(obj, "spec.accessModes", [])),
        field(obj, "spec.persistentVolumeReclaimPolicy", "Retain"),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _storage_class_name(obj),
        field(obj, "spec.volumeAttributesClassName", "<unset>"),
        field(obj, "status.reason", ""),
        age(obj, now),
        field(obj, "spec.volumeMode", "Filesystem"),
    ]


def _claim(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    volume = field(obj, "spec.volumeName", "")
    return [
        name(obj),
        _phase(obj),
        volume,
        field(obj, "status.capacity.storage", "0") if volume else "",
        _access_modes(field(obj, "status.accessModes", [])) if volume else "",
        _storage_class_name(obj),
        field(obj, "spec.volumeAttributesClassName", "<unset>"),
        age(obj, now),
        field(obj, "spec.volumeMode", "Filesystem"),
    ]


def _storage_class(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    annotations = field(obj, "metadata.annotations", {})
    default = any(annotations.get(key) == "true" for key in _DEFAULT_STORAGE_CLASS)
    return [
        name(obj) + (" (default)" if default else ""),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _csi_driver(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    tokens = field(obj, "spec.tokenRequests")
    return [
        name(obj),
        field(obj, "spec.attachRequired", True),
        field(obj, "spec.podInfoOnMount", False),
        field(obj, "spec.storageCapacity", False),
        "<unset>" if tokens is None else ",".join(token.get("audience", "") for token in tokens),
        field(obj, "spec.requiresRepublish", False),
        ",".join(field(obj, "spec.volumeLifecycleModes", ["Persistent"])) or "<none>",
        age(obj, now),
    ]


def _quota(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    cells: dict[bool, list[str]] = {False: [], True: []}
    for resource, hard in sorted(field(obj, "status.hard", {}).items()):
        used = field(obj, "status.used", {}).get(resource, "0")
        cells[resource.startswith("limits.")].append(f"{resource}: {used}/{hard}")
    return [name(obj), ", ".join(cells[False]), ", ".join(cells[True]), age(obj, now)]


def _priority_class(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    policy = obj.get("preemptionPolicy") or "PreemptLowerPriority"
    return [name(obj), obj.get("value", 0), bool(obj.get("globalDefault")), age(obj, now), policy]


def _signing_request(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    kinds = {item.get("type") for item in field(obj, "status.conditions", [])}
    states = [next((kind for kind in ("Denied", "Approved") if kind in kinds), "Pending")]
    states += ["Failed"] if "Failed" in kinds else []
    states += ["Issued"] if field(obj, "status.certificate") else []
    seconds = field(obj, "spec.expirationSeconds")
    return [
        name(obj),
        age(obj, now),
        field(obj, "spec.signerName", "<none>"),
        field(obj, "spec.username", ""),
        "<none>" if seconds is None else human_duration(timedelta(seconds=seconds)),
        ",".join(states),
    ]


def _admission_policy(rules: str) -> Cells:
    def cells(obj: Mapping[str, Any], now: datetime) -> list[Any]:
        kind = field(obj, "spec.paramKind")
        shown = f"{kind['apiVersion']}/{kind['kind']}" if kind else "<unset>"
        return [name(obj), len(field(obj, f"spec.{rules}", [])), shown, age(obj, now)]

    return cells


def _admission_binding(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    reference, shown = field(obj, "spec.paramRef", {}), "<unset>"
    if reference.get("name"):
        shown = f"{reference.get('namespace') or '*'}/{reference['name']}"
    elif reference.get("selector") is not None:
        shown = go_selector(reference["selector"])
    return [name(obj), field(obj, "spec.policyName", ""), shown, age(obj, now)]


def _flow_schema(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    dangling = (item["status"] for item in field(obj, "status.conditions", []) if item.get("type") == "Dangling")
    return [
        name(obj),
        field(obj, "spec.priorityLevelConfiguration.name", ""),
        field(obj, "spec.matchingPrecedence", 1000),
        field(obj, "spec.distinguisherMethod.type", "<none>"),
        age(obj, now),
        next(dangling, "?"),
    ]


def _component_status(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    healthy: Mapping[str, Any] = next((c for c in obj.get("conditions") or () if c.get("type") == "Healthy"), {})
    state = "Unknown" if not healthy else "Healthy" if healthy.get("status") == "True" else "Unhealthy"
    return [name(obj), state, healthy.get("message", ""), healthy.get("error", "")]


def _resource_claim(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    states = ["deleted"] if field(obj, "metadata.deletionTimestamp") else []
    if field(obj, "status.allocation"):
        states += ["allocated", "reserved"] if field(obj, "status.reservedFor") else ["allocated"]
    return [name(obj), ",".join(states) or "pending", age(obj, now)]


def _api_service(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    service = field(obj, "spec.service")
    conditions = field(obj, "status.conditions", [])
    available: Mapping[str, Any] = next((item for item in conditions if item.get("type") == "Available"), {})
    status = available.get("status", "Unknown")
    return [
        name(obj),
        f"{service['namespace']}/{service['name']}" if service else "Local",
        status if status == "True" or not available.get("reason") else f"{status} ({available['reason']})",
        age(obj, now),
    ]


_QUEUING = "spec.limited.limitResponse.queuing"
CLUSTER_CELLS: Mapping[str, Cells] = {
    "apiservices.apiregistration.k8s.io": _api_service,
    "certificatesigningrequests.certificates.k8s.io": _signing_request,
    "clusterrolebindings.rbac.authorization.k8s.io": _binding,
    "componentstatuses": _component_status,
    "configmaps": count("data", "binaryData"),
    "csidrivers.storage.k8s.io": _csi_driver,
    "csinodes.storage.k8s.io": count("spec.drivers"),
    "deviceclasses.resource.k8s.io": fields(),
    "events": _event,
    "events.events.k8s.io": _event,
    "flowschemas.flowcontrol.apiserver.k8s.io": _flow_schema,
    "leasecandidates.coordination.k8s.io": fields("spec.leaseName", "spec.binaryVersion", "spec.emulationVersion"),
    "leases.coordination.k8s.io": fields("spec.holderIdentity"),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": _admission_policy("mutations"),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _admission_binding,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": count("webhooks"),
    "namespaces": fields("status.phase"),
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": fields(
        "spec.type",
        ("spec.limited.nominalConcurrencyShares", "<none>"),
        *((f"{_QUEUING}.{key}", "<none>") for key in ("queues", "handSize", "queueLengthLimit")),
    ),
    "resourceclaims.resource.k8s.io": _resource_claim,
    "resourceslices.resource.k8s.io": fields("spec.nodeName", "spec.driver", "spec.pool.name"),
    "resourceclaimtemplates.resource.k8s.io": fields(),
    "resourcequotas": _quota,
    "rolebindings.rbac.authorization.k8s.io": _binding,
    "runtimeclasses.node.k8s.io": fields("handler"),
    "secrets": _secret,
    "serviceaccounts": fields(),
    "storageclasses.storage.k8s.io": _storage_class,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _admission_policy("validations"),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _admission_binding,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": count("webhooks"),
    "volumeattachments.storage.k8s.io": fields(
        "spec.attacher", "spec.source.persistentVolumeName", "spec.nodeName", ("status.attached", False)
    ),
    "volumeattributesclasses.storage.k8s.io": fields("driverName"),
}
"""By group resource."""
