"""`aioinformer migrate`: write the objects of a class again in its stored version, and retire the other versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aioinformer.cli.connecting import connected
from aioinformer.cli.program import Program
from aioinformer.client.client import Client
from aioinformer.client.migration import StorageMigration
from aioinformer.concurrency import create_task
from aioinformer.errors import AioinformerError, UsageError, collapsed
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cli.options import ServerOptions
    from aioinformer.resources.resource import Resource

logger = get_logger("aioinformer.cli")

#: Refused objects that are named.
_NAMED = 100


@dataclass(frozen=True, slots=True)
class MigrateOptions:
    """What to migrate.

    Attributes:
        after: a key; objects up to it are written already.
        dry_run: say what would be done.
    """

    server: ServerOptions
    after: str = ""
    dry_run: bool = False


class MigrateProgram(Program):
    """Prints the result to stdout, and the progress to stderr."""

    def __init__(self, resource: Resource[Any], options: MigrateOptions, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._resource = resource
        self._options = options
        self._write = write
        self._migration: StorageMigration | None = None

    async def run(self) -> int:
        work = create_task(self._migrate(), name=f"migration of {self._resource.group_resource}")
        code = await self.wait_for_end(work, None, 1)
        return await self.stop(work, code)

    def interrupt(self) -> None:
        logger.error("interrupted%s", self._rest())
        self.end(1)

    def _rest(self) -> str:
        last = "" if self._migration is None else self._migration.report.last
        return f"; go on with --after {last}" if last else "; nothing was written"

    async def _migrate(self) -> None:
        try:
            async with connected(self._options.server) as (transport, _):
                client = Client(transport)
                self._migration = StorageMigration(
                    client, self._resource, after=self._options.after, tell=lambda line: logger.info("%s", line)
                )
                if self._options.dry_run:
                    self._print(await self._migration.plan())
                    self.end(0)
                    return
                report = await self._migration.run()
        except UsageError:
            raise
        except (AioinformerError, ExceptionGroup) as error:
            logger.error("%s%s", collapsed(error), self._rest())
            self.end(1)
            return
        others = f"{report.changed} written by others, {report.gone} deleted"
        lines = [f"{report.objects} objects: {report.written} written, {others}"]
        if report.cleaned:
            lines.append(f"{report.cleaned} objects lost managed fields of versions that are not served")
        lines += [f"refused: {key}: {why}" for key, why in list(report.refused.items())[:_NAMED]]
        if len(report.refused) > _NAMED:
            lines.append(f"refused: {len(report.refused) - _NAMED} more")
        stored = ", ".join(report.stored_versions)
        if report.refused:
            lines.append(f"storedVersions stays {stored}: mend the refused objects, and migrate again")
        else:
            lines.append(f"storedVersions is {stored}: the other versions can be removed")
        self._print(lines)
        self.end(1 if report.refused else 0)

    def _print(self, lines: list[str]) -> None:
        self._write("".join(f"{line}\n" for line in lines).encode())
