"""The selectors of jobs: unique labels, unless the client sets them."""

from __future__ import annotations

from typing import Any

PREFIX = "batch.kubernetes.io/"
_UID, _NAME = "controller-uid", "job-name"


def own_labels(metadata: dict[str, Any]) -> dict[str, str]:
    """Return the labels of a job's pods, those without a prefix first."""
    values = {_UID: str(metadata.get("uid", "")), _NAME: str(metadata.get("name", ""))}
    return {f"{prefix}{name}": value for prefix in ("", PREFIX) for name, value in values.items()}


def settle_selector(job: dict[str, Any]) -> None:
    """Add the selector and the labels of a job, unless its client manages them.

    Args:
        job: is changed; has a name and a uid.
    """
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return
    labels = own_labels(metadata)
    template = spec["template"].setdefault("metadata", {})
    own = template.get("labels") or {}
    template["labels"] = {**labels, **own}
    if (metadata.get("labels") or {}) == own:
        # A job without labels of its own gets those of its pods, including these.
        metadata["labels"] = dict(template["labels"])
    selector = spec["selector"] = dict(spec.get("selector") or {})
    key = f"{PREFIX}{_UID}"
    selector["matchLabels"] = {key: labels[key], **(selector.get("matchLabels") or {})}
