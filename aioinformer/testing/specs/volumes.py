"""What must be true of the volumes of a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: In the order in which they are looked at.
# fmt: off
_SOURCES = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk",
    "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)
# fmt: on


def volume_causes(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with all the volumes of a pod's specification.

    Args:
        spec: of the pod.
        path: of the specification.
    """
    for index, volume in enumerate(spec.get("volumes") or ()):
        yield from _volume(volume, f"{path}.volumes[{index}]")


def _volume(volume: Mapping[str, Any], path: str) -> Iterator[Cause]:
    sources = [name for name in _SOURCES if volume.get(name) is not None]
    for second in sources[1:]:
        yield Cause.forbidden(f"{path}.{second}", "may not specify more than 1 volume type")
