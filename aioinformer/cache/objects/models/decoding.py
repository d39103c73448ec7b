"""Decode the JSON of an object into its model."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec

from aioinformer.cache.objects.models.building import BUILDING, build_decoder
from aioinformer.cache.objects.models.classes import struct_for
from aioinformer.cache.objects.models.json_value import freeze_hook, where
from aioinformer.cache.objects.refusals import TOO_DEEP
from aioinformer.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.objects.models.model import Model


_decoders: dict[str, Callable[[bytes], Model]] = {}


@cache
def decoder_for(model: str) -> Callable[[bytes], Model]:
    """Return the function that decodes the JSON of one object of a model; always the same function.

    It is lenient where the API's own clients are: unknown attributes are ignored, and null means absent. It is strict
    about types: the string "3" does not become a number. In maps of strings, numbers become strings, since quantities
    may be written either way. The function raises `DecodeError`, which names the path and quotes no content.

    Args:
        model: kubernetes_asyncio's name of it, such as "V1Pod".

    Raises:
        LookupError: kubernetes_asyncio has no such model.
    """
    with BUILDING:  # two threads may both miss the cache
        if model not in _decoders:
            _decoders[model] = _decoder_of(model)
        return _decoders[model]


def _decoder_of(model: str) -> Callable[[bytes], Model]:
    decode: Callable[[bytes], Model] = build_decoder(struct_for(model), freeze_hook)

    def decode_model(body: bytes) -> Model:
        try:
            return decode(body)
        except msgspec.ValidationError as error:
            text, path = where(error)
            raise DecodeError(f"not a {model}: {text} at {path}") from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise DecodeError(f"not a {model}: not JSON") from None
        except RecursionError:
            raise DecodeError(f"not a {model}: {TOO_DEEP}") from None

    return decode_model
