"""The connections of the server at its end."""

from __future__ import annotations

import ssl
from urllib.parse import urlsplit

import pytest

from aioinformer.testing import ApiServer
from tests.support.silent_peers import SilentClients, left_open


@pytest.mark.parametrize("headers", ["", "Connection: close\r\n"])
def test_nothing_is_open_after_the_end_of_the_server(headers: str) -> None:
    async def main() -> None:
        async with ApiServer(tls=True) as server:
            tls = ssl.create_default_context(cadata=server.certificate_authority.decode())
            await clients.request(urlsplit(server.url).port, tls, headers)

    with SilentClients() as clients:
        assert left_open(main) == []
