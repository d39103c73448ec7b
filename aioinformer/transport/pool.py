"""Whether a borrowed session has a connection left."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp


def full_pool(session: aiohttp.ClientSession | None) -> str:
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
    elif limit_per_host and any(len(each) >= limit_per_host for each in list(by_host.values())):
        reached = f"limit_per_host={limit_per_host}"
    else:
        return ""
    return (
        f"all connections that {reached} allows to the connector of the borrowed session are in use, and each watch "
        "holds one; make it with aiohttp.TCPConnector(limit=0, limit_per_host=0), or leave out session="
    )
