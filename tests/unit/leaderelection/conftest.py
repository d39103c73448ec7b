"""A server with a Lease in memory."""

from __future__ import annotations

import pytest

from tests.support.lease_server import LeaseServer


@pytest.fixture
def server() -> LeaseServer:
    return LeaseServer()
