"""A type of contracts for import-linter: the modules of some rooms are pure, also those that are new.

A pure module imports no forbidden one, neither itself nor by another module. The contract `pure-core` of pyproject.toml
has this type:

- `rooms`: packages, all of whose modules are pure, and single modules of other packages.
- `shells`: the modules of these rooms that need not be pure. One that is pure is an error: take it from the list.
- `forbidden_modules`: such as `asyncio`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from importlinter import Contract, ContractCheck, fields, output

if TYPE_CHECKING:
    from collections.abc import Iterable

    from grimp import ImportGraph


class PureRooms(Contract):
    """Check that no module of `rooms` but the `shells` imports one of the forbidden modules."""

    rooms = fields.SetField(subfield=fields.StringField())
    shells = fields.SetField(subfield=fields.StringField())
    forbidden_modules = fields.SetField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        rooms, shells = names(self.rooms), names(self.shells)
        forbidden = names(self.forbidden_modules) & graph.modules
        impure = {module for each in forbidden for module in graph.find_downstream_modules(each)}
        modules = {module for room in rooms for module in (room, *descendants(graph, room))}
        problems = [f"{module} is no module of the rooms." for module in sorted(shells - modules)]
        problems += [f"{module} is pure: take it from the shells." for module in sorted(shells & modules - impure)]
        problems += [chain_of(graph, module, forbidden) for module in sorted(modules & impure - shells)]
        return ContractCheck(kept=not problems, metadata={"problems": problems})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for problem in check.metadata["problems"]:
            output.print_error(problem)


def names(field: Any) -> set[str]:
    """Return the value of a field of a contract, which replaces the field in its instances."""
    return cast("set[str]", field)


def descendants(graph: ImportGraph, room: str) -> set[str]:
    """Return all modules below a room; a name that is misspelt is an error.

    Raises:
        ValueError: there is no such room.
    """
    if room not in graph.modules:
        raise ValueError(f"The contract names {room}, which is no module")
    return graph.find_descendants(room)


def chain_of(graph: ImportGraph, module: str, forbidden: Iterable[str]) -> str:
    """Return the shortest way by which a module imports a forbidden one."""
    found = (graph.find_shortest_chain(module, each) for each in forbidden)
    shortest = min((chain for chain in found if chain is not None), key=len)
    return " -> ".join(shortest)
