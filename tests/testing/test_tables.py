from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer.catalog import BUILTIN_RESOURCES
from aioinformer.resources import Resource
from aioinformer.testing.tables import jsonpath
from aioinformer.testing.tables.cells import human_duration, selector
from aioinformer.testing.tables.rendering import layout

UNHURRIED = settings(deadline=None)
NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
CREATED = "2026-11-21T08:58:00Z"
WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")
RUNNING = {"running": {"startedAt": CREATED}}
READY = [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True"}]
HOURS_AGO = "2026-11-21T05:00:00Z"
INIT = [{"name": "i1"}, {"name": "s1", "restartPolicy": "Always"}, {"name": "i2"}]


def builtin(gvr: str) -> Resource[Any]:
    (found,) = (resource for resource in BUILTIN_RESOURCES if resource.gvr == gvr)
    return found


def stored(name: str = "x", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "resourceVersion": "7", "creationTimestamp": CREATED, **fields.pop("metadata", {})}
    return {"metadata": metadata, **fields}


def cells(gvr: str, **fields: Any) -> list[Any]:
    return layout(builtin(gvr)).cells(stored(**fields), NOW)


def shown(gvr: str, **fields: Any) -> dict[str, Any]:
    found = layout(builtin(gvr))
    names = [column["name"] for column in found.columns]
    return dict(zip(names, found.cells(stored(**fields), NOW), strict=True))


def status(
    name: str, state: dict[str, Any], ready: bool = False, restarts: int = 0, last: str = "", **more: Any
) -> dict[str, Any]:
    known = {"name": name, "state": state, "ready": ready, "restartCount": restarts, **more}
    return known | ({"lastState": {"terminated": {"finishedAt": last}}} if last else {})


def ended(code: int, reason: str = "", signal: int = 0) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "signal": signal}}


def waiting(reason: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason}}


class TestColumns:
    @pytest.mark.parametrize(
        ("gvr", "names"),
        [
            ("v1/pods", "Name Ready Status Restarts Age IP* Node* Nominated_Node* Readiness_Gates*"),
            ("apps/v1/deployments", "Name Ready Up-to-date Available Age Containers* Images* Selector*"),
            ("v1/configmaps", "Name Data Age"),
            ("apiextensions.k8s.io/v1/customresourcedefinitions", "Name Created_At"),
        ],
    )
    def test_a_built_in_resource_has_the_columns_of_the_real_server(self, gvr: str, names: str) -> None:
        columns = layout(builtin(gvr)).columns

        marked = [column["name"].replace(" ", "_") + "*" * (column["priority"] > 0) for column in columns]
        assert " ".join(marked) == names

    @pytest.mark.parametrize("resource", [each for each in BUILTIN_RESOURCES if "list" in each.verbs], ids=str)
    def test_even_an_empty_object_fills_its_columns(self, resource: Resource[Any]) -> None:
        found = layout(resource)

        assert len(found.cells({}, NOW)) >= len(found.columns)

    def test_a_custom_resource_has_those_of_its_definition(self) -> None:
        size = {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}

        columns = layout(WIDGETS, [size]).columns

        assert [column["name"] for column in columns] == ["Name", "Size"]
        assert columns[1] == {
            "name": "Size",
            "type": "integer",
            "format": "",
            "description": "Custom resource definition column (in JSONPath format): .spec.size",
            "priority": 1,
        }

    def test_a_custom_resource_without_columns_shows_its_age(self) -> None:
        found = layout(WIDGETS, [])

        assert [column["name"] for column in found.columns] == ["Name", "Age"]
        assert found.cells(stored(), NOW) == ["x", "2m"]


class TestPods:
    """Each of these pods was put on a real server, and its row read back."""

    @pytest.mark.parametrize(
        ("spec", "state", "expected"),
        [
            ({}, {"phase": "Pending"}, ("0/2", "Pending", "0")),
            (
                {},
                {
                    "phase": "Running",
                    "containerStatuses": [
                        status("a", RUNNING, True, 3, HOURS_AGO),
                        status("b", RUNNING, True, 1, "2026-11-20T05:00:00Z"),
                    ],
                    "conditions": READY,
                },
                ("2/2", "Running", "4 (4h ago)"),
            ),
            (
                {},
                {
                    "phase": "Running",
                    "containerStatuses": [
                        status("a", waiting("CrashLoopBackOff"), False, 3),
                        status("b", RUNNING, True),
                    ],
                },
                ("1/2", "CrashLoopBackOff", "3"),
            ),
            (
                {},
                {"phase": "Failed", "containerStatuses": [status("a", ended(2)), status("b", ended(0, "", 9))]},
                ("0/2", "ExitCode:2", "0"),
            ),
            (
                {},
                {
                    "phase": "Running",
                    "containerStatuses": [status("a", ended(0, "Completed")), status("b", RUNNING, True)],
                    "conditions": READY,
                },
                ("1/2", "Running", "0"),
            ),
            (
                {},
                {
                    "phase": "Running",
                    "containerStatuses": [status("a", ended(0, "Completed")), status("b", RUNNING, True)],
                },
                ("1/2", "NotReady", "0"),
            ),
            (
                {},
                {
                    "phase": "Running",
                    "containerStatuses": [status("a", ended(0, "Completed")), status("b", ended(3, "Error"))],
                },
                ("0/2", "Error", "0"),
            ),
            (
                {"initContainers": INIT},
                {
                    "phase": "Pending",
                    "initContainerStatuses": [status("i1", RUNNING, False, 2, HOURS_AGO), status("s1", waiting(""))],
                },
                ("0/3", "Init:0/3", "2 (4h ago)"),
            ),
            (
                {"initContainers": INIT},
                {
                    "phase": "Pending",
                    "initContainerStatuses": [
                        status("i1", ended(0)),
                        status("s1", RUNNING, True, started=True),
                        status("i2", ended(4, "OOMKilled")),
                    ],
                },
                ("1/3", "Init:OOMKilled", "0"),
            ),
            (
                {"initContainers": INIT},
                {"phase": "Pending", "initContainerStatuses": [status("i1", waiting("ImagePullBackOff"))]},
                ("0/3", "Init:ImagePullBackOff", "0"),
            ),
            (
                {"initContainers": INIT},
                {"phase": "Pending", "initContainerStatuses": [status("i1", ended(1, "", 6))]},
                ("0/3", "Init:Signal:6", "0"),
            ),
            (
                {"initContainers": INIT},
                {
                    "phase": "Running",
                    "initContainerStatuses": [
                        status("i1", ended(0), False, 2, HOURS_AGO),
                        status("s1", RUNNING, True, 1, HOURS_AGO, started=True),
                        status("i2", ended(0)),
                    ],
                    "containerStatuses": [status("a", RUNNING, True), status("b", RUNNING)],
                    "conditions": READY,
                },
                ("2/3", "Running", "1 (4h ago)"),
            ),
            ({}, {"phase": "Running", "reason": "Evicted"}, ("0/2", "Evicted", "0")),
            (
                {},
                {
                    "phase": "Pending",
                    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
                },
                ("0/2", "SchedulingGated", "0"),
            ),
        ],
    )
    def test_a_pod_tells_its_story_in_three_cells(
        self, spec: dict[str, Any], state: dict[str, Any], expected: tuple[str, str, str]
    ) -> None:
        row = cells("v1/pods", spec={"containers": [{"name": "a"}, {"name": "b"}], **spec}, status=state)

        assert tuple(row[1:4]) == expected

    @pytest.mark.parametrize(
        ("state", "expected"),
        [
            ({"phase": "Running"}, "Terminating"),
            ({"phase": "Succeeded"}, "Succeeded"),
            ({"phase": "Running", "reason": "NodeLost"}, "Unknown"),
        ],
    )
    def test_a_pod_that_is_being_deleted_says_so_unless_it_is_over(self, state: dict[str, Any], expected: str) -> None:
        assert cells("v1/pods", metadata={"deletionTimestamp": CREATED}, status=state)[2] == expected

    def test_the_row_of_a_pod_that_has_ended_is_marked(self) -> None:
        row = layout(builtin("v1/pods")).row(stored(status={"phase": "Failed"}), NOW)

        assert row["conditions"] == [
            {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}
        ]

    def test_readiness_gates_are_counted(self) -> None:
        spec = {"readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}], "nodeName": "n"}
        conditions = [{"type": "a", "status": "True"}, {"type": "b", "status": "False"}]

        row = shown("v1/pods", spec=spec, status={"conditions": conditions, "podIPs": [{"ip": "10.0.0.1"}]})

        assert (row["IP"], row["Node"], row["Nominated Node"], row["Readiness Gates"]) == (
            "10.0.0.1",
            "n",
            "<none>",
            "1/2",
        )


class TestKinds:
    @pytest.mark.parametrize(
        ("gvr", "fields", "expected"),
        [
            (
                "apps/v1/deployments",
                {"spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}}, "status": {"readyReplicas": 2}},
                ["x", "2/3", 0, 0, "2m", "", "", "a=b"],
            ),
            (
                "v1/services",
                {
                    "spec": {
                        "type": "NodePort",
                        "clusterIPs": ["10.0.0.9"],
                        "externalIPs": ["10.1.1.1"],
                        "ports": [{"port": 80, "nodePort": 30080}, {"port": 53, "protocol": "UDP"}],
                    }
                },
                ["x", "NodePort", "10.0.0.9", "10.1.1.1", "80:30080/TCP,53/UDP", "2m", "<none>"],
            ),
            (
                "v1/services",
                {"spec": {"type": "LoadBalancer", "clusterIPs": ["10.0.0.9"]}},
                ["x", "LoadBalancer", "10.0.0.9", "<pending>", "<none>", "2m", "<none>"],
            ),
            (
                "networking.k8s.io/v1/ingresses",
                {"spec": {"tls": [{}], "rules": [{"host": "a"}, {}, {"host": "b"}, {"host": "c"}, {"host": "d"}]}},
                ["x", "<none>", "a,b,c + 2 more...", "", "80, 443", "2m"],
            ),
            (
                "batch/v1/jobs",
                {
                    "spec": {"completions": 4},
                    "status": {"succeeded": 1, "startTime": "2026-11-21T08:00:00Z", "completionTime": CREATED},
                },
                ["x", "Running", "1/4", "58m", "2m", "", "", "<none>"],
            ),
            (
                "batch/v1/cronjobs",
                {"spec": {"suspend": True}},
                ["x", "", "<none>", "True", 0, "<none>", "2m", "", "", "<none>"],
            ),
            ("v1/secrets", {"type": "Opaque", "data": {"a": "", "b": ""}}, ["x", "Opaque", 2, "2m"]),
            ("v1/configmaps", {"data": {"a": ""}, "binaryData": {"b": ""}}, ["x", 2, "2m"]),
            ("v1/namespaces", {"status": {"phase": "Active"}}, ["x", "Active", "2m"]),
            ("coordination.k8s.io/v1/leases", {"spec": {"holderIdentity": "me"}}, ["x", "me", "2m"]),
            ("apiextensions.k8s.io/v1/customresourcedefinitions", {}, ["x", CREATED]),
            (
                "v1/resourcequotas",
                {"status": {"hard": {"pods": "10", "limits.cpu": "5"}, "used": {"pods": "2"}}},
                ["x", "pods: 2/10", "limits.cpu: 0/5", "2m"],
            ),
            (
                "discovery.k8s.io/v1/endpointslices",
                {
                    "addressType": "IPv4",
                    "ports": [{"port": 80}, {"name": "b"}, {}, {"port": 1}],
                    "endpoints": [{"addresses": ["10.0.0.1"]}],
                },
                ["x", "IPv4", "80,b,* + 1 more...", "10.0.0.1", "2m"],
            ),
            (
                "autoscaling/v2/horizontalpodautoscalers",
                {
                    "spec": {
                        "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                        "maxReplicas": 5,
                        "metrics": [
                            {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 70}}},
                            {"type": "Pods", "pods": {"target": {"averageValue": "5"}}},
                            {"type": "Odd"},
                        ],
                    },
                    "status": {
                        "currentMetrics": [{"type": "Resource", "resource": {"current": {"averageUtilization": 9}}}]
                    },
                },
                ["x", "Deployment/web", "cpu: 9%/70%, <unknown>/5 + 1 more...", "<unset>", 5, 0, "2m"],
            ),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_a_row_is_what_the_real_server_makes_of_the_object(
        self, gvr: str, fields: dict[str, Any], expected: list[Any]
    ) -> None:
        assert cells(gvr, **fields) == expected

    def test_a_node_shows_its_roles_and_whether_it_can_be_used(self) -> None:
        labels = {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"}
        conditions = [{"type": "Ready", "status": "Unknown"}]
        info = {"kubeletVersion": "v1", "kernelVersion": "6.1", "architecture": "arm64"}

        row = shown(
            "v1/nodes",
            metadata={"labels": labels},
            spec={"unschedulable": True},
            status={"conditions": conditions, "nodeInfo": info},
        )

        assert (row["Status"], row["Roles"]) == ("NotReady,SchedulingDisabled", "gpu,worker")
        assert (row["Version"], row["Kernel-Version"]) == ("v1", "6.1 (arm64)")

    @pytest.mark.parametrize(
        ("gvr", "fields"),
        [
            (
                "v1/events",
                {
                    "involvedObject": {"kind": "Pod", "name": "p"},
                    "message": " hello ",
                    "source": {"component": "me", "host": "h"},
                    "firstTimestamp": "2026-11-21T01:00:00Z",
                    "lastTimestamp": "2026-11-21T07:00:00Z",
                    "count": 4,
                },
            ),
            (
                "events.k8s.io/v1/events",
                {
                    "regarding": {"kind": "Pod", "name": "p"},
                    "note": " hello ",
                    "deprecatedSource": {"component": "me", "host": "h"},
                    "deprecatedFirstTimestamp": "2026-11-21T01:00:00Z",
                    "deprecatedLastTimestamp": "2026-11-21T07:00:00Z",
                    "deprecatedCount": 4,
                },
            ),
        ],
    )
    def test_an_event_reads_the_same_in_both_groups(self, gvr: str, fields: dict[str, Any]) -> None:
        row = cells(gvr, type="Normal", reason="R", **fields)

        assert row == ["120m", "Normal", "R", "pod/p", "", "me, h", "hello", "8h", 4, "x"]


class TestCustomCells:
    OBJECT = stored(
        spec={"size": 3, "ratio": 1.5, "any": {"b": [1, True], "a": None}, "with.dot": "d"},
        status={
            "since": "2026-11-20T08:00:00Z",
            "conditions": [{"type": "A", "status": "no"}, {"type": "Ready", "status": "yes"}],
        },
    )

    @pytest.mark.parametrize(
        ("path", "kind", "expected"),
        [
            (".spec.size", "integer", 3),
            (".spec.ratio", "integer", 1),
            (".spec.ratio", "number", 1.5),
            (".spec.size", "string", "3"),
            (".spec.size", "boolean", None),
            (".spec.any", "string", "map[a:<nil> b:[1 true]]"),
            (".spec.none", "string", None),
            (".status.since", "date", "25h"),
            (".metadata.name", "date", "<invalid>"),
            (".status.conditions[*].type", "string", "A"),
            ('.status.conditions[?(@.type=="Ready")].status', "string", "yes"),
            (".status.conditions[-1].status", "string", "yes"),
            ("['spec']['with.dot']", "string", "d"),
            (r".spec.with\.dot", "string", "d"),
        ],
    )
    def test_a_cell_is_converted_to_the_type_of_its_column(self, path: str, kind: str, expected: Any) -> None:
        found = layout(WIDGETS, [{"name": "C", "type": kind, "jsonPath": path}])

        assert found.cells(self.OBJECT, NOW) == ["x", expected]

    def test_a_path_that_is_none_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"not understood from '\[!\]' on"):
            jsonpath.find(".spec[!]", {})


class TestTable:
    @pytest.mark.parametrize(
        ("include", "expected"),
        [
            ("None", None),
            (
                "Metadata",
                {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": stored()["metadata"]},
            ),
            ("Object", stored(data={})),
        ],
    )
    def test_a_row_carries_as_much_of_the_object_as_was_asked_for(self, include: str, expected: Any) -> None:
        assert layout(builtin("v1/configmaps")).row(stored(data={}), NOW, include=include)["object"] == expected

    def test_the_end_of_the_initial_events_is_marked_even_without_objects(self) -> None:
        bookmark = {"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}}

        row = layout(builtin("v1/pods")).row(bookmark, NOW, include="None")

        assert row["object"]["metadata"] == bookmark["metadata"]

    def test_later_events_of_a_watch_have_no_columns(self) -> None:
        table = layout(builtin("v1/pods")).table([stored()], NOW, metadata={"resourceVersion": "7"}, headers=False)

        assert table["columnDefinitions"] is None
        assert table["metadata"] == {"resourceVersion": "7"}


class TestText:
    @pytest.mark.parametrize(
        ("elapsed", "expected"),
        [
            (-5, "<invalid>"),
            (-1, "0s"),
            (119, "119s"),
            (120, "2m"),
            (5 * 60 + 30, "5m30s"),
            (10 * 60 + 30, "10m"),
            (179 * 60, "179m"),
            (180 * 60, "3h"),
            (3 * 3600 + 12 * 60, "3h12m"),
            (47 * 3600, "47h"),
            (6 * 86400 + 4 * 3600, "6d4h"),
            (9 * 86400, "9d"),
            (3 * 365 * 86400 + 20 * 86400, "3y20d"),
            (9 * 365 * 86400, "9y"),
        ],
    )
    def test_a_duration_is_told_in_two_or_three_figures(self, elapsed: int, expected: str) -> None:
        assert human_duration(timedelta(seconds=elapsed)) == expected

    @UNHURRIED
    @given(st.integers(0, 10**10))
    def test_a_duration_is_never_told_longer_than_it_is(self, elapsed: int) -> None:
        units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 365 * 86400}
        text, told = human_duration(timedelta(seconds=elapsed)), 0
        number = ""
        for character in text:
            if character in units:
                told, number = told + int(number) * units[character], ""
            else:
                number += character

        assert told <= elapsed
        assert elapsed - told <= max(elapsed / 2, 1)

    def test_a_selector_is_spelled_as_in_a_query(self) -> None:
        expressions = [
            {"key": "tier", "operator": "In", "values": ["b", "a"]},
            {"key": "q", "operator": "Exists"},
            {"key": "r", "operator": "DoesNotExist"},
            {"key": "s", "operator": "NotIn", "values": ["c"]},
        ]

        text = selector({"matchLabels": {"app": "web"}, "matchExpressions": expressions})

        assert text == "app=web,q,!r,s notin (c),tier in (a,b)"
