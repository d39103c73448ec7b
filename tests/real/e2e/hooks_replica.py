"""A replica of a manager with an admission function, as a process: its namespace, webhook port and health port."""

from __future__ import annotations

import sys
from typing import Any

from aioinformer.controller import Manager
from aioinformer.models import core_v1
from aioinformer.webhooks import AdmissionRequest, WebhookServer

if __name__ == "__main__":
    namespace, port, health_port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    server = WebhookServer("hooks", namespace, port=port, host="127.0.0.1", hosts=("127.0.0.1",))
    manager = Manager(
        "hooks", webhooks=server, namespaces=[namespace], health_port=health_port, health_host="127.0.0.1"
    )

    @manager.validate(core_v1.CONFIG_MAPS, reads=[core_v1.SECRETS])
    async def check(request: AdmissionRequest[Any]) -> None:
        request.lister(core_v1.SECRETS).list()

    manager.main()
