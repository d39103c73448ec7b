"""`aioinformer dashboards`: a Grafana dashboard and Prometheus alert rules, from the tables `PANELS` and `ALERTS`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import yaml

from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

DASHBOARD: Final = "aioinformer-dashboard.json"
ALERT_RULES: Final = "aioinformer-alerts.yaml"
#: Panels in a row of the dashboard, which has 24 columns, and the height of each.
_IN_A_ROW, _COLUMNS, _HEIGHT = 3, 24, 8


class Panel(msgspec.Struct, frozen=True):
    """A graph: its expressions by legend, and the unit of its values."""

    title: str
    expressions: dict[str, str]
    unit: str = "short"


class Alert(msgspec.Struct, frozen=True):
    """An alert: when it fires, after which time, and what to do."""

    name: str
    expression: str
    lasts: str
    summary: str
    remedy: str
    severity: str = "warning"


def _rate(metric: str) -> str:
    return f"rate({metric}[$__rate_interval])"


def _percentile(metric: str, by: str) -> dict[str, str]:
    rates = f"sum by ({by}, le) ({_rate(f'{metric}_bucket')})"
    return {f"{{{{{by}}}}} {share:.0%}": f"histogram_quantile({share}, {rates})" for share in (0.5, 0.99)}


PANELS: Final = (
    Panel("Managers that are ready", {"{{manager}}": "manager_ready"}),
    Panel("Leader", {"{{name}}": "sum by (name) (leader_election_master_status)"}),
    Panel("Phases of controllers", {"{{controller}} {{phase}}": "controller_phase == 1"}),
    Panel(
        "Attempts a second, by result",
        {"{{controller}} {{result}}": f"sum by (controller, result) ({_rate('controller_runtime_reconcile_total')})"},
    ),
    Panel("Duration of attempts", _percentile("controller_runtime_reconcile_time_seconds", "controller"), "s"),
    Panel("From a change to the end of its run", _percentile("controller_change_to_end_seconds", "controller"), "s"),
    Panel("Parked keys", {"{{controller}} {{reason}}": "controller_parked_keys"}),
    Panel("Failing keys", {"{{controller}}": "controller_failing_keys"}),
    Panel("Oldest key that is ready", {"{{controller}}": "controller_oldest_key_seconds"}, "s"),
    Panel("Keys that wait for a worker", {"{{name}}": "workqueue_depth"}),
    Panel(
        "Busy workers",
        {"{{controller}}": "controller_runtime_active_workers / controller_runtime_max_concurrent_reconciles"},
        "percentunit",
    ),
    Panel(
        "Longest attempt and handler",
        {
            "{{name}}": "workqueue_longest_running_processor_seconds",
            "{{name}} {{resource}}": "informer_longest_running_handler_seconds",
        },
        "s",
    ),
    Panel(
        "Runs a second that a controller caused itself",
        {"{{controller}}": "rate(controller_self_caused_runs_total[5m])"},
    ),
    Panel("Wait for own writes", _percentile("controller_own_write_wait_seconds", "controller"), "s"),
    Panel(
        "Errors of functions of inputs, and lost changes, a second",
        {
            "{{controller}} {{input}}": _rate("controller_input_errors_total"),
            "{{controller}} {{input}} lost": _rate("controller_lost_changes_total"),
        },
    ),
    Panel(
        "Slots of rings: the longest time without an owner",
        {"{{name}}": "max by (name) (ring_unowned_slots_seconds)"},
        "s",
    ),
    Panel(
        "Slots of rings, by owner",
        {"{{name}} {{owner}}": "count by (name, owner) (max by (name, slot, owner) (ring_slot_owner))"},
    ),
    Panel("Staleness of caches", {"{{name}} {{resource}}": "informer_stale_seconds"}, "s"),
    Panel("Objects in caches", {"{{name}} {{resource}}": "informer_store_items"}),
    Panel("Pending notifications", {"{{name}} {{resource}}": "informer_pending_notifications"}),
    Panel(
        "Lists a second, by reason",
        {"{{name}} {{resource}} {{reason}}": _rate("reflector_relists_total")},
    ),
    Panel(
        "Requests a second",
        {"{{method}} {{code}}": f"sum by (method, code) ({_rate('rest_client_requests_total')})"},
    ),
    Panel("Duration of requests", _percentile("rest_client_request_duration_seconds", "verb"), "s"),
)

ALERTS: Final = (
    Alert(
        "AioinformerCacheStale",
        "informer_stale_seconds > 60",
        "5m",
        "The cache of {{ $labels.resource }} in {{ $labels.name }} has not followed the server for "
        "{{ $value | humanizeDuration }}.",
        "Read informer_phase, and the log for the reason: the permissions, the credentials, or the network.",
        "critical",
    ),
    Alert(
        "AioinformerNotReady",
        "manager_ready == 0",
        "15m",
        "The manager {{ $labels.manager }} is not ready.",
        "Request /readyz?verbose, which names the checks that fail.",
    ),
    Alert(
        "AioinformerNoLeader",
        "sum by (name) (leader_election_master_status) == 0",
        "5m",
        "No process leads the Lease {{ $labels.name }}: its controllers do not run.",
        "Compare the holder of the Lease with the processes that run, and read their logs.",
        "critical",
    ),
    Alert(
        "AioinformerSlotsUnowned",
        "max by (name) (ring_unowned_slots_seconds) > 25",
        "1m",
        "A slot of the ring {{ $labels.name }} has had no owner for {{ $value | humanizeDuration }}: nothing "
        "reconciles its objects.",
        "manager.snapshot() says why nobody can take it. Compare the Leases of the ring with the replicas that run.",
        "critical",
    ),
    Alert(
        "AioinformerKeysParked",
        "sum by (controller, reason) (controller_parked_keys) > 0",
        "15m",
        "{{ $value }} keys of {{ $labels.controller }} are parked ({{ $labels.reason }}).",
        "manager.parked(controller) names them with the reasons. Correct the cause; then call manager.retry_parked.",
    ),
    Alert(
        "AioinformerErrors",
        "sum by (controller) (rate(controller_runtime_reconcile_errors_total[10m]))"
        " / sum by (controller) (rate(controller_runtime_reconcile_total[10m])) > 0.1",
        "15m",
        "{{ $value | humanizePercentage }} of the attempts of {{ $labels.controller }} fail.",
        "manager.snapshot() names the failing keys with the place of the last error.",
    ),
    Alert(
        "AioinformerWorkerStuck",
        "workqueue_longest_running_processor_seconds > 600",
        "5m",
        "An attempt of {{ $labels.name }} has been running for {{ $value | humanizeDuration }}.",
        "manager.snapshot() names its key. Give the controller a timeout.",
    ),
    Alert(
        "AioinformerHandlerStuck",
        "informer_longest_running_handler_seconds > 300",
        "1m",
        "A handler of {{ $labels.resource }} in {{ $labels.name }} has run for {{ $value | humanizeDuration }}.",
        "The log and informer.snapshot() name it. Limit what it awaits with asyncio.timeout.",
    ),
    Alert(
        "AioinformerKeysWait",
        "controller_oldest_key_seconds > 300",
        "10m",
        "The oldest key of {{ $labels.controller }} has waited for a worker for {{ $value | humanizeDuration }}.",
        "Make the attempts shorter, or give the controller more workers.",
    ),
    Alert(
        "AioinformerControllerLoops",
        "rate(controller_self_caused_runs_total[10m]) > 0",
        "10m",
        "The writes of {{ $labels.controller }} cause its own next runs.",
        "The log names the field that flaps. Write only what differs, or filter the change with when=.",
    ),
    Alert(
        "AioinformerInputFails",
        "increase(controller_input_errors_total[10m]) > 0",
        "0m",
        "A function of the input {{ $labels.input }} of {{ $labels.controller }} raises: changes may be missed.",
        "The log has its traceback.",
    ),
)


def dashboard() -> bytes:
    """Return the dashboard as JSON, for the import of Grafana."""
    width = _COLUMNS // _IN_A_ROW
    panels = [
        {
            "id": number + 1,
            "type": "timeseries",
            "title": each.title,
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "gridPos": {"h": _HEIGHT, "w": width, "x": number % _IN_A_ROW * width, "y": number // _IN_A_ROW * _HEIGHT},
            "fieldConfig": {"defaults": {"unit": each.unit, "min": 0}, "overrides": []},
            "targets": [
                {"refId": chr(ord("A") + at), "expr": expression, "legendFormat": legend}
                for at, (legend, expression) in enumerate(each.expressions.items())
            ],
        }
        for number, each in enumerate(PANELS)
    ]
    variable = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
    head = {"uid": "aioinformer", "title": "aioinformer", "schemaVersion": 39, "refresh": "30s"}
    shown = {"time": {"from": "now-1h", "to": "now"}, "templating": {"list": [variable]}, "panels": panels}
    return msgspec.json.format(msgspec.json.encode({**head, **shown})) + b"\n"


def alert_rules() -> bytes:
    """Return the alert rules as YAML, for `rule_files` of Prometheus."""
    rules = [
        {
            "alert": each.name,
            "expr": each.expression,
            "for": each.lasts,
            "labels": {"severity": each.severity},
            "annotations": {"summary": each.summary, "description": each.remedy},
        }
        for each in ALERTS
    ]
    text: str = yaml.safe_dump({"groups": [{"name": "aioinformer", "rules": rules}]}, sort_keys=False, width=120)
    return text.encode()


def write(folder: Path) -> list[Path]:
    """Write both files into a folder, which is created if it is missing; return their paths.

    Raises:
        UsageError: a file cannot be written.
    """
    documents = {folder / DASHBOARD: dashboard(), folder / ALERT_RULES: alert_rules()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, document in documents.items():
            path.write_bytes(document)
    except OSError as error:
        raise UsageError(f"--output {folder}: {error.strerror or error}; name a folder that can be written") from error
    return list(documents)
