"""Errors of requests for streams. Each has the status and the headers of its answer."""

from __future__ import annotations

from collections.abc import Mapping

from aioinformer.errors import AioinformerError


class BadStreamRequest(AioinformerError):
    """A request for a stream has a wrong parameter. The text names it, and the remedy.

    Attributes:
        status: of the HTTP response.
        headers: for the HTTP response.
    """

    status = 400
    headers: Mapping[str, str] = {}


class TooManyReaders(AioinformerError):
    """There are as many streams as are allowed, of this user or in all.

    Attributes:
        status: of the HTTP response.
        headers: for the HTTP response.
    """

    status = 429
    headers: Mapping[str, str] = {"Retry-After": "5"}
