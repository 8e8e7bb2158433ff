"""Run-time checks of the package's jaxtyping annotations."""

import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

from jaxtyping import AbstractArray

MODULES = ["bayesnb.families", "bayesnb.model", "bayesnb.fitted.scoring"]


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Raise TypeError where an argument, or what comes back, has not the shape that it is annotated with.

    Other annotations are mypy's. Names of axes are bound by the call, which jaxtyping sees to.
    """

    @functools.cache
    def shapes() -> tuple[dict[str, Any], inspect.Signature]:
        # The modules' own names are there once all are imported, and so at the first call.
        hints = typing.get_type_hints(inspect.unwrap(function))
        return {name: hint for name, hint in hints.items() if _is_shape(hint)}, inspect.signature(function)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        hints, signature = shapes()
        if not hints:
            return function(*args, **kwargs)
        given = signature.bind(*args, **kwargs).arguments
        found = function(*args, **kwargs)
        for name, value in [*given.items(), ("return", found)]:
            if name in hints and not any(isinstance(value, _of_any_array(option)) for option in _options(hints[name])):
                shape = getattr(value, "shape", type(value).__name__)
                raise TypeError(f"{function.__qualname__}: {name} is {shape}, and should be {hints[name]}.")
        return found

    return wrapper


def _options(hint: Any) -> tuple[Any, ...]:
    """Alternatives of an annotation for JAX and NumPy arrays."""
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


@functools.cache
def _of_any_array(option: Any) -> Any:
    """The same kind and shape for arrays of NumPy: functions annotated with JAX's compute with these, too."""
    return option.dtype[Any, option.dim_str]


def _is_shape(hint: Any) -> bool:
    return all(isinstance(option, type) and issubclass(option, AbstractArray) for option in _options(hint))
