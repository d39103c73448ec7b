"""The commands for controllers and their projects, with their help."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from aioinformer.cli.help import POSITIVE, Command, F, is_terminal, server_options
from aioinformer.cli.options import ServerOptions
from aioinformer.cli.program import run_program
from aioinformer.cli.shutdown import shutdown

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cli.program import Program

_NAMESPACES = click.option(
    "-n",
    "--namespace",
    "namespaces",
    metavar="NS",
    multiple=True,
    help="Only this namespace; can be repeated, or separated by commas. Default: those of the manager.",
)


def _service_account(what: str) -> Callable[[F], F]:
    default = "the manager's name, in the namespace of its Lease, or default."
    return click.option("--service-account", metavar="[NS/]NAME", help=f"{what}. Default: {default}")


_LOG_LEVEL = click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="info",
    show_default=True,
    help="Least level of the log lines on stderr.",
)


@click.command(cls=Command, short_help="Show what controllers need of a cluster.")
@click.argument("manager", metavar="MODULE:NAME")
@_NAMESPACES
@click.option("--kubeconfig", metavar="FILE", help="Default: KUBECONFIG, ~/.kube/config, then in-cluster.")
@server_options
@_service_account("Service account of the manifest")
@click.option("--as", "user", metavar="USER", default="", help="Review the permissions of this user instead of yours.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="Form of the manifest.",
)
@_LOG_LEVEL
def check(
    manager: str,
    namespaces: tuple[str, ...],
    service_account: str | None,
    user: str,
    output: str,
    log_level: str,
    **server: Any,
) -> None:
    """Print the RBAC manifest that a manager of controllers needs, and compare it with a cluster.

    MODULE:NAME is the manager: module and variable. The current directory can be imported from.

    stdout is a manifest for kubectl: a ServiceAccount, Roles or ClusterRoles, and their bindings. They
    permit what the inputs and the declared writes (writes=) of the controllers need, Events, and
    the Lease of the leader election. stderr says what the cluster lacks: kinds, versions, and
    permissions by SelfSubjectAccessReview. Without a cluster, stderr says that none was looked at.

    \b
    Examples:
      aioinformer check widgets:manager
      aioinformer check widgets:manager -n shop,prod | kubectl apply -f -
      aioinformer check widgets:manager --as system:serviceaccount:default:widgets > /dev/null

    \b
    Exit codes:
      0  nothing is missing, or no cluster is configured
      1  something is missing, the cluster did not answer, or a signal ended the command
      2  a bad option, an unreadable kubeconfig, or no such manager
    """
    from aioinformer.cli.controllers.check import CheckOptions, CheckProgram
    from aioinformer.cli.controllers.loading import load_manager
    from aioinformer.cli.controllers.loading import service_account as account_of

    shutdown.code = 1
    loaded = load_manager(manager, namespaces)
    options = CheckOptions(ServerOptions(**server), account_of(service_account, loaded), user, output)
    sys.exit(run_program(lambda write: CheckProgram(loaded, options, write), log_level.upper(), is_endless=False))


@click.command(cls=Command, short_help="List what controllers have left in a cluster.")
@click.argument("manager", metavar="MODULE:NAME")
@_NAMESPACES
@click.option("--kubeconfig", metavar="FILE", help="Default: KUBECONFIG, ~/.kube/config, then in-cluster.")
@server_options
@click.option("--dry-run", is_flag=True, help="Required: the command lists, and removes nothing.")
@_LOG_LEVEL
def uninstall(manager: str, namespaces: tuple[str, ...], dry_run: bool, log_level: str, **server: Any) -> None:
    """List what a manager of controllers has left in a cluster. Nothing is removed.

    MODULE:NAME is the manager: module and variable. The current directory can be imported from.

    stdout has a line for each object: those of which the controllers have set fields or finalizers, as
    managed fields say, of the kinds that they declare; and the Leases, ConfigMap, Secret, webhook
    configurations and definitions of the manager itself.

    \b
    Example:
      aioinformer uninstall widgets:manager --dry-run

    \b
    Exit codes:
      0  everything was listed
      1  the cluster did not answer or refused, or a signal ended the command
      2  a bad option, no --dry-run, an unreadable kubeconfig, or no such manager
    """
    from aioinformer.cli.controllers.loading import load_manager
    from aioinformer.cli.controllers.uninstall import UninstallProgram

    if not dry_run:
        raise click.UsageError("pass --dry-run: the command lists what is left, and removes nothing")
    shutdown.code = 1
    loaded = load_manager(manager, namespaces)
    options = ServerOptions(**server)
    sys.exit(run_program(lambda write: UninstallProgram(loaded, options, write), log_level.upper(), is_endless=False))


@click.command(cls=Command, short_help="Write a Grafana dashboard and alert rules.")
@click.option(
    "-o", "--output", metavar="DIR", type=click.Path(path_type=Path), required=True, help="Folder to write to."
)
@click.option(
    "--runbook-url",
    metavar="URL",
    default="",
    help="Address of a copy of Troubleshooting: each alert links to its section. Default: no links.",
)
@click.option("--leave-out", metavar="ALERT", multiple=True, help="Leave out the alert of this name; can be repeated.")
def dashboards(output: Path, runbook_url: str, leave_out: tuple[str, ...]) -> None:
    """Write a Grafana dashboard and Prometheus alert rules for the metrics of controllers and informers.

    The files are aioinformer-dashboard.json, which Grafana imports, and aioinformer-alerts.yaml, for
    rule_files of Prometheus. Existing files of these names are replaced.

    \b
    Examples:
      aioinformer dashboards -o monitoring
      aioinformer dashboards -o monitoring --runbook-url https://docs.example.com/troubleshooting/
      aioinformer dashboards -o monitoring --leave-out AioinformerKeysWait
    """
    from aioinformer.cli.controllers.dashboards import write

    for path in write(output, runbook_url, leave_out):
        click.echo(path)


@click.command(cls=Command, short_help="Run controllers.")
@click.argument("manager", metavar="MODULE:NAME")
@_NAMESPACES
@click.option("--kubeconfig", metavar="FILE", help="Default: KUBECONFIG, ~/.kube/config, then in-cluster.")
@server_options
@click.option(
    "--health-port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help="Port of /livez, /readyz and, with prometheus-client, /metrics. Default: that of the manager.",
)
@click.option(
    "--debug-port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help="Port of the debug page, on the loopback interface. Default: that of the manager.",
)
@click.option("--debug-values", is_flag=True, help="The page shows values in the diffs of objects; of Secrets, none.")
@click.option("--debug-retry", is_flag=True, help="The page may run parked keys again.")
@click.option("--report-file", metavar="FILE", default="", help="Write the report at SIGUSR1 here. Default: the log.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the log lines on stderr.",
)
@_LOG_LEVEL
@click.option(
    "--dry-run",
    is_flag=True,
    help="Log writes as diffs, and Events, and do not send them. No leader election. Your calls elsewhere do run.",
)
@click.option("--show-values", is_flag=True, help="The diffs of a dry run have values; of Secrets, none.")
def run(
    manager: str,
    namespaces: tuple[str, ...],
    health_port: int | None,
    debug_port: int | None,
    debug_values: bool,
    debug_retry: bool,
    report_file: str,
    log_format: str,
    log_level: str,
    dry_run: bool,
    show_values: bool,
    **server: Any,
) -> None:
    """Run a manager of controllers until SIGTERM or SIGINT. A second signal ends it at once.

    MODULE:NAME is the manager: module and variable. The current directory can be imported from.
    Options replace what the manager was made with. Log lines go to stderr.

    \b
    Examples:
      aioinformer run widgets:manager
      aioinformer run widgets:manager -n shop --dry-run --show-values
      aioinformer run widgets:manager --health-port 8080 --log-format json --log-level warning
      aioinformer run widgets:manager --debug-port 8081

    SIGUSR1 writes a report: what is wrong, and the state of controllers, keys and caches, as JSON.

    \b
    Exit codes:
      0  ended by a signal
      1  a controller has failed for good
      2  a bad option, an unreadable kubeconfig, no cluster, or no such manager
    """
    from aioinformer.cli.controllers.loading import load_manager
    from aioinformer.cli.controllers.run import configure_logging, run_manager

    configure_logging(log_format, log_level)
    loaded = load_manager(manager, namespaces)
    options = ServerOptions(**server)
    loaded.dry_run = loaded.dry_run or dry_run
    if show_values and not loaded.dry_run:
        raise click.UsageError("--show-values needs --dry-run: no other log has values")
    loaded.show_values = loaded.show_values or show_values
    if health_port is not None:
        loaded.health_port = health_port
    if debug_port is not None:
        loaded.debug_port = debug_port
    if debug_values or debug_retry:
        if loaded.debug_port is None:
            raise click.UsageError("--debug-values and --debug-retry need --debug-port: there is no page without it")
        loaded.debug_app(values=debug_values, retry=debug_retry)
    sys.exit(run_manager(loaded, options, report_file))


@click.command(cls=Command, short_help="Show in a terminal what a running manager does.")
@click.option("--attach", metavar="URL", required=True, help="Address of the debug page: http://127.0.0.1:8081/")
@click.option(
    "--interval",
    metavar="SECONDS",
    type=click.FloatRange(1, 60),
    default=2.0,
    show_default=True,
    help="Seconds between two reports.",
)
@click.option("--duration", metavar="SECONDS", type=POSITIVE, help="Run time. Default: until q or Ctrl-C.")
@click.option("--token-file", metavar="FILE", help="Bearer token for the page, read again when it changes.")
def top(attach: str, interval: float, duration: float | None, token_file: str | None) -> None:
    """Show the first screen of the debug page of a manager: what is wrong, and the keys of interest.

    On a terminal, the keys are: q quits, Tab shows the next list, s sorts it, Up and Down select a
    key, Enter follows it, Esc goes back. Without a terminal, the command prints lines.

    \b
    Examples:
      aioinformer run widgets:manager --debug-port 8081
      aioinformer top --attach http://127.0.0.1:8081/
      aioinformer top --attach http://127.0.0.1:8081/ --duration 1 | cat

    \b
    Exit codes:
      0  ended by q, by a signal, or after --duration
      2  a bad option, no debug page at the URL, or the page refuses
    """
    live = is_terminal()

    def make(write: Callable[[bytes], None]) -> Program:
        from aioinformer.cli.controllers.top import TopProgram

        return TopProgram(attach, interval, duration, write, live=live, token_file=token_file)

    sys.exit(run_program(make))


@click.command(cls=Command, short_help="Print the CustomResourceDefinition of a class.")
@click.argument("places", metavar="MODULE:CLASS...", nargs=-1, required=True)
@click.option("--check", metavar="FILE", help="Exit with 1 if the definition in this file is another one.")
@click.option(
    "--compatible-with",
    metavar="FILE",
    help="Exit with 1 if a change since the definition in this file breaks stored objects or clients.",
)
@click.option(
    "--webhook",
    metavar="NAMESPACE/SERVICE",
    help="The Service of the manager that converts versions. Needed if a class declares conversion.",
)
def crd(places: tuple[str, ...], check: str | None, compatible_with: str | None, webhook: str | None) -> None:
    """Print the CustomResourceDefinition of a class as YAML, or compare it with a file.

    MODULE:CLASS is a class of which the module declares a custom_resource(), or that resource. The current directory
    can be imported from.

    \b
    Examples:
      aioinformer crd widgets:Widget > deploy/crd.yaml
      aioinformer crd widgets:Widget --check deploy/crd.yaml
      git show main:deploy/crd.yaml > /tmp/crd.yaml && aioinformer crd widgets:Widget --compatible-with /tmp/crd.yaml

    \b
    Exit codes:
      0  printed, or no difference, or no break
      1  each difference, or each break, is a line on stdout
      2  a bad option or file, no such class, or a class without a schema; the message names class and field
    """
    from aioinformer.cli.controllers.loading import load_custom_resource
    from aioinformer.cli.controllers.manifest import to_yaml
    from aioinformer.cli.projects.definitions import compare

    prints = check is None and compatible_with is None
    client: dict[str, Any] | None = None if prints else {}
    if webhook is not None:
        namespace, _, service = webhook.partition("/")
        if not namespace or not service or "/" in service:
            raise click.BadParameter(f"expected NAMESPACE/SERVICE, not {webhook!r}", param_hint="--webhook")
        client = {"service": {"namespace": namespace, "name": service, "path": "/convert"}}
    resources = [load_custom_resource(place) for place in places]
    if client is None and any(each.converts for each in resources):
        raise click.UsageError("a class declares conversion: name its webhook with --webhook NAMESPACE/SERVICE")
    bodies = [each.crd(client) for each in resources]
    if prints:
        click.echo(to_yaml(*bodies), nl=False)
        return
    lines = [line for body in bodies for line in compare(body, check, compatible_with)]
    click.echo("".join(f"{line}\n" for line in lines), nl=False)
    sys.exit(1 if lines else 0)


@click.command(cls=Command, short_help="Write the objects of a class again in its stored version.")
@click.argument("place", metavar="MODULE:CLASS")
@click.option("--after", metavar="KEY", default="", help="Go on behind this object, as an interrupted run has said.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
@click.option("--kubeconfig", metavar="FILE", help="Default: KUBECONFIG, ~/.kube/config, then in-cluster.")
@server_options
@_LOG_LEVEL
def migrate(place: str, after: str, dry_run: bool, log_level: str, **server: Any) -> None:
    """Write all objects of a class again, so that its former versions can leave the definition.

    MODULE:CLASS is the class of the stored version, or its custom_resource(). The current directory can be imported
    from. The definition must store this version already.

    The command waits until discovery names the version on ten connections in a row, and for 2 minutes after a change
    of the definition. Then it writes each object as it is, or lets the cluster do it if it serves
    StorageVersionMigration, removes managed fields of versions that are not served, and shortens
    status.storedVersions. If an object is refused, storedVersions stays. A second run does no harm.

    
    Examples:
      aioinformer migrate widgets:Widget --dry-run
      aioinformer migrate widgets:Widget
      aioinformer migrate widgets:Widget --after shop/blue

    
    Exit codes:
      0  all objects are stored in the version, or a dry run has ended
      1  objects were refused, a request has failed, or a signal ended the command
      2  a bad option, no such class, or the definition stores another version
    """
    from aioinformer.cli.controllers.loading import load_custom_resource
    from aioinformer.cli.projects.migrate import MigrateOptions, MigrateProgram

    shutdown.code = 1
    resource = load_custom_resource(place)
    options = MigrateOptions(ServerOptions(**server), after, dry_run)
    sys.exit(run_program(lambda write: MigrateProgram(resource, options, write), log_level.upper(), is_endless=False))


@click.command(cls=Command, short_help="Write the manifests of a manager as a kustomize base.")
@click.argument("manager", metavar="MODULE:MANAGER")
@click.option("-o", "--output", "folder", metavar="DIR", required=True, help="The folder of the base.")
@_NAMESPACES
@click.option("--image", metavar="IMAGE", default="", help="Image of the container. Default: the manager's name.")
@click.option("--replicas", metavar="N", type=click.IntRange(0), help="Default: 2 with a leader election, otherwise 1.")
@_service_account("Name and namespace of all objects")
@click.option("--pod-monitor", is_flag=True, help="Add a PodMonitor, for the operator of Prometheus.")
@click.option("--service-monitor", is_flag=True, help="Add a ServiceMonitor instead, and a Service for it.")
@click.option("--network-policy", is_flag=True, help="Add a NetworkPolicy: only the ports of the manager are reached.")
@click.option("--overwrite", is_flag=True, help="Replace files that were edited, or have the name of a generated one.")
def manifests(
    manager: str,
    folder: str,
    namespaces: tuple[str, ...],
    image: str,
    replicas: int | None,
    service_account: str | None,
    pod_monitor: bool,
    service_monitor: bool,
    network_policy: bool,
    overwrite: bool,
) -> None:
    """Write what a manager needs in a cluster into a folder, as a kustomize base.

    The files are the definitions of the classes, the service account and the roles that `check` prints, and a
    Deployment with probes, resources and a security context. A second run replaces only what has changed, and removes
    what is no longer needed. Your own files in the folder stay; apply them by an overlay of kustomize.

    \b
    Examples:
      aioinformer manifests widgets:manager -o deploy/base --image registry.example.com/widgets:1.0
      kubectl apply --server-side -k deploy/base

    \b
    Exit codes:
      0  written, or nothing has changed
      2  a bad option, no such manager, a class without a schema, or a generated file that was edited
    """
    from aioinformer.cli.controllers import loading
    from aioinformer.cli.projects.kustomize import Deployed, unchecked_conditions, write_base

    loaded = loading.load_manager(manager, namespaces)
    account = loading.service_account(service_account, loaded)
    named = loaded.namespaces if namespaces else ()
    if pod_monitor and service_monitor:
        raise click.UsageError("pass --pod-monitor or --service-monitor, not both: each pod would be scraped twice")
    if (pod_monitor or service_monitor) and loaded.metrics is False:
        raise click.UsageError(f"{manager} has metrics=False, so there is nothing to scrape: leave out the monitor")
    if (pod_monitor or service_monitor) and find_spec("prometheus_client") is None:
        told = (
            "prometheus-client is not installed here; without aioinformer[prometheus] in the image, /metrics is empty"
        )
        click.echo(f"warning: {told}", err=True)
    if pod_monitor and loaded.metrics_check is not None:
        told = f"{manager} has metrics_check, and a PodMonitor sends no token of Prometheus; pass --service-monitor"
        click.echo(f"warning: {told}", err=True)
    options = Deployed(
        manager, account, image, replicas, pod_monitor, service_monitor, network_policy, namespaces=tuple(named)
    )
    for line in write_base(loaded, options, Path(folder), overwrite=overwrite) or [f"{folder} is up to date"]:
        click.echo(line)
    for line in unchecked_conditions(loaded):
        click.echo(line, err=True)


@click.command(cls=Command, short_help="Make a new project.")
@click.argument("name")
@click.option("--group", metavar="DOMAIN", required=True, help="Group of the resource, such as example.com.")
@click.option("--kind", metavar="KIND", required=True, help="Kind of the resource, such as Website.")
def init(name: str, group: str, kind: str) -> None:
    """Make the project of a controller in the folder NAME: a class, a reconciler, a manager, and their tests.

    The command asks nothing, and overwrites nothing.

    \b
    Example:
      aioinformer init website-operator --group example.com --kind Website

    \b
    Exit codes:
      0  made; stdout says what to do next
      2  a bad option, or the folder is not empty
    """
    from aioinformer.cli.projects.init import init_project

    for path in init_project(Path(name), group, kind):
        click.echo(f"created {name}/{path}")
    click.echo(f"""
Next:
  cd {name} && python3 -m venv .venv && . .venv/bin/activate && pip install -e '.[dev]'
  make check      runs the tests, which need no cluster
  make crd run    runs the controller in the cluster of the current context""")


CONTROLLER_COMMANDS: Final = [check, crd, dashboards, init, manifests, migrate, run, top, uninstall]
