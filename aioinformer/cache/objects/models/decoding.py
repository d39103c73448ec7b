"""From the bytes of an object to an instance of its model."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec

from aioinformer.cache.objects.models.building import BUILDING, build_decoder
from aioinformer.cache.objects.models.classes import struct_for
from aioinformer.cache.objects.models.json_value import freeze_hook, where
from aioinformer.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.objects.models.model import Model


_decoders: dict[str, Callable[[bytes], Model]] = {}


@cache
def decoder_for(model: str) -> Callable[[bytes], Model]:
    """A function that decodes the JSON of one object; always the same one for a model.

    It is lenient where the API's own clients are: attributes that the model does not know are ignored, and null is
    taken for "not there" everywhere. It is strict about types, and does not turn the string "3" into a number; only
    in maps of strings numbers become strings, since quantities may be written either way.
    It raises `DecodeError`, which names the path but quotes no content, for anything else than an object of this form.

    Args:
        model: as kubernetes_asyncio names it, "V1Pod".

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
            raise DecodeError(f"not a {model}: nested too deeply") from None

    return decode_model
