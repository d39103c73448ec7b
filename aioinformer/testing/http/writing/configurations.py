"""The bodies of apply requests: YAML, which includes JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from aioinformer.testing.api import statuses
from aioinformer.testing.api.golike import yaml_error
from aioinformer.testing.http.writing.bodies import plain_values
from aioinformer.testing.patches.json_patches import json_type
from aioinformer.testing.patches.repeated_keys import repeated_in_yaml
from aioinformer.transport.auth.yaml_documents import load_all_yaml

if TYPE_CHECKING:
    from aioinformer.testing.api.served import Served


def read_configuration(served: Served, patch: bytes, directive: str) -> tuple[dict[str, Any], list[str]]:
    """Return the applied configuration, and warnings about it.

    Args:
        served: the resource.
        patch: the body.
        directive: what to do about repeated keys: "Ignore", "Warn" or "Strict".

    Raises:
        StatusError: 400.
    """
    try:
        # Only the first of several documents counts.
        wanted = plain_values(next(load_all_yaml(patch), None))
    except yaml.YAMLError as error:
        why = f"error converting YAML to JSON: yaml: {yaml_error(error)}"
        raise statuses.bad_request(f"error decoding YAML: {why}") from None
    if wanted is None:
        wanted = {}
    if not isinstance(wanted, dict):
        why = f"json: cannot unmarshal {json_type(wanted)} into Go value of type map[string]interface {{}}"
        raise statuses.bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")
    _check_kind(served, wanted)
    if isinstance(metadata := wanted.get("metadata"), dict) and metadata.get("managedFields"):
        raise statuses.bad_request("metadata.managedFields must be nil")
    repeated = [] if directive == "Ignore" else repeated_in_yaml(patch)
    if repeated and directive == "Strict":
        lines = "".join(f"\n  {each}" for each in repeated)
        why = f"error converting YAML to JSON: yaml: unmarshal errors:{lines}"
        raise statuses.bad_request(f"error strict decoding YAML: {why}")
    return wanted, repeated


def name_configuration(wanted: dict[str, Any], name: str, *, exists: bool) -> None:
    """Set the name of an applied configuration to that of the URL.

    Args:
        wanted: is changed; it may omit the name if the object exists.
        name: of the URL.
        exists: whether the object exists.

    Raises:
        StatusError: 400, it has another name, or none and the object does not exist.
    """
    metadata = wanted.get("metadata")
    if metadata is None:
        metadata = wanted["metadata"] = {}
    if not isinstance(metadata, dict):
        return
    own_name = metadata.get("name")
    if not own_name:
        if not exists:
            why = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
            raise statuses.bad_request(why)
        metadata["name"] = name
    elif isinstance(own_name, str) and own_name != name:
        raise statuses.bad_request(f"the name of the object ({own_name}) does not match the name on the URL ({name})")


def _check_kind(served: Served, wanted: dict[str, Any]) -> None:
    resource = served.resource
    header = [wanted.get(field) for field in ("apiVersion", "kind")]
    api_version, kind = (each if isinstance(each, str) else "" for each in header)
    if (api_version, kind) != (resource.api_version, resource.kind):
        group, _, version = api_version.rpartition("/")
        raise statuses.bad_request(f"invalid object type: {group}/{version}, Kind={kind}")
