"""What a session uses of the API server: a transport, and the function that records Events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.logs import get_logger, visible
from aioinformer.resources.references import get_reference
from aioinformer.transport.auth.credentials import connect
from aioinformer.transport.clients import Client as ClientArgument

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from aioinformer.controller.running.settings import Settings
    from aioinformer.transport import Transport

_log = get_logger("aioinformer.controller")


async def open_transport(settings: Settings, stack: AsyncExitStack) -> Transport:
    """Return the transport of a manager: of its client, of the factory that it shares, or of a new connection.

    What the manager makes itself is closed with the stack.

    Raises:
        UsageError: there is no cluster, or the client is of no known type.
    """
    if settings.client is not None:
        client = ClientArgument(settings.client)
        stack.push_async_callback(client.aclose)
        return client.transport
    if settings.factory is not None:
        return settings.factory.transport
    return (await stack.enter_async_context(await connect())).transport


async def open_events(settings: Settings, stack: AsyncExitStack, transport: Transport) -> Any:
    """Return the function that records an Event about an object. In a dry run, it logs the Event."""
    if settings.dry_run:
        return _log_event
    if settings.recorder is not None:
        return settings.recorder.event
    from aioinformer.events import CoreEventSink
    from aioinformer.events.broadcaster import EventBroadcaster

    broadcaster = await stack.enter_async_context(EventBroadcaster())
    broadcaster.start_recording_to_sink(CoreEventSink(transport))
    return broadcaster.new_recorder(settings.name).event


def _log_event(obj: Any, type: str, reason: str, message: str) -> None:
    about = get_reference(obj)
    key = "/".join(filter(None, (about.namespace, about.name)))
    text = "dry run: event %s %s about %s %s is not sent: %s"
    _log.info(text, type, reason, about.kind, visible(key), visible(message))
