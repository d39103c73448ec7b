"""The commands and their options, with their help."""

from __future__ import annotations

import os
import secrets
import sys
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from aioinformer.cli.help import Group
from aioinformer.cli.options import Output, ServerOptions, WatchOptions
from aioinformer.cli.output.palette import Palette, terminal_width, time_of_day, wants_colour
from aioinformer.cli.program import run_program
from aioinformer.cli.shutdown import shutdown
from aioinformer.cli.targets import parse_targets

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cli.program import Program

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_Function = TypeVar("_Function", bound="Callable[..., Any]")
_POSITIVE = click.FloatRange(0, min_open=True)
_DEMO_SECONDS = 30.0
_DEMO_BORDERS = len("│ ") + len(" │")

_SERVER_OPTIONS = [
    click.option("--context", metavar="NAME", help="Context of the kubeconfig. Default: the current one."),
    click.option("--server", metavar="URL", help="Connect to this server, without a kubeconfig."),
    click.option("--token-file", metavar="FILE", help="With --server: bearer token, read again when it changes."),
    click.option("--certificate-authority", metavar="FILE", help="With --server: PEM certificates to trust."),
    click.option("--insecure-skip-tls-verify", is_flag=True, help="With --server: accept any certificate."),
]


def _server_options(function: _Function) -> _Function:
    """Add the options that name a server, in the order of the help."""
    for option in reversed(_SERVER_OPTIONS):
        function = option(function)
    return function


def _version() -> str:
    try:
        return version("aioinformer")
    except PackageNotFoundError:
        return "(not installed)"


@click.group(cls=Group, context_settings=_SETTINGS, no_args_is_help=True)
@click.version_option(_version(), message="aioinformer %(version)s")
def cli() -> None:
    """Kubernetes informers for asyncio: watch any resource as a controller sees it.

    \b
    Try it without a cluster:
      aioinformer demo
    Watch a cluster:
      aioinformer watch pods -A
      aioinformer watch deployments.apps -n prod -l app=web
    """


@cli.command(short_help="Run an informer and print its notifications.")
@click.argument("resource")
@click.argument("name", required=False)
@click.option("-n", "--namespace", metavar="NS", help="One namespace. Default: that of the context.")
@click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces.")
@click.option("-l", "--selector", metavar="SEL", default="", help="Label selector, applied by the server.")
@click.option("--field-selector", metavar="SEL", default="", help="Field selector, applied by the server.")
@click.option("--kubeconfig", metavar="FILE", help="Default: KUBECONFIG, ~/.kube/config, then in-cluster.")
@_server_options
@click.option(
    "--resync", metavar="SECONDS", type=float, default=0.0, help="Resync period, at least 1. Default: 0, no resync."
)
@click.option("--metadata-only", is_flag=True, help="Request only the metadata of objects.")
@click.option(
    "-o",
    "--output",
    type=click.Choice([form.value for form in Output]),
    help="Output format. Default: text on a terminal, jsonl in a pipe.",
)
@click.option("--until-synced", is_flag=True, help="Exit with 0 once the initial list has been delivered.")
@click.option(
    "--exit-after", metavar="N", type=int, help="Exit with 0 after N notifications that follow the initial list."
)
@click.option("--dump-on-exit", is_flag=True, help="Print the cache at the end, as jsonl.")
@click.option("--show-secrets", is_flag=True, help="Print the values of Secrets in json and text.")
@click.option("--timeout", metavar="SECONDS", type=float, help="Exit with 1 if the exit condition is not met by then.")
def watch(
    resource: str,
    name: str | None,
    kubeconfig: str | None,
    context: str | None,
    server: str | None,
    token_file: str | None,
    certificate_authority: str | None,
    insecure_skip_tls_verify: bool,
    output: str | None,
    **rest: Any,
) -> None:
    """Run a SharedIndexInformer with one handler, and print the notifications of the handler.

    RESOURCE is a resource as kubectl takes it (pods, po, Pod, deployments.apps,
    deployments.v1.apps, widgets.example.com), or group/version/plural (v1/pods for the core
    group). Separate several resources by commas. RESOURCE/NAME or RESOURCE NAME selects one
    object.

    \b
    Examples:
      aioinformer watch pods -A
      aioinformer watch pod/web-0
      aioinformer watch pods,services,widgets.example.com -n prod
      aioinformer watch deploy -n prod -l 'tier in (front,back)' -o jsonl
      aioinformer watch widgets.example.com --exit-after 10 --timeout 60
      aioinformer watch secrets -A --metadata-only --until-synced -o summary
      aioinformer watch v1/configmaps --server http://127.0.0.1:8001 | jq .key

    \b
    jsonl is one JSON object for each line:
      {"event":"add","key":"default/web-0","uid":"…","resourceVersion":"12","initial":true}
      {"event":"synced","count":1,"resourceVersion":"12"}
      {"event":"update","key":"default/web-0","uid":"…","resourceVersion":"13","oldResourceVersion":"12"}
      {"event":"delete","key":"default/web-0","uid":"…","resourceVersion":"14","tombstone":false}

    With several resources, each line also has "resource". json is jsonl with "object", the whole
    object as the server sent it; values of Secrets are "<redacted>" without --show-secrets.

    If the server is not reachable or fails, the command waits and retries, and logs that to stderr.

    \b
    Exit codes:
      0  ended by a signal without a condition, or the condition was met
      1  --until-synced or --exit-after was not met
      2  a bad option, an unreadable kubeconfig, an unknown resource, or a refused selector
    """
    shutdown.code = 1 if rest["until_synced"] or rest["exit_after"] is not None else 0
    options = WatchOptions(
        parse_targets(resource, name),
        output=Output(output) if output else _default_output(),
        server=ServerOptions(kubeconfig, context, server, token_file, certificate_authority, insecure_skip_tls_verify),
        **rest,
    )

    def make(write: Callable[[bytes], None]) -> Program:
        from aioinformer.cli.output.lines import Columns
        from aioinformer.cli.watch.session import WatchSession, line_format

        return WatchSession(options, partial(line_format, options, Columns(terminal_width())), write)

    sys.exit(run_program(make))


@cli.command(short_help="Show informers at work, without a cluster.")
@click.option(
    "--duration", metavar="SECONDS", type=_POSITIVE, help="Run time. Default: until Ctrl-C; in a pipe, 30 seconds."
)
@click.option("--kubeconfig", metavar="FILE", help="Write a kubeconfig for the embedded server to this file.")
def demo(duration: float | None, kubeconfig: str | None) -> None:
    """Run the embedded API server with a simulated workload, and informers that watch it.

    On a terminal, the demo draws a screen until Ctrl-C. In a pipe, it prints lines as
    `aioinformer watch -o text` does.

    \b
    Examples:
      aioinformer demo
      aioinformer demo --duration 8 | cat
    Use kubectl in another terminal:
      aioinformer demo --kubeconfig /tmp/demo
      kubectl --kubeconfig /tmp/demo get pods -A --watch
    """

    live = sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def make(write: Callable[[bytes], None]) -> Program:
        from aioinformer.cli.demo.program import DemoProgram

        seconds = duration if duration is not None or live else _DEMO_SECONDS
        palette = Palette(wants_colour(sys.stdout))
        width = terminal_width() - _DEMO_BORDERS if live else 0
        return DemoProgram(kubeconfig, seconds, write, palette=palette, clock=time_of_day, live=live, width=width)

    sys.exit(run_program(make))


@cli.command(short_help="Run the embedded API server.")
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port to listen on. Default: 0, a free port.",
)
@click.option("--kubeconfig", metavar="FILE", help="Write the kubeconfig to this file. Default: a temporary file.")
@click.option("--tls", is_flag=True, help="Serve HTTPS; the kubeconfig contains the certificate authority.")
@click.option("--faults", is_flag=True, help="Start and end faults over HTTP, under /_faults.")
@click.option("--load", metavar="PATH", multiple=True, help="Load manifests or a saved state: a file or a folder.")
@click.option("--save", metavar="FOLDER", help="Write all objects to this folder at the end.")
@click.option("--duration", metavar="SECONDS", type=_POSITIVE, help="Run time. Default: until Ctrl-C.")
def serve(
    host: str,
    port: int,
    kubeconfig: str | None,
    tls: bool,
    faults: bool,
    load: tuple[str, ...],
    save: str | None,
    duration: float | None,
) -> None:
    """Run the embedded API server, an HTTP server that behaves like kube-apiserver.

    The first line on stdout, once the server accepts requests, is KUBECONFIG=<absolute path>.
    kubectl works with that file. SIGINT or SIGTERM ends the server.

    On loopback, the server refuses requests of web pages (another Host or Origin). With --tls, or
    with a --host beyond loopback, it requires the token in the kubeconfig, or a client certificate.

    \b
    Examples:
      aioinformer serve --port 8001 --kubeconfig /tmp/embedded
      kubectl --kubeconfig /tmp/embedded create configmap hello --from-literal=a=b
      aioinformer watch configmaps -A --kubeconfig /tmp/embedded
      aioinformer serve --load manifests/ --save state/

    \b
    With --faults: list the faults, start one, end it, and start one with parameters:
      curl http://127.0.0.1:8001/_faults
      curl -X POST http://127.0.0.1:8001/_faults/forbidden
      curl -X DELETE http://127.0.0.1:8001/_faults/forbidden
      curl http://127.0.0.1:8001/_faults/outage -H 'Content-Type: application/json' -d '{"duration": 5}'
    """

    def make(write: Callable[[bytes], None]) -> Program:
        from aioinformer.cli.serve import ServeProgram, warn_of_host
        from aioinformer.testing import ApiServer
        from aioinformer.testing.http.listener import is_loopback

        token_needed = tls or not is_loopback(host)
        tokens = {secrets.token_urlsafe(32): "admin,system:masters"} if token_needed else None
        server = partial(ApiServer, host=host, port=port, tls=tls, faults_over_http=faults, guarded=True, tokens=tokens)
        if not is_loopback(host):
            warn_of_host(host, tls=tls)
        return ServeProgram(server, kubeconfig, duration, write, load=load, save=save)

    sys.exit(run_program(make))


@cli.command(short_help="Measure list, watch and latency of a server.")
@click.option("--kubeconfig", metavar="FILE", help="Measure the server of a kubeconfig. Default: the embedded server.")
@_server_options
@click.option("--objects", metavar="N", type=int, default=500, show_default=True, help="ConfigMaps to create.")
@click.option("--size", metavar="BYTES", type=int, default=4096, show_default=True, help="Size of each ConfigMap.")
@click.option("--rate", metavar="N", type=float, default=50.0, show_default=True, help="Writes a second, for latency.")
@click.option("--seconds", metavar="S", type=float, default=10.0, show_default=True, help="Duration of these writes.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
def bench(output: str, objects: int, size: int, rate: float, seconds: float, **server: Any) -> None:
    """Measure an informer on your own API server, with ConfigMaps in a temporary namespace.

    The command creates the namespace, and deletes it at the end with all its objects. You need
    permission to create and delete namespaces, and to create, update, list and watch ConfigMaps.

    \b
    list      until the handler has received all objects, streamed and in pages
    watch     all objects are written again, as fast as the server accepts it
    catch up  the same changes, as fast as the server sends them
    latency   from sending a write, and from its response, until the handler is called

    \b
    Examples:
      aioinformer bench
      aioinformer bench --kubeconfig ~/.kube/config --objects 2000 --rate 20
      aioinformer bench --server http://127.0.0.1:8001 -o json
    """
    from aioinformer.cli.bench.program import BenchOptions, BenchProgram

    options = BenchOptions(ServerOptions(**server), objects, size, rate, seconds, output == "json")
    sys.exit(run_program(lambda write: BenchProgram(options, write)))


_NAMESPACES = click.option(
    "-n",
    "--namespace",
    "namespaces",
    metavar="NS",
    multiple=True,
    help="Only this namespace; can be repeated, or separated by commas. Default: those of the manager.",
)


def _service_account(what: str) -> Callable[[_Function], _Function]:
    default = "the manager's name, in the namespace of its Lease, or default."
    return click.option("--service-account", metavar="[NS/]NAME", help=f"{what}. Default: {default}")


_LOG_LEVEL = click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="info",
    show_default=True,
    help="Least level of the log lines on stderr.",
)


@cli.command(short_help="Show what controllers need of a cluster.")
@click.argument("manager", metavar="MODULE:NAME")
@_NAMESPACES
@click.option("--kubeconfig", metavar="FILE", help="Default: KUBECONFIG, ~/.kube/config, then in-cluster.")
@_server_options
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
      0  nothing lacks, or no cluster is configured
      1  something lacks, or the cluster did not answer
      2  a bad option, an unreadable kubeconfig, or no such manager
    """
    from aioinformer.cli.controllers.check import CheckOptions, CheckProgram
    from aioinformer.cli.controllers.loading import load_manager
    from aioinformer.cli.controllers.loading import service_account as account_of

    loaded = load_manager(manager, namespaces)
    options = CheckOptions(ServerOptions(**server), account_of(service_account, loaded), user, output)
    sys.exit(run_program(lambda write: CheckProgram(loaded, options, write), log_level.upper()))


@cli.command(short_help="Write a Grafana dashboard and alert rules.")
@click.option(
    "-o", "--output", metavar="DIR", type=click.Path(path_type=Path), required=True, help="Folder to write to."
)
def dashboards(output: Path) -> None:
    """Write a Grafana dashboard and Prometheus alert rules for the metrics of controllers and informers.

    The files are aioinformer-dashboard.json, which Grafana imports, and aioinformer-alerts.yaml, for
    rule_files of Prometheus. Existing files of these names are replaced.

    \b
    Example:
      aioinformer dashboards -o monitoring
    """
    from aioinformer.cli.controllers.dashboards import write

    for path in write(output):
        click.echo(path)


@cli.command(short_help="Run controllers.")
@click.argument("manager", metavar="MODULE:NAME")
@_NAMESPACES
@click.option("--kubeconfig", metavar="FILE", help="Default: KUBECONFIG, ~/.kube/config, then in-cluster.")
@_server_options
@click.option(
    "--health-port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help="Port of /livez, /readyz and /metrics. Default: that of the manager.",
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
    **server: Any,
) -> None:
    """Run a manager of controllers until SIGTERM or SIGINT. A second signal ends it at once.

    MODULE:NAME is the manager: module and variable. The current directory can be imported from.
    Options replace what the manager was made with. Log lines go to stderr.

    \b
    Examples:
      aioinformer run widgets:manager
      aioinformer run widgets:manager -n shop --dry-run
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
    if health_port is not None:
        loaded.health_port = health_port
    if debug_port is not None:
        loaded.debug_port = debug_port
    if debug_values or debug_retry:
        if loaded.debug_port is None:
            raise click.UsageError("--debug-values and --debug-retry need --debug-port: there is no page without it")
        loaded.debug_app(values=debug_values, retry=debug_retry)
    sys.exit(run_manager(loaded, options, report_file))


@cli.command(short_help="Show in a terminal what a running manager does.")
@click.option("--attach", metavar="URL", required=True, help="Address of the debug page: http://127.0.0.1:8081/")
@click.option("--interval", metavar="SECONDS", type=click.FloatRange(1, 60), default=2.0, show_default=True)
@click.option("--duration", metavar="SECONDS", type=_POSITIVE, help="Run time. Default: until q or Ctrl-C.")
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
    live = sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def make(write: Callable[[bytes], None]) -> Program:
        from aioinformer.cli.controllers.top import TopProgram

        return TopProgram(attach, interval, duration, write, live=live, token_file=token_file)

    sys.exit(run_program(make))


@cli.command(short_help="Print the CustomResourceDefinition of a class.")
@click.argument("places", metavar="MODULE:CLASS...", nargs=-1, required=True)
@click.option("--check", metavar="FILE", help="Exit with 1 if the definition in this file is another one.")
@click.option(
    "--compatible-with",
    metavar="FILE",
    help="Exit with 1 if a change since the definition in this file breaks stored objects or clients.",
)
def crd(places: tuple[str, ...], check: str | None, compatible_with: str | None) -> None:
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
    from aioinformer.cli.projects.definitions import compare
    from aioinformer.resources.manifests import to_yaml

    bodies = [load_custom_resource(place).crd() for place in places]
    if check is None and compatible_with is None:
        click.echo(to_yaml(*bodies), nl=False)
        return
    lines = [line for body in bodies for line in compare(body, check, compatible_with)]
    click.echo("".join(f"{line}\n" for line in lines), nl=False)
    sys.exit(1 if lines else 0)


@cli.command(short_help="Write the manifests of a manager as a kustomize base.")
@click.argument("manager", metavar="MODULE:MANAGER")
@click.option("-o", "--output", "folder", metavar="DIR", required=True, help="The folder of the base.")
@_NAMESPACES
@click.option("--image", metavar="IMAGE", default="", help="Image of the container. Default: the manager's name.")
@click.option("--replicas", metavar="N", type=click.IntRange(0), help="Default: 2 with a leader election, otherwise 1.")
@_service_account("Name and namespace of all objects")
@click.option("--pod-monitor", is_flag=True, help="Add a PodMonitor, for the operator of Prometheus.")
@click.option("--overwrite", is_flag=True, help="Replace files that were edited, or have the name of a generated one.")
def manifests(
    manager: str,
    folder: str,
    namespaces: tuple[str, ...],
    image: str,
    replicas: int | None,
    service_account: str | None,
    pod_monitor: bool,
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
    from aioinformer.cli.projects.kustomize import Deployed, write_base

    loaded = loading.load_manager(manager, namespaces)
    account, named = loading.service_account(service_account, loaded), loaded.namespaces if namespaces else ()
    options = Deployed(manager, account, image, replicas, pod_monitor, tuple(named))
    for line in write_base(loaded, options, Path(folder), overwrite=overwrite) or [f"{folder} is up to date"]:
        click.echo(line)


@cli.command(short_help="Make a new project.")
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
  cd {name} && python -m venv .venv && . .venv/bin/activate && pip install -e '.[dev]'
  make check      runs the tests, which need no cluster
  make crd run    runs the controller in the cluster of the current context""")


def _default_output() -> Output:
    return Output.TEXT if sys.stdout is not None and sys.stdout.isatty() else Output.JSONL
