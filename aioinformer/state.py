"""`Stated`: what has the value of the lifespan of its manager, with a type parameter that may be left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic

from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    State = TypeVar("State", default=Any)
    State_co = TypeVar("State_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    State = TypeVar("State")
    State_co = TypeVar("State_co", covariant=True)

#: Stands for the state if there is no lifespan.
NO_STATE: Final[Any] = object()


class Stated(Generic[State_co]):
    """Has the value that the lifespan of a manager has yielded. Its type is the last parameter; without one, any.

    Args:
        state: the value; `NO_STATE` without a lifespan.
    """

    __slots__ = ("_state",)

    def __init__(self, state: State_co) -> None:
        self._state = state

    @property
    def state(self) -> State_co:
        """The value of the lifespan of the manager: what its `async with` binds by `as`.

        Raises:
            UsageError: the manager has no lifespan.
        """
        if self._state is NO_STATE:
            raise UsageError(
                f"{self!r} has no state: pass lifespan=… to Manager(), or, in a test, state=… to its class"
            )
        return self._state

    if not TYPE_CHECKING:  # type checkers know the default of the parameter; Python does from 3.13 on

        def __class_getitem__(cls, types):
            given = types if isinstance(types, tuple) else (types,)
            left_out = len(cls.__parameters__) - len(given)
            return super().__class_getitem__((*given, *[Any] * min(1, left_out)))
