"""What `watch` was asked for, checked as far as that is possible without a server."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING

from aioinformer.errors import UsageError
from aioinformer.resources.selectors import parse_field_selector, parse_label_selector

if TYPE_CHECKING:
    from aioinformer.cli.targets import Target


class Output(StrEnum):
    """The form of what `watch` prints."""

    TEXT = "text"
    JSONL = "jsonl"
    JSON = "json"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Which server; by kubeconfig, or by URL.

    Attributes:
        kubeconfig: file, None for the usual places.
        context: None for the current one.
        server: URL; the three below go with it.
        token_file: file with a bearer token.
        certificate_authority: file of PEM certificates to trust.
        insecure_skip_tls_verify: trust any certificate.
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
                raise UsageError(f"--server names a server without a kubeconfig; leave out {_listed(clash)}")
        elif lone := given - {"--kubeconfig", "--context"}:
            raise UsageError(f"{_listed(lone)} goes with --server; a kubeconfig says this itself")
        if {"--certificate-authority", "--insecure-skip-tls-verify"} <= given:
            raise UsageError("--certificate-authority has no effect beside --insecure-skip-tls-verify; leave one out")


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What to watch, what to print, and when to end.

    Attributes:
        targets: resources, or one object of each.
        output: the form of what is printed.
        server: which server.
        namespace: None for the context's.
        all_namespaces: watch all of them.
        selector: label selector.
        field_selector: field selector.
        resync: seconds, 0 for none; the informer raises what is less than 1 to 1, and says so.
        metadata_only: without anything but metadata.
        until_synced: end after the initial list.
        exit_after: end after so many notifications after the initial list.
        dump_on_exit: print the store at the end.
        timeout: seconds after which to give up.
        show_secrets: print the values of Secrets.
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
            raise UsageError(f"--exit-after must be at least 1, not {self.exit_after}; --until-synced counts none")
        if self.timeout is not None and not 0 < self.timeout < float("inf"):
            raise UsageError(f"--timeout must be more than 0 seconds, not {self.timeout:g}")
        if self.namespace is not None and not self.namespace:
            raise UsageError("--namespace must not be empty; use --all-namespaces for all")
        if self.all_namespaces and (named := next((target for target in self.targets if target.name), None)):
            raise UsageError(f"{named} is one object; name its namespace instead of --all-namespaces")

    @property
    def conditional(self) -> bool:
        """Whether something has to come true before the end is a success."""
        return self.until_synced or self.exit_after is not None


def _listed(names: set[str]) -> str:
    return " and ".join(sorted(names))
