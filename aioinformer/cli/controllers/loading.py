"""The manager that a command names, and its service account; or the custom resource."""

from __future__ import annotations

import importlib
import sys
import traceback
from typing import TYPE_CHECKING, Any

from aioinformer.controller import Manager
from aioinformer.crds import CustomResource
from aioinformer.errors import UsageError
from aioinformer.factory.pool import checked_namespaces
from aioinformer.logs import visible
from aioinformer.resources.scopes import check_namespace

if TYPE_CHECKING:
    from types import ModuleType


def load_manager(place: str, namespaces: tuple[str, ...] = ()) -> Manager:
    """Return the manager at a place, "MODULE:NAME", with other namespaces if there are any.

    The current directory can be imported from. What the module raises is printed with the frames of the module.

    Raises:
        UsageError: the place has another form, there is no manager, or the module raises.
    """
    module, found = _load(place, "manager", "widgets:manager", Manager)
    if not isinstance(found, Manager):
        raise UsageError(f"{place} is of type {type(found).__name__}, and not a Manager{_others(module, Manager)}")
    if names := [name for each in namespaces for name in each.split(",")]:
        if found.factory is not None:
            raise UsageError(f"--namespace has no effect: the informers of {place} are those of its factory")
        found.namespaces = checked_namespaces(names)
    return found


def load_custom_resource(place: str) -> CustomResource[Any]:
    """Return the custom resource at a place, "MODULE:NAME", which names it or its class; see `load_manager`.

    Raises:
        UsageError: the place has another form, there is no such resource, or the module raises.
    """
    module, found = _load(place, "class", "widgets:Widget", CustomResource)
    if isinstance(found, CustomResource):
        return found
    modules = [module, sys.modules[found.__module__]] if isinstance(found, type) else []
    declared = [each for one in modules for each in vars(one).values() if isinstance(each, CustomResource)]
    for each in declared:
        if each.decoder is found:
            return each
    if isinstance(found, type):
        what = f"the class {found.__name__}"
    else:
        what = f"of type {type(found).__name__}"
    raise UsageError(
        f"{place} is {what}, and its module declares no custom_resource() of it{_others(module, CustomResource)}"
    )


def _load(place: str, what: str, example: str, kind: type[Any]) -> tuple[ModuleType, Any]:
    module_name, colon, name = place.partition(":")
    if not (module_name and colon and name):
        raise UsageError(f"{place!r} does not name a {what}: write MODULE:NAME, such as {example}")
    if module_name.endswith(".py") or "/" in module_name:
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise UsageError(f"{module_name!r} is a file: write the module, {dotted}:{name}")
    module = _import(module_name)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise UsageError(f"module {module_name} has no {name}{_others(module, kind)}")
        found = getattr(found, part)
    return module, found


def _import(name: str) -> ModuleType:
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(
                f"there is no module {error.name!r} in the current directory or on the path of Python; run the command "
                "where `import` finds it, or set PYTHONPATH"
            ) from error
        raise _failed(name, error) from error
    except Exception as error:
        raise _failed(name, error) from error


def _others(module: ModuleType, kind: type[Any]) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, kind)]
    if names:
        return f"; it has {', '.join(f'{module.__name__}:{name}' for name in names)}"
    return ""


def _failed(module: str, error: Exception) -> UsageError:
    """Return the error for a module that raised; print the frames of the module and what it has called."""
    shown = traceback.TracebackException.from_exception(error)
    own = (__file__, importlib.__file__)
    frames = [each for each in shown.stack if each.filename not in own and not each.filename.startswith("<frozen")]
    shown.stack = traceback.StackSummary.from_list(frames)
    lines = "".join(shown.format()).splitlines()[bool(frames) :]  # the headline says nothing
    print("\n".join(map(visible, lines)), file=sys.stderr)
    return UsageError(f"module {module} cannot be imported: {type(error).__name__}: {error}")


def service_account(text: str | None, manager: Manager) -> tuple[str, str]:
    """Return the name and the namespace of the service account.

    Raises:
        UsageError: the text is neither `NAME` nor `NAMESPACE/NAME`.
    """
    placed = manager.leader_election or manager.webhooks
    namespace, slash, name = (text or manager.name).rpartition("/")
    namespace = namespace or (placed.namespace if placed is not None else "default")
    if not name or (slash and not namespace):
        raise UsageError(f"--service-account must be NAME or NAMESPACE/NAME, not {text!r}")
    check_namespace(namespace, "--service-account")
    return name, namespace
