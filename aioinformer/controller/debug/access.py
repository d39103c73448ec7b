"""Who may read the debug page: requests as plain data, and the rules for them.

A check function of the user, or a `Who` such as `Rbac`, decides on every request, wherever it seems to come from.
Without one, the page answers on
its own port only, and there only *local* requests: those that come from a loopback address, name a loopback address as
their host, and have no header of a proxy. The host matters because of DNS rebinding: a web page can make a browser send
requests to 127.0.0.1 under a name of its own. A page in an application of the user needs the function: a proxy on the
same machine that adds no header makes every request seem local.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from aioinformer.authorization.users import Who, permitted_path
from aioinformer.errors import USER_ERRORS
from aioinformer.logs import get_logger
from aioinformer.serving import WebRequest
from aioinformer.transport.proxies import is_loopback

_log = get_logger("aioinformer.controller")

#: Headers of proxies: a client behind one is not on this machine.
_FORWARDED: Final = ("forwarded", "via", "x-real-ip", "x-forwarded-", "x-envoy-", "x-original-")


class DebugRequest(WebRequest, frozen=True):
    """A request to the debug page, for the check function of `Manager.debug_app`.

    Attributes:
        method: "GET", "HEAD" or "POST"; only POST changes something.
        path: below the place where the page is mounted: "", "api/report".
        headers: their names are in lower case.
        client: the address of the peer; "" if it is not known.
        query: the parameters.
    """

    @property
    def is_local(self) -> bool:
        """Whether it seems to come from this machine, under a name of this machine, and not through a proxy.

        A proxy on this machine that adds no header makes every request seem so.
        """
        if any(name.startswith(_FORWARDED) for name in self.headers):
            return False
        return is_loopback(self.client) and is_loopback(_hostname(self.headers.get("host", "")))

    @property
    def is_same_origin(self) -> bool:
        """Whether a page of this very host has sent it: for requests that change something."""
        origin = self.headers.get("origin", "")
        host = self.headers.get("host", "")
        site = self.headers.get("sec-fetch-site", "same-origin")
        return bool(host) and site == "same-origin" and urlsplit(origin).netloc.lower() == host.lower()


#: Returns whether a request may be answered, or an awaitable of that; or decides who sends it and what that user may.
Check: TypeAlias = Callable[[DebugRequest], bool | Awaitable[bool]] | Who

#: The path that a `Who` is asked for, wherever the page is. Its own paths begin with "api/", and every user may get
#: URLs below /api/: these belong to the API server, and Kubernetes grants them for discovery.
PATH: Final = "/debug"


async def refusal(request: DebugRequest, check: Check | None, *, on_own_port: bool) -> str:
    """Return why a request is refused; "" if it is not.

    Args:
        on_own_port: whether it came over the port of the page, which listens on a loopback address.

    Raises:
        Unauthenticated, AccessDenied: as the check of a `Who`.
    """
    if isinstance(check, Who):
        await permitted_path(check, request.headers, request.client, request.method, f"{PATH}/{request.path}")
        return ""
    if check is None and not on_own_port:
        return (
            "this page is part of an application, and answers no request without a check, because a proxy on this "
            "machine makes every request seem local. Pass check= to Manager.debug_app, or use Manager(debug_port=)"
        )
    if check is None:
        if request.is_local:
            return ""
        return (
            "this page answers requests from this machine only, by the name localhost or a loopback address, and "
            "without a proxy: use `kubectl port-forward`, or pass check= to Manager.debug_app"
        )
    try:
        allowed: Any = check(request)
        if hasattr(allowed, "__await__"):
            allowed = await allowed
    except USER_ERRORS:
        _log.exception("debug page: the check function raised, so the request is refused")
        allowed = False
    return "" if allowed is True else "the check function of this page refuses the request"


def _hostname(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""
