"""The options of `watch`, and checks that need no server."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING

from aioinformer.errors import UsageError
from aioinformer.resources.selectors import parse_field_selector, parse_label_selector

if TYPE_CHECKING:
    from aioinformer.cli.targets import Target


class Output(StrEnum):
    """The output format of `watch`."""

    TEXT = "text"
    JSONL = "jsonl"
    JSON = "json"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The server, by kubeconfig or by URL.

    Attributes:
        kubeconfig: a file; None for the usual places.
        context: a context of the kubeconfig; None for the current one.
        server: a URL; the three options below require it.
    """

    kubeconfig: str | None = None
    context: str | None = None
    server: str | None = None
    token_file: str | None = None
    certificate_authority: str | None = None
    insecure_skip_tls_verify: bool = False

    def __post_init__(self) -> None:
        given = {
            f"--{field.name.replace('_', '-')}"
            for field in fields(self)
            if getattr(self, field.name) not in (None, False)
        }
        if "--server" in given:
            if clash := given & {"--kubeconfig", "--context"}:
                raise UsageError(f"--server connects without a kubeconfig; omit {_joined(clash)}, or --server")
        elif alone := given - {"--kubeconfig", "--context"}:
            raise UsageError(f"{_joined(alone)} requires --server; with a kubeconfig, set it there")
        if {"--certificate-authority", "--insecure-skip-tls-verify"} <= given:
            raise UsageError("--certificate-authority has no effect with --insecure-skip-tls-verify; omit one of them")


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What to watch, what to print, and when to end.

    Attributes:
        targets: resources, or one object of each.
        namespace: None for that of the context.
        resync: the resync period in seconds, 0 for none; the informer raises values below 1 to 1 and logs that.
        until_synced: end after the initial list.
        exit_after: end after this number of notifications that follow the initial list.
        timeout: end after this number of seconds.
    """

    targets: tuple[Target, ...]
    output: Output = Output.JSONL
    server: ServerOptions = ServerOptions()
    namespace: str | None = None
    all_namespaces: bool = False
    selector: str = ""
    field_selector: str = ""
    resync: float = 0.0
    metadata_only: bool = False
    until_synced: bool = False
    exit_after: int | None = None
    dump_on_exit: bool = False
    timeout: float | None = None
    show_secrets: bool = False

    def __post_init__(self) -> None:
        parse_label_selector(self.selector)
        parse_field_selector(self.field_selector)
        if not 0 <= self.resync < float("inf"):
            raise UsageError(f"--resync must be 0 (none) or a number of seconds, not {self.resync:g}")
        if self.exit_after is not None and self.exit_after < 1:
            raise UsageError(
                f"--exit-after must be at least 1, not {self.exit_after}; --until-synced ends after the initial list"
            )
        if self.timeout is not None and not 0 < self.timeout < float("inf"):
            raise UsageError(f"--timeout must be more than 0 seconds, not {self.timeout:g}")
        if self.namespace is not None and not self.namespace:
            raise UsageError("--namespace must not be empty; use --all-namespaces for all namespaces")
        if self.all_namespaces and (named := next((target for target in self.targets if target.name), None)):
            raise UsageError(f"{named} is one object; use --namespace instead of --all-namespaces")

    @property
    def conditional(self) -> bool:
        """Whether the run succeeds only if an exit condition is met."""
        return self.until_synced or self.exit_after is not None


def _joined(names: set[str]) -> str:
    return " and ".join(sorted(names))
