from __future__ import annotations

from aioinformer.testing.admission.common.webhook_clients import client_causes


def test_unreadable_webhook_url_is_refused() -> None:
    causes = client_causes({"url": "https://[::1"}, "clientConfig")

    assert ["must be a valid URL" in cause.message for cause in causes] == [True]
