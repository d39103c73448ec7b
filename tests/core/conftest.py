"""How hypothesis looks for counter-examples: machines differ in speed, so no example has a time limit."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("core", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("core")
