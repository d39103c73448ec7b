"""Whether a borrowed session has a connection left."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL


def full_pool(session: aiohttp.ClientSession | None, server: URL) -> str:
    """Return which limit of a session's connector is reached and what to do about it, "" if there is one left.

    aiohttp lets requests beyond the limit wait in silence, and a watch gives its connection back when it ends. Where a
    connector does not tell what it has handed out, the answer is "".
    """
    connector = None if session is None else session.connector
    if connector is None:
        return ""
    taken = len(getattr(connector, "_acquired", ()))
    by_host = getattr(connector, "_acquired_per_host", {})
    limit, limit_per_host = connector.limit, connector.limit_per_host
    if limit and taken >= limit:
        reached = f"limit={limit}"
    elif limit_per_host and any(len(each) >= limit_per_host for key, each in by_host.items() if _is_of(key, server)):
        reached = f"limit_per_host={limit_per_host}"
    else:
        return ""
    return (
        f"all connections that {reached} allows to the connector of the borrowed session are in use, and each watch "
        "holds one; make it with aiohttp.TCPConnector(limit=0, limit_per_host=0), or leave out session="
    )


def _is_of(key: object, server: URL) -> bool:
    return (getattr(key, "host", None), getattr(key, "port", None)) == (server.raw_host, server.port)
