"""The commands and their options, with their help. Those for controllers are in `controllers.commands`."""

from __future__ import annotations

import secrets
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from aioinformer.cli.controllers.commands import CONTROLLER_COMMANDS
from aioinformer.cli.help import POSITIVE, Group, is_terminal, server_options
from aioinformer.cli.options import Output, ServerOptions, WatchOptions
from aioinformer.cli.output.palette import Palette, terminal_width, time_of_day, wants_colour
from aioinformer.cli.program import run_program
from aioinformer.cli.shutdown import shutdown
from aioinformer.cli.targets import parse_targets
from aioinformer.exports import package_version

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cli.program import Program

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_DEMO_SECONDS = 30.0
_DEMO_BORDERS = len("│ ") + len(" │")


@click.group(cls=Group, commands=CONTROLLER_COMMANDS, context_settings=_SETTINGS, no_args_is_help=True)
@click.version_option(package_version() or "(not installed)", message="aioinformer %(version)s")
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
@server_options
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
    "--duration", metavar="SECONDS", type=POSITIVE, help="Run time. Default: until Ctrl-C; in a pipe, 30 seconds."
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
    live = is_terminal()

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
@click.option("--duration", metavar="SECONDS", type=POSITIVE, help="Run time. Default: until Ctrl-C.")
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
@server_options
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


def _default_output() -> Output:
    return Output.TEXT if sys.stdout is not None and sys.stdout.isatty() else Output.JSONL
