"""What a server needs to speak TLS: an authority of its own, and the certificates that it makes."""

from __future__ import annotations

import ssl
from functools import cached_property
from typing import TYPE_CHECKING, Any

from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from trustme import CA


class Authority:
    """A certificate authority that is known to nobody else, made anew each time.

    Raises:
        UsageError: trustme, which makes certificates, is not installed.
    """

    def __init__(self) -> None:
        self._authority: CA = _trustme().CA(organization_name="aioinformer")

    @cached_property
    def certificate(self) -> bytes:
        """What clients are to trust, in PEM."""
        data: bytes = self._authority.cert_pem.bytes()
        return data

    def context(self, host: str) -> ssl.SSLContext:
        """How the server speaks on its sockets.

        Args:
            host: address or name that clients know it by; "localhost" always is one, too.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        names = dict.fromkeys((host, "localhost", "127.0.0.1", "::1"))
        self._authority.issue_cert(*names, common_name="aioinformer").configure_cert(context)
        return context


def _trustme() -> Any:
    try:
        import trustme
    except ImportError:
        raise UsageError('TLS needs trustme, which makes certificates: pip install "aioinformer[testing]"') from None
    return trustme
