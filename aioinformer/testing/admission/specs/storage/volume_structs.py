"""The sources of persistent volumes as Go structs, in which the API shows differences.

Removed sources (Ceph, GlusterFS, Quobyte and the like) are shown as in JSON.
"""

from __future__ import annotations

_SECRET = ({"Name": "", "Namespace": ""},)
_READ_ONLY = {"FSType": "", "ReadOnly": False}
_DISK = {"FSType": "", "Partition": 0, "ReadOnly": False}
_EXPRESSION = {"Key": "", "Operator": "", "Values": None}

SOURCE = {
    "GCEPersistentDisk": ({"PDName": "", **_DISK},),
    "AWSElasticBlockStore": ({"VolumeID": "", **_DISK},),
    "HostPath": ({"Path": "", "Type": None},),
    "Glusterfs": None,
    "NFS": ({"Server": "", "Path": "", "ReadOnly": False},),
    "RBD": None,
    "Quobyte": None,
    "ISCSI": (
        {
            "TargetPortal": "",
            "IQN": "",
            "Lun": 0,
            "ISCSIInterface": "",
            **_READ_ONLY,
            "Portals": None,
            "DiscoveryCHAPAuth": False,
            "SessionCHAPAuth": False,
            "SecretRef": _SECRET,
            "InitiatorName": None,
        },
    ),
    "FlexVolume": ({"Driver": "", "FSType": "", "SecretRef": _SECRET, "ReadOnly": False, "Options": None},),
    "Cinder": ({"VolumeID": "", **_READ_ONLY, "SecretRef": _SECRET},),
    "CephFS": None,
    "FC": ({"TargetWWNs": None, "Lun": None, **_READ_ONLY, "WWIDs": None},),
    "Flocker": ({"DatasetName": "", "DatasetUUID": ""},),
    "AzureFile": ({"SecretName": "", "ShareName": "", "ReadOnly": False, "SecretNamespace": None},),
    "VsphereVolume": ({"VolumePath": "", "FSType": "", "StoragePolicyName": "", "StoragePolicyID": ""},),
    "AzureDisk": (
        {"DiskName": "", "DataDiskURI": "", "CachingMode": None, "FSType": None, "ReadOnly": None, "Kind": None},
    ),
    "PhotonPersistentDisk": ({"PdID": "", "FSType": ""},),
    "PortworxVolume": ({"VolumeID": "", **_READ_ONLY},),
    "ScaleIO": None,
    "Local": ({"Path": "", "FSType": None},),
    "StorageOS": None,
    "CSI": (
        {
            "Driver": "",
            "VolumeHandle": "",
            "ReadOnly": False,
            "FSType": "",
            "VolumeAttributes": None,
            "ControllerPublishSecretRef": _SECRET,
            "NodeStageSecretRef": _SECRET,
            "NodePublishSecretRef": _SECRET,
            "ControllerExpandSecretRef": _SECRET,
            "NodeExpandSecretRef": _SECRET,
        },
    ),
}
NODE_AFFINITY = {
    "Required": ({"NodeSelectorTerms": [{"MatchExpressions": [_EXPRESSION], "MatchFields": [_EXPRESSION]}]},)
}
