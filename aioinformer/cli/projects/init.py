"""`aioinformer init`: a new project, from the templates of this package."""

from __future__ import annotations

import keyword
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from aioinformer.crds import CustomResource, custom_resource
from aioinformer.errors import OptionError, UsageError
from aioinformer.files import replace_file

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,50}[a-z0-9])?")
_LONGEST: Final = 52
#: What a package of this name would hide from the project and its tests.
_MODULES: Final = sys.stdlib_module_names | {"aiohttp", "aioinformer", "click", "msgspec", "pytest", "tests", "yaml"}
#: The names that the modules of a class and of its reconciler import or define, as kinds.
_IMPORTED: Final = frozenset({"Annotated", "Any", "Column", "Condition", "ObjectMeta", "Request", "Write"})
#: What a project has, with `.txt` at the end of each name, and words such as {package} in names and texts.
_TEMPLATES: Final = Path(__file__).parent / "templates" / "project"


def init_project(folder: Path, group: str, kind: str) -> list[str]:
    """Make a project in a folder of the name of the project, and return the names of its files.

    Raises:
        UsageError: the name, the group or the kind is invalid, or the folder is not empty or cannot be written. Then
            nothing was written.
    """
    name = folder.absolute().name
    _check_name(name)
    declared: CustomResource[object] = custom_resource(type(kind, (), {}), group, "v1alpha1")
    package = name.replace("-", "_")
    module = declared.singular
    for what, word in (("NAME", package), ("--kind", module), ("--kind", kind), ("--kind", declared.plural)):
        if keyword.iskeyword(word):
            whose = f", the plural of {kind}," if word == declared.plural else ""
            raise OptionError(f"{what}: {word}{whose} is a reserved word of Python; choose another name")
    if package in _MODULES:
        raise OptionError(f"NAME: the package {package} would hide the module {package}; choose another name")
    if kind in _IMPORTED:
        raise OptionError(f"--kind: the class {kind} would hide what every project imports; choose another kind")
    if module in ("manager", "reconciler"):
        raise OptionError(f"--kind: {kind} would be the file {module}.py, which every project has; choose another kind")
    words = {
        "name": name,
        "package": package,
        "module": module,
        "kind": kind,
        "group": group,
        "plural": declared.plural,
        "constant": declared.plural.upper(),
    }
    # In the order of ruff: names in upper case first, modules by their names.
    names = sorted((kind, words["constant"]), key=lambda each: (not each.isupper(), each))
    words["imported"] = ",\n    ".join(names) + ","
    parts = sorted((("reconciler", words["plural"]), (module, words["constant"])))
    words["imports"] = "\n".join(f"from {package}.{part} import (\n    {each},\n)" for part, each in parts)
    texts = {}
    for path in sorted(_TEMPLATES.rglob("*.txt")):
        name = _filled(path.relative_to(_TEMPLATES).as_posix().removesuffix(".txt"), words)
        texts[name] = _filled(path.read_text(), words)
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} is not empty: choose another name, or remove it; nothing was written")
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error}") from error
    _write(folder, texts)
    return list(texts)


def _check_name(name: str) -> None:
    """Check that a name is one of Kubernetes, and that of a package of Python once each - is a _.

    Raises:
        OptionError: it is not, with the reason.
    """
    if _NAME.fullmatch(name):
        return
    if len(name) > _LONGEST:
        reason = f"at most {_LONGEST} characters, since the names of pods and Leases begin with it"
    elif name[:1].isdigit():
        reason = "a letter at the beginning, since it becomes the name of a package of Python"
    elif "." in name:
        reason = "no dots, since it becomes the name of a package of Python"
    else:
        reason = "lower-case letters, digits and -, as in website-operator"
    raise OptionError(f"NAME: expected {reason}, not {name!r}")


def _write(folder: Path, texts: dict[str, str]) -> None:
    """Write all files into a folder that is empty or missing, or leave it so.

    Raises:
        UsageError: they cannot be written.
    """
    made: list[Path] = []
    try:
        for name, text in texts.items():
            path = folder / name
            for parent in reversed(path.parents):
                if not parent.exists():
                    parent.mkdir()
                    made.append(parent)
            replace_file(path, [text.encode()])
            made.append(path)
    except OSError as error:
        _remove(made)
        raise UsageError(f"{folder}: cannot be written, and nothing was: {error}") from error


def _remove(made: list[Path]) -> None:
    """Remove files and folders that were made in this order. A folder with files of other programs stays."""
    for path in reversed(made):
        with suppress(OSError):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(f"{{{word}}}", value)
    return text
