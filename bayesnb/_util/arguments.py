"""Checks of arguments that many functions share; their errors name the argument and its value."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import reduce
from math import isfinite
from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

INT64 = 2**63 - 1
GREATEST = 1e75
"""Greatest hyperparameter, weight and count: formulas take their fourth powers and sum them, which stays finite."""
_MOST = 2**31 - 1  # Greatest number of draws, repeats and iterations.
_LONGEST = 200
_DIGITS = 40

ZERO_WEIGHTS = "sample_weight is zero for every row. At least one row must have a positive weight."
"""Message about weights of which none is positive."""


def shown(value: object) -> str:
    """Return `repr` of a value on one line, without the middle if it has more than 200 characters; never raise."""
    if isinstance(value, int) and abs(value) >= 10**_DIGITS:
        # Python refuses to write integers of some thousand digits.
        return f"{'-' if value < 0 else ''}1e{int(value.bit_length() * np.log10(2))} (about)"
    try:
        text = repr(value)
    except Exception:  # A user's class may raise anything in __repr__.
        text = f"<{type(value).__name__}>"
    text = " ".join(text.split("\n"))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 4 :]}"


def bad_argument(name: str, value: object, expected: str, error: type[Exception] = ValueError) -> Exception:
    """Return the error "name=value must be expected." for an argument; `expected` may go on with what to do."""
    return error(f"{name}={shown(value)} must be {expected}.")


def require_integer(name: str, value: Any, least: int = 1, most: int = _MOST) -> int:
    """Return an integer (not a bool) of at least `least` and at most `most`; raise ValueError for other values."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if whole and value > most:
        raise ValueError(f"{name}={shown(value)} is too large; it must be an integer of at most {most:,}.")
    if not whole or value < least:
        wanted = "a positive integer" if least == 1 else f"an integer of at least {least}"
        raise bad_argument(name, value, wanted)
    return int(value)


Seed = int | jax.Array | np.random.RandomState | np.random.Generator
"""Seed of random numbers: an integer, a key of JAX, or a generator of NumPy, from which a seed is drawn."""


def read_seed(seed: Any, random_state: object = None) -> int:
    """Return a `Seed` as an integer; raise ValueError for other values than integers from 0 to 2^63 - 1 and keys.

    `random_state`, an argument with scikit-learn's name, takes the place of `seed` unless it is None.
    """
    name, seed = ("seed", seed) if random_state is None else ("random_state", random_state)
    if isinstance(seed, np.random.RandomState):
        return int(seed.randint(INT64, dtype=np.int64))
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(INT64))
    if isinstance(seed, jax.Array | np.ndarray) and (is_key(seed) or (seed.dtype == np.uint32 and seed.ndim == 1)):
        words = np.asarray(jax.random.key_data(seed) if is_key(seed) else seed)
        return reduce(lambda number, word: number << 32 | word, words.ravel().tolist()) & INT64
    require_integer(name, seed, least=0, most=INT64)
    return int(seed)


def is_key(value: jax.Array | np.ndarray) -> bool:
    """Return whether an array is a typed key of JAX, as `jax.random.key` returns it."""
    return isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key)


def require_number(name: str, value: Any, wanted: str, holds: Callable[[float], bool]) -> float:
    """Return `value` as a float; raise ValueError unless it is finite, at most `GREATEST`, and `holds(value)` is true.

    `wanted` describes a right value in the message.
    """
    try:
        number = float("nan") if isinstance(value, str | bytes | bool) or np.ndim(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not isfinite(number) or not holds(number):
        raise bad_argument(name, value, wanted)
    if abs(number) > GREATEST:
        raise ValueError(f"{name}={shown(value)} is too large; it must be {wanted}, and at most {GREATEST:g}.")
    return number


def require_probability(name: str, value: object) -> None:
    """Raise ValueError unless 0 < `value` < 1."""
    require_number(name, value, "a number between 0 and 1, such as 0.9", lambda number: 0 < number < 1)


def require_interval(name: str, value: object, example: str) -> tuple[float, float]:
    """Return the two ends in `value` as floats; raise ValueError unless 0 < lower < upper < inf.

    `example` is a right value for the message.
    """
    try:
        low, high = map(float, to_numbers(name, value))
    except (TypeError, ValueError):
        low = high = np.nan
    if not 0 < low < high < np.inf:
        raise bad_argument(name, value, f"two numbers, 0 < lower < upper, such as {example}")
    return low, high


def require_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise ValueError unless `value` is one of `allowed`."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}={shown(value)} is unknown; use {' or '.join(map(repr, allowed))}.")


def find_class(name: str, label: object, classes: Sequence[object]) -> int:
    """Return the position of a label in `classes`; raise ValueError if the argument `name` is not a class."""
    if not isinstance(label, Hashable) or label not in dict.fromkeys(classes):
        raise ValueError(f"{name}={shown(label)} is not a class. The classes are {shown(list(classes))}.")
    return list(classes).index(label)


def require_flag(name: str, value: object) -> None:
    """Raise ValueError unless `value` is a bool of Python or NumPy."""
    if not isinstance(value, bool | np.bool_):
        raise bad_argument(name, value, "True or False")


def require_mapping(name: str, value: object, example: str) -> None:
    """Raise TypeError unless `value` is a mapping; `example` is a right value for the message."""
    if not isinstance(value, Mapping):
        raise bad_argument(name, value, f"a dict, such as {example}", TypeError)


def require_iterable(name: str, value: object, meaning: str) -> None:
    """Raise TypeError unless `value` is an iterable other than str and bytes; `meaning` describes a right value."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise bad_argument(name, value, meaning, TypeError)


def list_names(name: str, value: object, meaning: str) -> list[object]:
    """Return one name, or several in an iterable, as a list; raise TypeError for others. `meaning` is a right value."""
    names: Any = [value] if isinstance(value, str) else value
    require_iterable(name, names, meaning)
    return list(names)


def require_path(name: str, value: object) -> None:
    """Raise TypeError unless `value` is a str or an os.PathLike."""
    if not isinstance(value, str | os.PathLike):
        raise bad_argument(name, value, "a path: a str or a pathlib.Path", TypeError)


def to_numbers(name: str, values: object) -> np.ndarray:
    """Return a number or an array of numbers as a float64 array of the same shape.

    Raises
    ------
    ValueError
        If a value is not a number, or too large for float64.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":
            raise TypeError
        return array.astype(np.float64, copy=False)
    except OverflowError:
        raise ValueError(f"{name}={shown(values)} has a number that is too large for float64.") from None
    except (TypeError, ValueError):
        raise bad_argument(name, values, "a number or an array of numbers") from None


def no_column_error(argument: str, column: object, names: Sequence[str]) -> ValueError:
    """Return the ValueError for a column that an argument names and that X, with columns `names`, does not have."""
    return ValueError(f"{argument}: there is no column {shown(column)}; the columns of X are {shown(list(names))}.")


def require_result(name: str, value: object, kind: type, source: str) -> None:
    """Raise TypeError unless `value` is of the type `kind`, which the function `source` returns."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be the result of {source}; it is a {type(value).__name__}: {shown(value)}.")
