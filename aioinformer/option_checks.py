"""Checks of single options: a value that makes no sense is refused where it is given, with the name of the option."""

from __future__ import annotations

from typing import Any

from aioinformer.errors import OptionError
from aioinformer.options import ReflectorOptions


def checked_fields(paths: Any) -> list[str]:
    """Return the paths as a list.

    Raises:
        OptionError: they are no list of strings.
    """
    if isinstance(paths, str):
        raise OptionError(f"fields must be a list of paths, not a string: fields=[{paths!r}]")
    try:
        found = list(paths)
    except TypeError:
        raise OptionError(f"fields must be a list of paths, not {paths!r}") from None
    for path in found:
        if not isinstance(path, str):
            raise OptionError(f"fields must be paths such as 'spec.nodeName', not {path!r}")
    return found


def check_share(share: Any, name: str = "max_undecodable") -> None:
    """Do nothing if this is a share, or None.

    Raises:
        OptionError: it is not.
    """
    if share is None:
        return
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise OptionError(f"{name} must be a share from 0 to 1, or None for no limit, not {share!r}")


def check_seconds(seconds: Any, name: str) -> None:
    """Do nothing if this is a number of seconds.

    Raises:
        OptionError: it is not.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise OptionError(f"{name} must be a number of seconds, 0 or more, not {seconds!r}")


def check_metrics(metrics: Any) -> None:
    """Do nothing if informers can be registered with this, or it is None.

    Raises:
        OptionError: they cannot.
    """
    if metrics is not None and (isinstance(metrics, type) or not callable(getattr(metrics, "register", None))):
        kind = f"the class {metrics.__name__}" if isinstance(metrics, type) else type(metrics).__name__
        raise OptionError(f"metrics must be a provider such as PrometheusMetrics(), not {kind}")


def check_options(options: Any) -> None:
    """Do nothing if these are `ReflectorOptions`, or None.

    Raises:
        OptionError: they are not.
    """
    if options is not None and not isinstance(options, ReflectorOptions):
        raise OptionError(f"options must be a ReflectorOptions(...), not {type(options).__name__}")


def check_indexers(indexers: Any) -> None:
    """Do nothing if this is a mapping, or None.

    Raises:
        OptionError: it is not.
    """
    if indexers is not None and not hasattr(indexers, "items"):
        raise OptionError(
            f'indexers must map names to functions or paths, {{"node": …}}, not {type(indexers).__name__}'
        )
