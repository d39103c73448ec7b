"""A replica of a manager that converts, as a process: its namespace, webhook port, health port and group."""

from __future__ import annotations

import sys

from aioinformer.controller import Manager
from aioinformer.webhooks import WebhookServer, server
from tests.support.converted_classes import gates

if __name__ == "__main__":
    namespace, port, health_port, group = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    server._INTERVAL, server._RETRY = 1.0, 0.2  # type: ignore[misc]
    webhooks = WebhookServer("gates", namespace, port=port, host="127.0.0.1", hosts=("127.0.0.1",))
    manager = Manager(
        "gates", webhooks=webhooks, namespaces=[namespace], health_port=health_port, health_host="127.0.0.1"
    )
    manager.convert(gates(group)[0])
    manager.main()
