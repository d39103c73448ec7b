"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386), which do not know types.

Both differ from the RFCs where the implementation in API servers does:

- array indexes may be negative and count from the end;
- `replace` of a missing key adds it, and `copy` of a missing key adds null;
- `test` of a missing key succeeds against null;
- the message about a failed operation only says that the request was rejected.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_OPERATIONS = 10_000
_NESTED: Final = (dict, list)


class PatchError(Exception):
    """A patch cannot be applied.

    Attributes:
        reason: of the Status object; "" for errors that the server passes on unchanged.
        cause: what is wrong, where the server does not say it; for logs.
    """

    def __init__(self, message: str, *, status: int = 500, reason: str = "", cause: str = "") -> None:
        super().__init__(f"{message}: {cause}" if cause else message)
        self.status = status
        self.reason = reason
        self.message = message
        self.cause = cause


def json_patch(current: Mapping[str, Any], operations: list[Any]) -> Any:
    """Apply all RFC 6902 operations or none. The arguments are not changed.

    Returns:
        The patched document; an object, unless an operation replaced the root.

    Raises:
        PatchError: there are too many operations (413), or one does not apply (422).
    """
    if len(operations) > _MOST_OPERATIONS:
        raise PatchError(
            "Request entity too large: "
            f"The allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}, got {len(operations)}",
            status=413,
            reason="RequestEntityTooLarge",
        )
    document: Any = json_copy(dict(current))
    for operation in operations:
        document = _apply(document, operation)
    return document


def merge_patch(current: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Apply an RFC 7386 merge patch. The arguments are not changed."""
    return _merge(json_copy(dict(current)), json_copy(dict(patch)))


def json_copy(value: Any) -> Any:
    """Copy a JSON value deeply."""
    if isinstance(value, dict):
        return {key: json_copy(item) if isinstance(item, _NESTED) else item for key, item in value.items()}
    if isinstance(value, list):
        return [json_copy(item) if isinstance(item, _NESTED) else item for item in value]
    return value


def same(left: Any, right: Any) -> bool:
    """Return whether JSON values are equal. Numbers differ from booleans, and integers from floats."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def same_in_go(left: Any, right: Any) -> bool:
    """Return whether values of Go types are equal: null, an empty list, an empty map and a missing field are."""
    if not left and not right and isinstance(left, dict | list | None) and isinstance(right, dict | list | None):
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return all(same_in_go(left.get(key), right.get(key)) for key in left.keys() | right.keys())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_in_go, left, right))
    return same(left, right)


def _merge(current: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    for key, value in patch.items():
        if value is None:
            current.pop(key, None)
        elif isinstance(value, dict):
            before = current.get(key)
            current[key] = _merge(before if isinstance(before, dict) else {}, value)
        else:
            # Unlike the RFC, the server drops nulls from maps in lists, unless the list replaces a map.
            current[key] = value if isinstance(current.get(key), dict) else without_nulls(value)
    return current


def without_nulls(value: Any) -> Any:
    """Return the value without entries of maps that are null."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def _rejected(cause: str) -> PatchError:
    message = "the server rejected our request due to an error in our request"
    return PatchError(message, status=422, reason="Invalid", cause=cause)


def _apply(document: Any, operation: dict[str, Any] | None) -> Any:
    operation = operation or {}
    kind = operation.get("op")
    value = json_copy(operation.get("value"))
    match kind:
        case "replace" | "test" if operation.get("path") == "":
            if kind == "test":
                return _test(document, value, "", document)
            if not isinstance(value, dict | list):
                raise _rejected("replace operation value must be object or array")
            return dict(value) if isinstance(value, dict) else value
        case "add":
            _add(*_find(document, operation, "path"), value)
        case "remove":
            _remove(*_find(document, operation, "path"))
        case "replace":
            container, key = _find(document, operation, "path")
            if isinstance(container, dict):
                container[key] = value
            else:
                container[_index(container, key)] = value
        case "move":
            container, key = _find(document, operation, "from")
            moved = _get(container, key)
            _remove(container, key)
            _add(*_find(document, operation, "path"), moved)
        case "copy":
            copied = json_copy(_get(*_find(document, operation, "from")))
            _add(*_find(document, operation, "path"), copied)
        case "test":
            container, key = _find(document, operation, "path")
            return _test(_get(container, key), value, operation["path"], document)
        case _:
            raise _rejected(f"Unexpected kind: {kind or 'unknown'}")
    return document


def _test(found: Any, expected: Any, path: str, document: Any) -> Any:
    if not same(found, expected):
        raise _rejected(f"testing value {path} failed")
    return document


def _find(document: Any, operation: dict[str, Any], field: str) -> tuple[dict[str, Any] | list[Any], str]:
    pointer = operation.get(field)
    if not isinstance(pointer, str):
        raise _rejected(f"{operation['op']} operation, missing {field} field")
    _, *parts = (part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/"))
    if not parts:
        raise _rejected(f'{operation["op"]} operation does not apply: doc is missing {field}: "{pointer}"')
    container = document
    for part in parts[:-1]:
        container = _get(container, part) if isinstance(container, dict | list) else None
    if not isinstance(container, dict | list):
        raise _rejected(f'{operation["op"]} operation does not apply: doc is missing {field}: "{pointer}"')
    return container, parts[-1]


def _get(container: dict[str, Any] | list[Any], key: str) -> Any:
    if isinstance(container, dict):
        return container.get(key)
    return container[_index(container, key)]


def _add(container: dict[str, Any] | list[Any], key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_index(container, key, extra=1), value)


def _remove(container: dict[str, Any] | list[Any], key: str) -> None:
    if isinstance(container, list):
        del container[_index(container, key)]
    elif key in container:
        del container[key]
    else:
        raise _rejected(f"Unable to remove nonexistent key: {key}")


def _index(items: list[Any], key: str, *, extra: int = 0) -> int:
    size = len(items) + extra
    if not re.fullmatch(r"[+-]?[0-9]+", key):
        raise _rejected(f"value was not a proper array index: '{key}'")
    index = int(key)
    if not -size <= index < size:
        raise _rejected(f"Unable to access invalid index: {index}")
    return index + size if index < 0 else index
