"""Small definitions with the features of real ones, and the classes that say the same.

Each schema has fields of a definition that its project publishes: names, types, required fields, bounds, patterns,
formats, enumerations, defaults, list and map types and rules, without descriptions. A type of the API is there as
controller-gen writes it.
"""

from __future__ import annotations

import datetime  # noqa: TC003 - of annotations that are read
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import yaml
from msgspec import UNSET, Meta, UnsetType

from aioinformer.crds import (
    INT32,
    INT64,
    KEEP_UNKNOWN,
    LIST_ATOMIC,
    MAP_ATOMIC,
    EmbeddedObject,
    IntOrString,
    list_map,
    rule,
    rules,
)
from aioinformer.models import Quantity, autoscaling_v2, core_v1, meta_v1

_DURATION = r"^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"
_GO_DURATION = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"
_DOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_QUANTITY = (
    "anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true, pattern: '"
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
    r"([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$'"
)

#: What `$NAME` stands for in the schemas.
_PARTS = {
    "QUANTITY": f"{{{_QUANTITY}}}",
    "STORAGE": f"{{default: 10Gi, {_QUANTITY}}}",
    "INT_OR_STRING": "{anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true}",
    "TEXTS": "{type: array, items: {type: string}}",
    "TEXT": "{type: string}",
    "BOOL": "{type: boolean}",
    "MAP": "{type: object, additionalProperties: {type: string}}",
    "INT32": "{type: integer, format: int32}",
    "INT64": "{type: integer, format: int64}",
    "LABEL_SELECTOR": (
        "{type: object, x-kubernetes-map-type: atomic, properties: {"
        "matchLabels: {type: object, additionalProperties: {type: string}}, "
        "matchExpressions: {type: array, x-kubernetes-list-type: atomic, items: {"
        "type: object, required: [key, operator], properties: {key: {type: string}, operator: {type: string}, "
        "values: {type: array, x-kubernetes-list-type: atomic, items: {type: string}}}}}}}"
    ),
    "SECRET_KEY": (
        "{type: object, x-kubernetes-map-type: atomic, required: [key], properties: {"
        'key: {type: string}, name: {type: string, default: ""}, optional: {type: boolean}}}'
    ),
    "LOCAL_REFERENCE": (
        '{type: object, x-kubernetes-map-type: atomic, properties: {name: {type: string, default: ""}}}'
    ),
    "DURATION": f"{{type: string, pattern: '{_DURATION}'}}",
    "GO_DURATION": f"{{type: string, pattern: '{_GO_DURATION}'}}",
}


class RealDefinition(NamedTuple):
    """A definition, and the class that says the same.

    Attributes:
        schema: of the spec.
        cls: the class of the spec.
        sample: a valid spec with most of the fields.
    """

    schema: dict[str, Any]
    cls: Any
    sample: dict[str, Any]


#: By project and kind.
DEFINITIONS: dict[str, RealDefinition] = {}


def _real(name: str, cls: Any, schema: str, sample: str) -> None:
    """Add a definition: its schema and a valid spec, as YAML."""
    for part in sorted(_PARTS, key=len, reverse=True):
        schema = schema.replace(f"${part}", _PARTS[part])
    DEFINITIONS[name] = RealDefinition(yaml.safe_load(schema), cls, yaml.safe_load(sample))


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a spec."""


class IssuerRef(_Part, frozen=True):
    name: str
    kind: str | None = None
    group: str | None = None


class PrivateKey(_Part, frozen=True):
    algorithm: Literal["RSA", "ECDSA", "Ed25519"] | None = None
    rotation_policy: Literal["Never", "Always"] | None = None
    size: int | None = None


class SecretTemplate(_Part, frozen=True):
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class Certificate(_Part, frozen=True):
    issuer_ref: IssuerRef
    secret_name: str
    dns_names: list[str] | None = None
    duration: str | None = None
    is_ca: bool | None = msgspec.field(name="isCA", default=None)
    private_key: PrivateKey | None = None
    revision_history_limit: Annotated[int, INT32, Meta(ge=1)] | None = None
    secret_template: SecretTemplate | None = None
    usages: list[Literal["signing", "digital signature", "server auth", "client auth"]] | None = None


_real(
    "cert-manager Certificate",
    Certificate,
    """
    type: object
    required: [issuerRef, secretName]
    properties:
      dnsNames: $TEXTS
      duration: $TEXT
      isCA: $BOOL
      issuerRef: {type: object, required: [name], properties: {name: $TEXT, kind: $TEXT, group: $TEXT}}
      privateKey:
        type: object
        properties:
          algorithm: {type: string, enum: [RSA, ECDSA, Ed25519]}
          rotationPolicy: {type: string, enum: [Never, Always]}
          size: {type: integer}
      revisionHistoryLimit: {type: integer, format: int32, minimum: 1}
      secretName: $TEXT
      secretTemplate: {type: object, properties: {annotations: $MAP, labels: $MAP}}
      usages: {type: array, items: {type: string, enum: [signing, digital signature, server auth, client auth]}}
    """,
    """
    dnsNames: [example.com]
    duration: 2160h
    isCA: false
    issuerRef: {name: ca, kind: ClusterIssuer}
    privateKey: {algorithm: ECDSA, rotationPolicy: Always, size: 256}
    revisionHistoryLimit: 3
    secretName: web-tls
    secretTemplate: {labels: {app: web}}
    usages: [server auth]
    """,
)


class AcmeServer(_Part, frozen=True):
    private_key_secret_ref: core_v1.SecretKeySelector
    server: str
    ca_bundle: Annotated[str, Meta(pattern="^[A-Za-z0-9+/]*={0,2}$")] | None = None
    email: str | None = None
    skip_tls_verify: bool | None = msgspec.field(name="skipTLSVerify", default=None)


class Issuer(_Part, frozen=True):
    acme: AcmeServer | None = None
    self_signed: dict[str, list[str]] | None = None


_real(
    "cert-manager Issuer",
    Issuer,
    """
    type: object
    properties:
      acme:
        type: object
        required: [privateKeySecretRef, server]
        properties:
          caBundle: {type: string, pattern: '^[A-Za-z0-9+/]*={0,2}$'}
          email: $TEXT
          privateKeySecretRef: $SECRET_KEY
          server: $TEXT
          skipTLSVerify: $BOOL
      selfSigned: {type: object, additionalProperties: $TEXTS}
    """,
    """
    acme:
      caBundle: QUJD
      email: a@example.com
      privateKeySecretRef: {name: account, key: tls.key}
      server: https://acme.example.com
      skipTLSVerify: false
    selfSigned: {crlDistributionPoints: [http://example.com]}
    """,
)


class Relabeling(_Part, frozen=True):
    action: Literal["replace", "Replace", "keep", "Keep", "drop", "Drop", "labelmap", "labeldrop"] = "replace"
    modulus: Annotated[int, INT64] | None = None
    regex: str | None = None
    replacement: str | None = None
    source_labels: list[Annotated[str, Meta(pattern="^[a-zA-Z_][a-zA-Z0-9_]*$")]] | None = None


class Endpoint(_Part, frozen=True):
    basic_auth: core_v1.SecretKeySelector | None = None
    honor_labels: bool | None = None
    interval: Annotated[str, Meta(pattern=_DURATION)] | None = None
    params: dict[str, list[str]] | None = None
    port: str | None = None
    relabelings: list[Relabeling] | None = None
    scheme: Literal["http", "https"] | None = None
    target_port: IntOrString | None = None


class NamespaceSelector(_Part, frozen=True):
    any: bool | None = None
    match_names: list[str] | None = None


class ServiceMonitor(_Part, frozen=True):
    endpoints: list[Endpoint]
    selector: meta_v1.LabelSelector
    namespace_selector: NamespaceSelector | None = None
    sample_limit: Annotated[int, INT64] | None = None


_real(
    "prometheus-operator ServiceMonitor",
    ServiceMonitor,
    """
    type: object
    required: [endpoints, selector]
    properties:
      endpoints:
        type: array
        items:
          type: object
          properties:
            basicAuth: $SECRET_KEY
            honorLabels: $BOOL
            interval: $DURATION
            params: {type: object, additionalProperties: $TEXTS}
            port: $TEXT
            relabelings:
              type: array
              items:
                type: object
                properties:
                  action:
                    type: string
                    default: replace
                    enum: [replace, Replace, keep, Keep, drop, Drop, labelmap, labeldrop]
                  modulus: $INT64
                  regex: $TEXT
                  replacement: $TEXT
                  sourceLabels: {type: array, items: {type: string, pattern: '^[a-zA-Z_][a-zA-Z0-9_]*$'}}
            scheme: {type: string, enum: [http, https]}
            targetPort: $INT_OR_STRING
      namespaceSelector: {type: object, properties: {any: $BOOL, matchNames: $TEXTS}}
      sampleLimit: $INT64
      selector: $LABEL_SELECTOR
    """,
    """
    endpoints:
    - basicAuth: {name: auth, key: user}
      honorLabels: true
      interval: 30s
      params: {match: [a, b]}
      port: web
      relabelings: [{action: keep, modulus: 8, regex: '.*', sourceLabels: [__address__]}]
      scheme: http
      targetPort: 8080
    namespaceSelector: {any: false, matchNames: [shop]}
    sampleLimit: 1000
    selector: {matchLabels: {app: web}, matchExpressions: [{key: a, operator: In, values: [b]}]}
    """,
)


class AlertRule(_Part, frozen=True):
    expr: IntOrString
    alert: str | None = None
    duration: Annotated[str, Meta(pattern=_DURATION)] | None = msgspec.field(name="for", default=None)
    labels: dict[str, str] | None = None
    record: str | None = None


class RuleGroup(_Part, frozen=True):
    name: Annotated[str, Meta(min_length=1)]
    interval: Annotated[str, Meta(pattern=_DURATION)] | None = None
    limit: int | None = None
    rules: list[AlertRule] | None = None


class PrometheusRule(_Part, frozen=True):
    groups: Annotated[list[RuleGroup], list_map("name")] | None = None


_real(
    "prometheus-operator PrometheusRule",
    PrometheusRule,
    """
    type: object
    properties:
      groups:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items:
          type: object
          required: [name]
          properties:
            interval: $DURATION
            limit: {type: integer}
            name: {type: string, minLength: 1}
            rules:
              type: array
              items:
                type: object
                required: [expr]
                properties:
                  alert: $TEXT
                  expr: $INT_OR_STRING
                  for: $DURATION
                  labels: $MAP
                  record: $TEXT
    """,
    """
    groups:
    - name: web
      interval: 1m
      limit: 3
      rules: [{alert: Down, expr: up == 0, for: 5m, labels: {severity: page}}]
    - {name: other, rules: [{record: 'a:b', expr: 1}]}
    """,
)

_IMMUTABLE = rule("self == oldSelf", message="is immutable")


class DatabaseExtension(_Part, frozen=True):
    name: str
    ensure: Literal["present", "absent"] = "present"
    version: str | None = None


class Database(_Part, frozen=True):
    cluster: core_v1.LocalObjectReference
    name: Annotated[str, _IMMUTABLE, rule("self != 'postgres'", message="the name postgres is reserved")]
    owner: str
    allow_connections: bool | None = None
    connection_limit: int | None = None
    database_reclaim_policy: Literal["delete", "retain"] = "retain"
    extensions: list[DatabaseExtension] | None = None
    locale: Annotated[str, _IMMUTABLE] | None = None


_real(
    "cloudnative-pg Database",
    Database,
    """
    type: object
    required: [cluster, name, owner]
    properties:
      allowConnections: $BOOL
      cluster: $LOCAL_REFERENCE
      connectionLimit: {type: integer}
      databaseReclaimPolicy: {type: string, default: retain, enum: [delete, retain]}
      extensions:
        type: array
        items:
          type: object
          required: [name]
          properties: {ensure: {type: string, default: present, enum: [present, absent]}, name: $TEXT, version: $TEXT}
      locale: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: locale is immutable}]}
      name:
        type: string
        x-kubernetes-validations:
        - {rule: self == oldSelf, message: name is immutable}
        - {rule: "self != 'postgres'", message: the name postgres is reserved}
      owner: $TEXT
    """,
    """
    allowConnections: true
    cluster: {name: main}
    connectionLimit: -1
    databaseReclaimPolicy: delete
    extensions: [{name: postgis, ensure: present, version: '3'}]
    locale: C
    name: app
    owner: app
    """,
)


class OnlineConfiguration(_Part, frozen=True):
    immediate_checkpoint: bool | None = None
    wait_for_archive: bool = True


class ClusterName(_Part, frozen=True):
    name: str


class ScheduledBackup(_Part, frozen=True):
    cluster: ClusterName
    schedule: str
    backup_owner_reference: Literal["none", "self", "cluster"] = "none"
    immediate: bool | None = None
    method: Literal["barmanObjectStore", "volumeSnapshot", "plugin"] = "barmanObjectStore"
    online_configuration: OnlineConfiguration | None = None
    plugin_parameters: dict[str, str] | None = None


_real(
    "cloudnative-pg ScheduledBackup",
    ScheduledBackup,
    """
    type: object
    required: [cluster, schedule]
    properties:
      backupOwnerReference: {type: string, default: none, enum: [none, self, cluster]}
      cluster: {type: object, required: [name], properties: {name: $TEXT}}
      immediate: $BOOL
      method: {type: string, default: barmanObjectStore, enum: [barmanObjectStore, volumeSnapshot, plugin]}
      onlineConfiguration:
        type: object
        properties: {immediateCheckpoint: $BOOL, waitForArchive: {type: boolean, default: true}}
      pluginParameters: $MAP
      schedule: $TEXT
    """,
    """
    backupOwnerReference: self
    cluster: {name: main}
    immediate: true
    method: plugin
    onlineConfiguration: {immediateCheckpoint: true, waitForArchive: false}
    pluginParameters: {a: b}
    schedule: 0 0 0 * * *
    """,
)

# The real one says int32, with this maximum. With that, kube-apiserver refuses every number.
_Asn = Annotated[int, INT64, Meta(ge=0, le=4294967295)]
_SECONDS = "duration(self).getSeconds() >= 1 && duration(self).getSeconds() <= 65535"


@rules(MAP_ATOMIC)
class SecretReference(_Part, frozen=True):
    name: str | None = None
    namespace: str | None = None


class BgpPeer(_Part, frozen=True):
    my_asn: _Asn = msgspec.field(name="myASN")
    connect_time: Annotated[str, rule(_SECONDS, message="connect time is too long")] | None = None
    disable_mp: bool = msgspec.field(name="disableMP", default=False)
    dynamic_asn: Literal["internal", "external"] | None = msgspec.field(name="dynamicASN", default=None)
    node_selectors: list[meta_v1.LabelSelector] | None = None
    password_secret: SecretReference | None = None
    peer_address: str | None = None
    peer_port: Annotated[int, Meta(ge=1, le=16384)] = 179


_real(
    "metallb BGPPeer",
    BgpPeer,
    f"""
    type: object
    required: [myASN]
    properties:
      connectTime:
        type: string
        x-kubernetes-validations: [{{rule: "{_SECONDS}", message: connect time is too long}}]
      disableMP: {{type: boolean, default: false}}
      dynamicASN: {{type: string, enum: [internal, external]}}
      myASN: {{type: integer, format: int64, minimum: 0, maximum: 4294967295}}
      nodeSelectors: {{type: array, items: $LABEL_SELECTOR}}
      passwordSecret: {{type: object, x-kubernetes-map-type: atomic, properties: {{name: $TEXT, namespace: $TEXT}}}}
      peerAddress: $TEXT
      peerPort: {{type: integer, default: 179, minimum: 1, maximum: 16384}}
    """,
    """
    connectTime: 10s
    disableMP: true
    dynamicASN: internal
    myASN: 64512
    nodeSelectors: [{matchLabels: {rack: a}}]
    passwordSecret: {name: bgp}
    peerAddress: 10.0.0.1
    peerPort: 179
    """,
)


@rules(
    rule("has(self.persistentVolumeClaimName) != has(self.volumeSnapshotContentName)", message="name one source"),
)
class SnapshotSource(_Part, frozen=True):
    persistent_volume_claim_name: str | None = None
    volume_snapshot_content_name: str | None = None


class VolumeSnapshot(_Part, frozen=True):
    source: SnapshotSource
    restore_size: Quantity | None = None
    taken: datetime.datetime | None = None
    volume_snapshot_class_name: str | None = None


_real(
    "external-snapshotter VolumeSnapshot",
    VolumeSnapshot,
    """
    type: object
    required: [source]
    properties:
      restoreSize: $QUANTITY
      source:
        type: object
        properties: {persistentVolumeClaimName: $TEXT, volumeSnapshotContentName: $TEXT}
        oneOf: [{required: [persistentVolumeClaimName]}, {required: [volumeSnapshotContentName]}]
      taken: {type: string, format: date-time}
      volumeSnapshotClassName: $TEXT
    """,
    """
    restoreSize: 10Gi
    source: {persistentVolumeClaimName: data}
    taken: '2026-01-01T00:00:00Z'
    volumeSnapshotClassName: fast
    """,
)


class ObjectStorage(_Part, frozen=True):
    bucket: str
    prefix: str | None = None


class BackupStorageLocation(_Part, frozen=True):
    object_storage: ObjectStorage
    provider: str
    access_mode: Literal["ReadOnly", "ReadWrite"] | None = None
    backup_sync_period: str | UnsetType | None = UNSET
    config: dict[str, str] | None = None
    credential: core_v1.SecretKeySelector | None = None
    default: bool | None = None


_real(
    "velero BackupStorageLocation",
    BackupStorageLocation,
    """
    type: object
    required: [objectStorage, provider]
    properties:
      accessMode: {type: string, enum: [ReadOnly, ReadWrite]}
      backupSyncPeriod: {type: string, nullable: true}
      config: $MAP
      credential: $SECRET_KEY
      default: $BOOL
      objectStorage: {type: object, required: [bucket], properties: {bucket: $TEXT, prefix: $TEXT}}
      provider: $TEXT
    """,
    """
    accessMode: ReadWrite
    backupSyncPeriod: 1m0s
    config: {region: eu}
    credential: {name: cloud, key: token}
    default: true
    objectStorage: {bucket: backups, prefix: a}
    provider: aws
    """,
)

_LABEL_KEY = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
)
_VALUES = "self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)"


class NodeRequirement(_Part, frozen=True):
    key: Annotated[str, Meta(max_length=316, pattern=_LABEL_KEY)]
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: Annotated[list[str], LIST_ATOMIC, Meta(max_length=50)] | None = None


@rules(rule("!has(self.price) || !has(self.priceAdjustment)", message="cannot set both"))
class NodeOverlay(_Part, frozen=True):
    requirements: Annotated[list[NodeRequirement], Meta(max_length=100)]
    capacity: dict[str, Quantity] | None = None
    price: Annotated[str, Meta(pattern=r"^\d+(\.\d+)?$")] | None = None
    price_adjustment: Annotated[str, Meta(pattern=r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%))$")] | None = None
    weight: Annotated[int, INT32, Meta(ge=1, le=10000)] | None = None


_real(
    "karpenter NodeOverlay",
    NodeOverlay,
    rf"""
    type: object
    required: [requirements]
    x-kubernetes-validations: [{{rule: '!has(self.price) || !has(self.priceAdjustment)', message: cannot set both}}]
    properties:
      capacity: {{type: object, additionalProperties: $QUANTITY}}
      price: {{type: string, pattern: '^\d+(\.\d+)?$'}}
      priceAdjustment: {{type: string, pattern: '^(([+-]{{1}}(\d*\.?\d+))|(\+{{1}}\d*\.?\d+%))$'}}
      requirements:
        type: array
        maxItems: 100
        items:
          type: object
          required: [key, operator]
          properties:
            key: {{type: string, maxLength: 316, pattern: '{_LABEL_KEY}'}}
            operator: {{type: string, enum: [In, NotIn, Exists, DoesNotExist, Gt, Lt]}}
            values: {{type: array, maxItems: 50, x-kubernetes-list-type: atomic, items: $TEXT}}
      weight: {{type: integer, format: int32, minimum: 1, maximum: 10000}}
    """,
    """
    capacity: {example.com/gpu: 2}
    price: '1.5'
    requirements: [{key: karpenter.sh/nodepool, operator: In, values: [a]}]
    weight: 10
    """,
)


class TargetRef(_Part, frozen=True):
    group: Annotated[str, Meta(max_length=253, pattern=rf"^$|^{_DOMAIN}$")]
    kind: Annotated[str, Meta(min_length=1, max_length=63, pattern="^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$")]
    name: Annotated[str, Meta(min_length=1, max_length=253)]
    section_name: Annotated[str, Meta(min_length=1, max_length=253, pattern=rf"^{_DOMAIN}$")] | None = None


_UNIQUE = "self.all(p1, self.exists_one(p2, p1.group == p2.group && p1.kind == p2.kind && p1.name == p2.name))"


class BackendTlsPolicy(_Part, frozen=True):
    target_refs: Annotated[
        list[TargetRef], LIST_ATOMIC, Meta(min_length=1, max_length=16), rule(_UNIQUE, message="must be unique")
    ]
    options: Annotated[dict[str, Annotated[str, Meta(max_length=4096)]], Meta(max_length=16)] | None = None


_real(
    "gateway-api BackendTLSPolicy",
    BackendTlsPolicy,
    f"""
    type: object
    required: [targetRefs]
    properties:
      options: {{type: object, maxProperties: 16, additionalProperties: {{type: string, maxLength: 4096}}}}
      targetRefs:
        type: array
        minItems: 1
        maxItems: 16
        x-kubernetes-list-type: atomic
        x-kubernetes-validations: [{{rule: "{_UNIQUE}", message: must be unique}}]
        items:
          type: object
          required: [group, kind, name]
          properties:
            group: {{type: string, maxLength: 253, pattern: '^$|^{_DOMAIN}$'}}
            kind: {{type: string, minLength: 1, maxLength: 63, pattern: '^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$'}}
            name: {{type: string, minLength: 1, maxLength: 253}}
            sectionName: {{type: string, minLength: 1, maxLength: 253, pattern: '^{_DOMAIN}$'}}
    """,
    """
    options: {example.com/tls: '1.3'}
    targetRefs:
    - {group: '', kind: Service, name: web, sectionName: https}
    - {group: example.com, kind: Backend, name: db}
    """,
)


class ParentRef(_Part, frozen=True):
    name: Annotated[str, Meta(min_length=1, max_length=253)]
    group: Annotated[str, Meta(max_length=253, pattern=rf"^$|^{_DOMAIN}$")] = "gateway.networking.k8s.io"
    port: Annotated[int, INT32, Meta(ge=1, le=65535)] | None = None


class PathMatch(_Part, frozen=True):
    type: Literal["Exact", "PathPrefix", "RegularExpression"] = "PathPrefix"
    value: Annotated[str, Meta(max_length=1024)] = "/"


class RouteRule(_Part, frozen=True):
    name: Annotated[str, Meta(min_length=1, max_length=253)] | None = None
    path: PathMatch | None = None
    weight: Annotated[int, INT32, Meta(ge=0, le=1000000)] = 1


class HttpRoute(_Part, frozen=True):
    hostnames: (
        Annotated[
            list[Annotated[str, Meta(min_length=1, max_length=253, pattern=rf"^(\*\.)?{_DOMAIN}$")]],
            Meta(max_length=16),
        ]
        | None
    ) = None
    parent_refs: Annotated[list[ParentRef], Meta(max_length=32)] | None = None
    rules: Annotated[list[RouteRule], Meta(min_length=1, max_length=16)] | None = None


_real(
    "gateway-api HTTPRoute",
    HttpRoute,
    rf"""
    type: object
    properties:
      hostnames:
        type: array
        maxItems: 16
        items: {{type: string, minLength: 1, maxLength: 253, pattern: '^(\*\.)?{_DOMAIN}$'}}
      parentRefs:
        type: array
        maxItems: 32
        items:
          type: object
          required: [name]
          properties:
            group: {{type: string, default: gateway.networking.k8s.io, maxLength: 253, pattern: '^$|^{_DOMAIN}$'}}
            name: {{type: string, minLength: 1, maxLength: 253}}
            port: {{type: integer, format: int32, minimum: 1, maximum: 65535}}
      rules:
        type: array
        minItems: 1
        maxItems: 16
        items:
          type: object
          properties:
            name: {{type: string, minLength: 1, maxLength: 253}}
            path:
              type: object
              properties:
                type: {{type: string, default: PathPrefix, enum: [Exact, PathPrefix, RegularExpression]}}
                value: {{type: string, default: /, maxLength: 1024}}
            weight: {{type: integer, format: int32, default: 1, minimum: 0, maximum: 1000000}}
    """,
    """
    hostnames: ['*.example.com']
    parentRefs: [{name: gate, group: gateway.networking.k8s.io, port: 443}]
    rules: [{name: main, path: {type: Exact, value: /a}, weight: 10}]
    """,
)


class SealedTemplate(_Part, frozen=True):
    data: dict[str, str] | UnsetType | None = UNSET
    metadata: dict[str, Any] | None = None
    type: str | None = None


class SealedSecret(_Part, frozen=True):
    encrypted_data: dict[str, str]
    template: SealedTemplate | None = None


_real(
    "sealed-secrets SealedSecret",
    SealedSecret,
    """
    type: object
    required: [encryptedData]
    properties:
      encryptedData:
        type: object
        additionalProperties: {type: string}
        x-kubernetes-preserve-unknown-fields: true
      template:
        type: object
        properties:
          data: {type: object, nullable: true, additionalProperties: {type: string}}
          metadata: {type: object, x-kubernetes-preserve-unknown-fields: true}
          type: $TEXT
    """,
    """
    encryptedData: {password: AgA}
    template: {data: {a: b}, metadata: {labels: {app: web}}, type: Opaque}
    """,
)


class GitRef(_Part, frozen=True):
    branch: str = "master"
    commit: str | None = None


class GitRepository(_Part, frozen=True):
    interval: str
    url: Annotated[str, Meta(pattern="^(http|https|ssh)://")]
    ref: GitRef | None = None
    secret_ref: core_v1.LocalObjectReference | None = None
    timeout: str = "20s"
    verify: Literal["head"] | None = None


_real(
    "flux GitRepository",
    GitRepository,
    """
    type: object
    required: [interval, url]
    properties:
      interval: $TEXT
      ref: {type: object, properties: {branch: {type: string, default: master}, commit: $TEXT}}
      secretRef: $LOCAL_REFERENCE
      timeout: {type: string, default: 20s}
      url: {type: string, pattern: '^(http|https|ssh)://'}
      verify: {type: string, enum: [head]}
    """,
    """
    interval: 1m
    ref: {branch: main, commit: abc}
    secretRef: {name: git}
    timeout: 30s
    url: https://example.com/a
    verify: head
    """,
)


class Substitution(_Part, frozen=True):
    kind: Literal["Secret", "ConfigMap"]
    name: Annotated[str, Meta(min_length=1, max_length=253)]
    optional: bool = False


class PostBuild(_Part, frozen=True):
    substitute: dict[str, str] | None = None
    substitute_from: list[Substitution] | None = None


class SourceRef(_Part, frozen=True):
    kind: Literal["OCIRepository", "GitRepository", "Bucket"]
    name: str
    namespace: str | None = None


class Kustomization(_Part, frozen=True):
    interval: Annotated[str, Meta(pattern=_GO_DURATION)]
    prune: bool
    source_ref: SourceRef
    post_build: PostBuild | None = None
    retry_interval: Annotated[str, Meta(pattern=_GO_DURATION)] | None = None
    target_namespace: Annotated[str, Meta(min_length=1, max_length=63)] | None = None


_real(
    "flux Kustomization",
    Kustomization,
    """
    type: object
    required: [interval, prune, sourceRef]
    properties:
      interval: $GO_DURATION
      postBuild:
        type: object
        properties:
          substitute: $MAP
          substituteFrom:
            type: array
            items:
              type: object
              required: [kind, name]
              properties:
                kind: {type: string, enum: [Secret, ConfigMap]}
                name: {type: string, minLength: 1, maxLength: 253}
                optional: {type: boolean, default: false}
      prune: $BOOL
      retryInterval: $GO_DURATION
      sourceRef:
        type: object
        required: [kind, name]
        properties: {kind: {type: string, enum: [OCIRepository, GitRepository, Bucket]}, name: $TEXT, namespace: $TEXT}
      targetNamespace: {type: string, minLength: 1, maxLength: 63}
    """,
    """
    interval: 10m
    postBuild: {substitute: {a: b}, substituteFrom: [{kind: Secret, name: vars, optional: true}]}
    prune: true
    retryInterval: 1.5m
    sourceRef: {kind: GitRepository, name: apps}
    targetNamespace: shop
    """,
)


class KafkaTopic(_Part, frozen=True):
    config: dict[str, Any] | None = None
    partitions: Annotated[int, Meta(ge=1)] | None = None
    replicas: Annotated[int, Meta(ge=1, le=32767)] | None = None
    topic_name: str | None = None


_real(
    "strimzi KafkaTopic",
    KafkaTopic,
    """
    type: object
    properties:
      config: {type: object, x-kubernetes-preserve-unknown-fields: true}
      partitions: {type: integer, minimum: 1}
      replicas: {type: integer, minimum: 1, maximum: 32767}
      topicName: $TEXT
    """,
    """
    config: {retention.ms: 7200000, cleanup.policy: compact}
    partitions: 3
    replicas: 2
    topicName: orders
    """,
)


class ScaleTarget(_Part, frozen=True):
    name: str
    kind: str | None = None


class Trigger(_Part, frozen=True):
    metadata: dict[str, str]
    type: str
    metric_type: Literal["AverageValue", "Value", "Utilization"] | None = None


class ScaledObject(_Part, frozen=True):
    scale_target_ref: ScaleTarget
    triggers: list[Trigger]
    behavior: autoscaling_v2.HorizontalPodAutoscalerBehavior | None = None
    max_replica_count: Annotated[int, INT32] | None = None


_SCALING = """
        type: object
        properties:
          policies:
            type: array
            x-kubernetes-list-type: atomic
            items:
              type: object
              required: [periodSeconds, type, value]
              properties: {periodSeconds: $INT32, type: $TEXT, value: $INT32}
          selectPolicy: $TEXT
          stabilizationWindowSeconds: $INT32
          tolerance: $QUANTITY
"""

_real(
    "keda ScaledObject",
    ScaledObject,
    f"""
    type: object
    required: [scaleTargetRef, triggers]
    properties:
      behavior:
        type: object
        properties:
          scaleDown: &rules
            {_SCALING.strip().replace(chr(10), chr(10) + "    ")}
          scaleUp: *rules
      maxReplicaCount: $INT32
      scaleTargetRef: {{type: object, required: [name], properties: {{name: $TEXT, kind: $TEXT}}}}
      triggers:
        type: array
        items:
          type: object
          required: [metadata, type]
          properties:
            metadata: $MAP
            metricType: {{type: string, enum: [AverageValue, Value, Utilization]}}
            type: $TEXT
    """,
    """
    behavior:
      scaleDown:
        policies: [{periodSeconds: 15, type: Pods, value: 1}]
        selectPolicy: Max
        stabilizationWindowSeconds: 300
        tolerance: 100m
    maxReplicaCount: 10
    scaleTargetRef: {name: web, kind: Deployment}
    triggers: [{type: cpu, metadata: {value: '50'}, metricType: Utilization}]
    """,
)


class Destination(_Part, frozen=True):
    name: str | None = None
    namespace: str | None = None
    server: str | None = None


class Helm(_Part, frozen=True):
    values: str | None = None
    values_object: dict[str, Any] | None = None


class Source(_Part, frozen=True):
    repo_url: str = msgspec.field(name="repoURL")
    helm: Helm | None = None
    path: str | None = None


class Difference(_Part, frozen=True):
    kind: str
    json_pointers: list[str] | None = None


class Application(_Part, frozen=True):
    destination: Destination
    project: str
    ignore_differences: list[Difference] | None = None
    revision_history_limit: Annotated[int, INT64] | None = None
    source: Source | None = None


_real(
    "argo-cd Application",
    Application,
    """
    type: object
    required: [destination, project]
    properties:
      destination: {type: object, properties: {name: $TEXT, namespace: $TEXT, server: $TEXT}}
      ignoreDifferences:
        type: array
        items: {type: object, required: [kind], properties: {kind: $TEXT, jsonPointers: $TEXTS}}
      project: $TEXT
      revisionHistoryLimit: $INT64
      source:
        type: object
        required: [repoURL]
        properties:
          helm:
            type: object
            properties: {values: $TEXT, valuesObject: {type: object, x-kubernetes-preserve-unknown-fields: true}}
          path: $TEXT
          repoURL: $TEXT
    """,
    """
    destination: {server: https://example.com, namespace: shop}
    ignoreDifferences: [{kind: Deployment, jsonPointers: [/spec/replicas]}]
    project: default
    revisionHistoryLimit: 5
    source: {repoURL: https://example.com, path: a, helm: {values: 'a: 1', valuesObject: {a: {b: [1]}}}}
    """,
)


@rules(KEEP_UNKNOWN)
class TaskStep(_Part, frozen=True):
    name: str


class TaskParam(_Part, frozen=True):
    name: str
    default: Any = None
    type: str | None = None


class Task(_Part, frozen=True):
    params: Annotated[list[TaskParam], LIST_ATOMIC] | None = None
    steps: Annotated[list[TaskStep], LIST_ATOMIC] | None = None


_real(
    "tekton Task",
    Task,
    """
    type: object
    properties:
      params:
        type: array
        x-kubernetes-list-type: atomic
        items:
          type: object
          required: [name]
          properties: {name: $TEXT, type: $TEXT, default: {x-kubernetes-preserve-unknown-fields: true}}
      steps:
        type: array
        x-kubernetes-list-type: atomic
        items:
          type: object
          required: [name]
          x-kubernetes-preserve-unknown-fields: true
          properties: {name: $TEXT}
    """,
    """
    params: [{name: a, type: array, default: [x]}, {name: b, default: text}]
    steps: [{name: build, image: example.com/build, script: make}]
    """,
)


class StoreRef(_Part, frozen=True):
    kind: Literal["SecretStore", "ClusterSecretStore"] | None = None
    name: Annotated[str, Meta(min_length=1, max_length=253, pattern=rf"^{_DOMAIN}$")] | None = None


class RemoteRef(_Part, frozen=True):
    key: str
    conversion_strategy: Literal["Default", "Unicode"] = "Default"
    decoding_strategy: Literal["Auto", "Base64", "Base64URL", "None"] = "None"


class SecretData(_Part, frozen=True):
    remote_ref: RemoteRef
    secret_key: Annotated[str, Meta(min_length=1, max_length=253, pattern="^[-._a-zA-Z0-9]+$")]


class ExternalSecret(_Part, frozen=True):
    data: list[SecretData] | None = None
    refresh_interval: str = "1h"
    refresh_policy: Literal["CreatedOnce", "Periodic", "OnChange"] | None = None
    secret_store_ref: StoreRef | None = None


_real(
    "external-secrets ExternalSecret",
    ExternalSecret,
    f"""
    type: object
    properties:
      data:
        type: array
        items:
          type: object
          required: [remoteRef, secretKey]
          properties:
            remoteRef:
              type: object
              required: [key]
              properties:
                conversionStrategy: {{type: string, default: Default, enum: [Default, Unicode]}}
                decodingStrategy: {{type: string, default: None, enum: [Auto, Base64, Base64URL, None]}}
                key: $TEXT
            secretKey: {{type: string, minLength: 1, maxLength: 253, pattern: '^[-._a-zA-Z0-9]+$'}}
      refreshInterval: {{type: string, default: 1h}}
      refreshPolicy: {{type: string, enum: [CreatedOnce, Periodic, OnChange]}}
      secretStoreRef:
        type: object
        properties:
          kind: {{type: string, enum: [SecretStore, ClusterSecretStore]}}
          name: {{type: string, minLength: 1, maxLength: 253, pattern: '^{_DOMAIN}$'}}
    """,
    """
    data: [{secretKey: password, remoteRef: {key: db, conversionStrategy: Unicode, decodingStrategy: Auto}}]
    refreshInterval: 5m
    refreshPolicy: Periodic
    secretStoreRef: {kind: SecretStore, name: vault}
    """,
)


class Persistence(_Part, frozen=True):
    storage: Quantity = Quantity("10Gi")
    storage_class_name: str | None = None


class RabbitmqCluster(_Part, frozen=True):
    image: str | None = None
    persistence: Persistence | None = None
    replicas: Annotated[int, INT32, Meta(ge=0)] = 1
    resources: core_v1.ResourceRequirements | None = None
    termination_grace_period_seconds: Annotated[int, INT64, Meta(ge=0)] = 604800
    tolerations: list[core_v1.Toleration] | None = None


_real(
    "rabbitmq RabbitmqCluster",
    RabbitmqCluster,
    """
    type: object
    properties:
      image: $TEXT
      persistence:
        type: object
        properties:
          storage: $STORAGE
          storageClassName: $TEXT
      replicas: {type: integer, format: int32, default: 1, minimum: 0}
      resources:
        type: object
        properties:
          claims:
            type: array
            x-kubernetes-list-type: map
            x-kubernetes-list-map-keys: [name]
            items: {type: object, required: [name], properties: {name: $TEXT, request: $TEXT}}
          limits: {type: object, additionalProperties: $QUANTITY}
          requests: {type: object, additionalProperties: $QUANTITY}
      terminationGracePeriodSeconds: {type: integer, format: int64, default: 604800, minimum: 0}
      tolerations:
        type: array
        items:
          type: object
          properties: {effect: $TEXT, key: $TEXT, operator: $TEXT, tolerationSeconds: $INT64, value: $TEXT}
    """,
    """
    image: rabbitmq:4
    persistence: {storage: 20Gi, storageClassName: fast}
    replicas: 3
    resources: {claims: [{name: gpu}], limits: {cpu: 2, memory: 2Gi}, requests: {cpu: 500m}}
    terminationGracePeriodSeconds: 60
    tolerations: [{effect: NoSchedule, key: a, operator: Exists, tolerationSeconds: 30}]
    """,
)


class CidrBlocks(_Part, frozen=True):
    cidr_blocks: list[str]


class ClusterNetwork(_Part, frozen=True):
    api_server_port: Annotated[int, INT32] | None = None
    pods: CidrBlocks | None = None


class TopologyVariable(_Part, frozen=True):
    name: Annotated[str, Meta(min_length=1, max_length=256)]
    value: Any


class Topology(_Part, frozen=True):
    version: Annotated[str, Meta(min_length=1)]
    rollout_after: datetime.datetime | None = None
    variables: Annotated[list[TopologyVariable], list_map("name")] | None = None


class CapiCluster(_Part, frozen=True):
    cluster_network: ClusterNetwork | None = None
    infrastructure_ref: core_v1.ObjectReference | None = None
    max_unhealthy: IntOrString | None = None
    paused: bool | None = None
    topology: Topology | None = None


_real(
    "cluster-api Cluster",
    CapiCluster,
    """
    type: object
    properties:
      clusterNetwork:
        type: object
        properties:
          apiServerPort: $INT32
          pods: {type: object, required: [cidrBlocks], properties: {cidrBlocks: $TEXTS}}
      infrastructureRef:
        type: object
        x-kubernetes-map-type: atomic
        properties:
          apiVersion: $TEXT
          fieldPath: $TEXT
          kind: $TEXT
          name: $TEXT
          namespace: $TEXT
          resourceVersion: $TEXT
          uid: $TEXT
      maxUnhealthy: $INT_OR_STRING
      paused: $BOOL
      topology:
        type: object
        required: [version]
        properties:
          rolloutAfter: {type: string, format: date-time}
          variables:
            type: array
            x-kubernetes-list-type: map
            x-kubernetes-list-map-keys: [name]
            items:
              type: object
              required: [name, value]
              properties:
                name: {type: string, minLength: 1, maxLength: 256}
                value: {x-kubernetes-preserve-unknown-fields: true}
          version: {type: string, minLength: 1}
    """,
    """
    clusterNetwork: {apiServerPort: 6443, pods: {cidrBlocks: [10.0.0.0/8]}}
    infrastructureRef: {apiVersion: v1, kind: DockerCluster, name: a}
    maxUnhealthy: 40%
    paused: false
    topology:
      rolloutAfter: '2026-01-01T00:00:00Z'
      variables: [{name: a, value: {b: 1}}, {name: c, value: 1}]
      version: v1.30.0
    """,
)


class Replicated(_Part, frozen=True):
    size: Annotated[int, Meta(ge=0)]
    require_safe_replica_size: bool | None = None


class Quotas(_Part, frozen=True):
    max_bytes: Annotated[int, INT64] | None = None
    max_size: Annotated[str, Meta(pattern="^[0-9]+[.]?[0-9]*([KMGTPE]i|[kMGTPE])?$")] | None = None


class CephBlockPool(_Part, frozen=True):
    compression_mode: Literal["none", "passive", "aggressive", "force", "", None] | UnsetType = UNSET
    parameters: dict[str, str] | UnsetType | None = UNSET
    quotas: Quotas | UnsetType | None = UNSET
    replicated: Replicated | None = None


_real(
    "rook CephBlockPool",
    CephBlockPool,
    """
    type: object
    properties:
      compressionMode: {type: string, nullable: true, enum: [none, passive, aggressive, force, '']}
      parameters:
        type: object
        nullable: true
        additionalProperties: {type: string}
        x-kubernetes-preserve-unknown-fields: true
      quotas:
        type: object
        nullable: true
        properties:
          maxBytes: $INT64
          maxSize: {type: string, pattern: '^[0-9]+[.]?[0-9]*([KMGTPE]i|[kMGTPE])?$'}
      replicated:
        type: object
        required: [size]
        properties: {size: {type: integer, minimum: 0}, requireSafeReplicaSize: $BOOL}
    """,
    """
    compressionMode: passive
    parameters: {a: b}
    quotas: {maxBytes: 1000, maxSize: 10Gi}
    replicated: {size: 3, requireSafeReplicaSize: true}
    """,
)


class CompositionRevision(_Part, frozen=True):
    resources: list[EmbeddedObject] | None = None
    revision: Annotated[int, INT64] | None = None
    base: EmbeddedObject | None = None


_real(
    "crossplane Object",
    CompositionRevision,
    """
    type: object
    properties:
      base: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
      resources:
        type: array
        items: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
      revision: $INT64
    """,
    """
    base: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}
    resources: [{apiVersion: v1, kind: Secret, metadata: {name: b}}]
    revision: 3
    """,
)
