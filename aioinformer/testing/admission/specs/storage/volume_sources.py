"""Validation of each kind of volume source.

Sources of clouds and storage systems that CSI drivers have replaced are only checked for required fields.
"""

from __future__ import annotations

import re
from functools import partial
from posixpath import isabs
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.storage.claims import claim_spec_causes
from aioinformer.testing.admission.specs.storage.projected_volumes import downward_file, key_paths, projected
from aioinformer.testing.admission.specs.terms.parts import between, format_causes, one_of, required
from aioinformer.testing.admission.specs.terms.paths import descending_path, mode, no_parent_steps
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import labelling_causes, subdomain_faults
from aioinformer.testing.schemas.quantities import amount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Source = Mapping[str, Any]
    Check = Callable[[Source, str], Iterator[Cause]]

_HOST_PATHS = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_LONGEST_DRIVER = 63
_INITIATORS = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([a-zA-Z0-9.-]+)(:[^,;*&$|\s]+)$"),
    "eui": re.compile(r"^eui.[a-zA-Z0-9]{16}$"),
    "naa": re.compile(r"^naa.[a-zA-Z0-9]{32}$"),
}


def _with_required(*fields: str) -> Check:
    return lambda source, path: required(source, path, *fields)


def _empty_dir(source: Source, path: str) -> Iterator[Cause]:
    if source.get("sizeLimit") is not None and amount(source["sizeLimit"]) < 0:
        yield Cause.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _host_path(source: Source, path: str) -> Iterator[Cause]:
    if not source.get("path"):
        yield Cause.required(f"{path}.path")
        return
    yield from no_parent_steps(source["path"], f"{path}.path")
    yield from one_of(source.get("type", ""), f"{path}.type", _HOST_PATHS)


def _git_repo(source: Source, path: str) -> Iterator[Cause]:
    yield from required(source, path, "repository")
    yield from descending_path(source.get("directory", ""), f"{path}.directory")


def _disk(source: Source, path: str, named: str) -> Iterator[Cause]:
    yield from required(source, path, named)
    if not 0 <= (partition := source.get("partition", 0)) <= 255:
        yield Cause.invalid(f"{path}.partition", str(partition), "must be between 1 and 255, inclusive")


def _google_disk(source: Source, path: str) -> Iterator[Cause]:
    return _disk(source, f"{path.rpartition('.')[0]}.persistentDisk", "pdName")


def _keys(source: Source, path: str, named: str) -> Iterator[Cause]:
    yield from required(source, path, named)
    yield from mode(source.get("defaultMode"), f"{path}.defaultMode")
    yield from key_paths(source.get("items") or (), f"{path}.items")


def _nfs(source: Source, path: str) -> Iterator[Cause]:
    yield from required(source, path, "server", "path")
    if not isabs(place := source.get("path", "")):
        yield Cause.invalid(f"{path}.path", quote(place), "must be an absolute path")


def _iscsi(source: Source, path: str) -> Iterator[Cause]:
    yield from required(source, path, "targetPortal", "iqn")
    if source.get("iqn"):
        yield from _initiator(source["iqn"], f"{path}.iqn")
    yield from between(source.get("lun"), f"{path}.lun", 0, 255)
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        yield Cause.required(f"{path}.secretRef")
    if source.get("initiatorName") is not None:
        yield from _initiator(source["initiatorName"], f"{path}.initiatorname")


def _initiator(name: str, path: str) -> Iterator[Cause]:
    form = _INITIATORS.get(name[:3])
    if form is None:
        yield Cause.invalid(path, quote(name), "must be valid format starting with iqn, eui, or naa")
    elif not form.search(name):
        yield Cause.invalid(path, quote(name), "must be valid format")


def _downward(source: Source, path: str) -> Iterator[Cause]:
    yield from mode(source.get("defaultMode"), f"{path}.defaultMode")
    for item in source.get("items") or ():
        yield from downward_file(item, path)


def _fibre_channel(source: Source, path: str) -> Iterator[Cause]:
    targets, ids = source.get("targetWWNs"), source.get("wwids")
    if not targets and not ids:
        yield Cause.required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both")
    if targets and ids:
        why = "targetWWNs and wwids can not be specified simultaneously"
        yield Cause.invalid(f"{path}.targetWWNs", quote(targets), why)
    if targets and source.get("lun") is None:
        yield Cause.required(f"{path}.lun", "lun is required if targetWWNs is specified")
    elif targets:
        yield from between(source["lun"], f"{path}.lun", 0, 255)


def _driver(source: Source, path: str) -> Iterator[Cause]:
    yield from driver_name(source.get("driver", ""), f"{path}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is not None and not secret.get("name"):
        yield Cause.required(f"{path}.nodePublishSecretRef.name")
    elif secret is not None:
        yield from format_causes(secret["name"], f"{path}.name", subdomain_faults)


def driver_name(name: str, path: str) -> Iterator[Cause]:
    """Check the name of a storage driver."""
    if not name:
        yield Cause.required(path)
        return
    if len(name) > _LONGEST_DRIVER:
        yield Cause.too_long(path, _LONGEST_DRIVER)
    yield from (Cause.invalid(path, quote(name), why) for why in subdomain_faults(name.lower()))


def _ephemeral(source: Source, path: str) -> Iterator[Cause]:
    template = source.get("volumeClaimTemplate")
    here = f"{path}.volumeClaimTemplate"
    if template is None:
        yield Cause.required(here)
        return
    metadata = template.get("metadata") or {}
    for field in ("annotations", "labels"):
        yield from labelling_causes({field: metadata.get(field)}, f"{here}.metadata")
    for field in metadata:
        if field not in ("labels", "annotations") and metadata[field]:
            yield Cause.forbidden(f"{here}.metadata.{field}", "cannot be set")
    yield from claim_spec_causes(template.get("spec") or {}, f"{here}.spec")


def _image(source: Source, path: str) -> Iterator[Cause]:
    yield from one_of(source.get("pullPolicy", ""), f"{path}.pullPolicy", _PULL_POLICIES)


#: By name, in the order in which the API checks them.
SOURCES: Mapping[str, Check] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _google_disk,
    "awsElasticBlockStore": partial(_disk, named="volumeID"),
    "secret": partial(_keys, named="secretName"),
    "nfs": _nfs,
    "iscsi": _iscsi,
    "glusterfs": _with_required("endpoints", "path"),
    "flocker": _with_required(),
    "persistentVolumeClaim": _with_required("claimName"),
    "rbd": _with_required("monitors", "image"),
    "cinder": _with_required("volumeID"),
    "cephfs": _with_required("monitors"),
    "quobyte": _with_required("registry", "volume"),
    "downwardAPI": _downward,
    "fc": _fibre_channel,
    "flexVolume": _with_required("driver"),
    "configMap": partial(_keys, named="name"),
    "azureFile": _with_required("secretName", "shareName"),
    "vsphereVolume": _with_required("volumePath"),
    "photonPersistentDisk": _with_required("pdID"),
    "portworxVolume": _with_required("volumeID"),
    "azureDisk": _with_required("diskName", "diskURI"),
    "storageos": _with_required("volumeName"),
    "projected": projected,
    "scaleIO": _with_required("gateway", "system", "volumeName"),
    "csi": _driver,
    "ephemeral": _ephemeral,
    "image": _image,
}
