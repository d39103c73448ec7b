"""API errors: their classes, and what the header and the body of a response say."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.errors import ApiError, Expired, ResourceVersionTooLarge, api_error

TOO_LARGE = "Too large resource version"


@pytest.mark.conformance("REF-49", "REF-50")
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (410, None, Expired),
        (0, {"code": 410}, Expired),
        (500, {"reason": "Expired"}, Expired),
        (500, {"reason": "Gone"}, Expired),
        (504, {"details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}}, ResourceVersionTooLarge),
        (504, {"reason": "Timeout", "message": f"{TOO_LARGE}: 5"}, ResourceVersionTooLarge),
        (504, {"reason": "Timeout", "details": {"causes": [{"message": TOO_LARGE}]}}, ResourceVersionTooLarge),
        (504, {"reason": "Timeout", "message": "slow"}, ApiError),
        (400, {"reason": "BadRequest", "message": TOO_LARGE}, ApiError),
    ],
)
def test_error_class_follows_status_and_reason(status: int, body: Any, kind: type[ApiError]) -> None:
    assert type(api_error(status, body)) is kind


def test_retry_after_comes_from_header_then_body() -> None:
    body = {"details": {"retryAfterSeconds": 5}}
    assert api_error(429, body, retry_after=3).retry_after == 3
    assert api_error(429, body).retry_after == 5
    assert api_error(429, {"details": {"retryAfterSeconds": 0}}).retry_after is None


@pytest.mark.parametrize(
    "body", [{"details": 7}, {"details": {"causes": 7}}, {"details": {"causes": [7]}}, {"code": "x"}, {"message": 7}]
)
def test_any_body_makes_an_error(body: Any) -> None:
    assert api_error(0, body).status == 500
