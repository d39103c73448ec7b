"""`aioinformer check`: print the RBAC manifest of a manager, and say what a cluster lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aioinformer.cli.connecting import connected
from aioinformer.cli.controllers.manifest import manifest
from aioinformer.cli.controllers.needs import needs, undeclared
from aioinformer.cli.controllers.review import lacking
from aioinformer.cli.program import Program
from aioinformer.concurrency import create_task
from aioinformer.errors import AioinformerError, UsageError
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cli.options import ServerOptions
    from aioinformer.controller import Manager

logger = get_logger("aioinformer.cli")

_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What to check.

    Attributes:
        account: the service account of the manager: name and namespace.
        user: whose permissions to review; "" for those of the connection.
    """

    server: ServerOptions
    account: tuple[str, str]
    user: str = ""
    form: str = "yaml"

    @property
    def chosen(self) -> bool:
        """Whether an option names the cluster, so that its absence is an error."""
        return any((self.server.kubeconfig, self.server.context, self.server.server))


class CheckProgram(Program):
    """Prints the manifest to stdout, and what the cluster lacks to stderr."""

    def __init__(self, manager: Manager, options: CheckOptions, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._manager = manager
        self._options = options
        self._write = write

    async def run(self) -> int:
        rules = needs(self._manager)
        name, namespace = self._options.account
        notes = [f"What manager {self._manager.name} needs. Apply it with: kubectl apply -f -"]
        for writer in undeclared(self._manager):
            note = f"{writer[0].upper()}{writer[1:]} does not declare its writes; pass writes= to it, and check again."
            notes.append(note)
            logger.warning("%s", note)
        self._write(manifest(name, namespace, rules, notes, self._options.form).encode())
        work = create_task(self._review(), name="review of the cluster")
        code = await self.wait_for_end(work, _TIMEOUT, 1)
        return await self.stop(work, code)

    def interrupt(self) -> None:
        logger.error("interrupted before the cluster was checked")
        self.end(1)

    def time_out(self, code: int) -> None:
        logger.error("the cluster did not answer within %g s", _TIMEOUT)
        super().time_out(code)

    async def _review(self) -> None:
        try:
            async with connected(self._options.server) as (transport, _):
                found = await lacking(transport, needs(self._manager), self._options.user)
        except UsageError as error:
            if self._options.chosen:
                raise
            logger.info("no cluster was looked at: %s", error)
            self.end(0)
        except AioinformerError as error:
            logger.error("the cluster could not be checked: %s", error)
            self.end(1)
        else:
            for line in found:
                logger.error("%s", line)
            if found:
                logger.error("the cluster lacks %d of what manager %s needs", len(found), self._manager.name)
            else:
                logger.info("the cluster has all that manager %s needs", self._manager.name)
            self.end(1 if found else 0)
