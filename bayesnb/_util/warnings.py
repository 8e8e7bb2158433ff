"""Warnings of bayesnb, and errors of absent packages."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from types import FrameType

# == Check of the optional packages that a function needs ==========================================


def require(who: str, extra: str, *packages: str) -> None:
    """Raise ImportError with the command to install them unless all packages are installed.

    Parameters
    ----------
    who : str
        Name of the function that needs the packages, for the message.
    extra : str
        Extra of pyproject.toml that installs the packages, or several separated by commas.
    packages : str
        Import names of the packages.

    Raises
    ------
    ImportError
        If a package is not installed.

    Examples
    --------
    >>> require("A report", "plots,arviz", "json", "a_printer", "a_press")
    Traceback (most recent call last):
    ImportError: A report needs a_printer and a_press, which are not installed. Run pip install 'bayesnb[plots,arviz]'
    """
    absent = [package for package in packages if find_spec(package) is None]
    if absent:
        several = " and ".join(", ".join(absent).rsplit(", ", 1))
        are = "is" if len(absent) == 1 else "are"
        message = f"{who} needs {several}, which {are} not installed. Run pip install 'bayesnb[{extra}]'"
        raise ImportError(message, name=absent[0])


# == Warnings that point at the user's line ========================================================


class UnknownLevelWarning(UserWarning):
    """Warning of cells whose values are not levels of the model; they count as missing, or as one level of their own.

    `handle_unknown="error"` refuses such cells in place of the warning.

    Examples
    --------
    >>> import warnings
    >>> import bayesnb as bnb
    >>> warnings.filterwarnings("ignore", category=bnb.UnknownLevelWarning)
    """


class UndefinedProbabilityWarning(UserWarning):
    """Warning of rows without class probabilities, which are NaN: all classes are impossible, or two are certain.

    Examples
    --------
    >>> import warnings
    >>> import bayesnb as bnb
    >>> warnings.filterwarnings("error", category=bnb.UndefinedProbabilityWarning)
    """


class NoWeightsWarning(UserWarning):
    """Warning of `WeightedNB`: the rows are too few to fit weights of terms, and it predicts without weights.

    Examples
    --------
    >>> import warnings
    >>> import bayesnb as bnb
    >>> warnings.filterwarnings("error", category=bnb.NoWeightsWarning)
    """


class SuspiciousColumnWarning(UserWarning):
    """Warning of `fit` that names columns which are probably not what they are treated as.

    `partial_fit`, `from_counts` and merged batches warn only of labels and levels of two types, such as "1" and 1.
    `check_table` lists the same remarks, and the rules behind them. Fits inside another call, such as those to halves
    and folds, do not warn. The text has no numbers of the data, so that Python shows the warning of a grid search once.
    Silence the warning by a filter of Python, after you have read it.

    Examples
    --------
    >>> import warnings
    >>> import bayesnb as bnb
    >>> warnings.filterwarnings("ignore", category=bnb.SuspiciousColumnWarning)
    """


class CopiedRowsWarning(SuspiciousColumnWarning):
    """Warning of `fit` that X has copies of rows, which random halves of the rows keep together.

    Copies come from oversampling, from a bootstrap sample, and from a join. The warning is issued by classifiers that
    choose weights, structure or densities on random halves of the rows, if `groups` are not given and 1% of the rows of
    a class or more are copies. Fits inside another call, such as those to folds, do not warn.

    Examples
    --------
    >>> import warnings
    >>> import bayesnb as bnb
    >>> warnings.filterwarnings("ignore", category=bnb.CopiedRowsWarning)
    """


OWN_WARNINGS = (UserWarning, UnknownLevelWarning, UndefinedProbabilityWarning, NoWeightsWarning)
"""Categories of the warnings that this package issues; libraries derive others from UserWarning."""


_shown: set[tuple[object, ...]] = set()
"""Texts, categories and lines of the warnings of fits by scikit-learn that were shown."""
_CALLERS = ("bayesnb", "sklearn", "joblib")
"""Packages whose lines are not those of a user."""
_are_fits_internal: ContextVar[bool] = ContextVar("_are_fits_internal", default=False)


@contextmanager
def internal_fits() -> Iterator[None]:
    """Mark the fits inside the block as steps of another call, such as fits to folds, which name no suspicious columns.

    A filter of warnings would hold for all threads, and Python would show other warnings more than once.
    """
    token = _are_fits_internal.set(True)
    try:
        yield
    finally:
        _are_fits_internal.reset(token)


def are_fits_internal() -> bool:
    """Return whether fits are steps of another call; see `internal_fits`."""
    return _are_fits_internal.get()


def warn(message: str, category: type[UserWarning] = UserWarning, key: str | None = None) -> None:
    """Issue a warning that points at the line of the user: the first caller outside this package and scikit-learn.

    Where Python shows a text once a line, the fits of one grid search show the text once. Python alone would show the
    text for each fit, because scikit-learn sets the filters for each anew, and Python then forgets what was shown.
    Texts with the same `key`, by default the text, count as one text.
    """
    level, frame, is_nested = 2, sys._getframe(1), False
    while frame.f_back is not None and (package := _package(frame)) in _CALLERS:
        is_nested |= package != "bayesnb"
        frame, level = frame.f_back, level + 1
    line = key or message, category, frame.f_code.co_filename, frame.f_lineno
    if is_nested and _shows_once(message, category, frame):
        if line in _shown:
            return
        _shown.add(line)
    warnings.warn(message, category, stacklevel=level)


def _package(frame: FrameType) -> str:
    """Return the name of the package whose code runs in a frame."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _shows_once(message: str, category: type[UserWarning], frame: FrameType) -> bool:
    """Return whether the filters of Python show a warning from the line of a frame once, not always nor never."""
    module, line = str(frame.f_globals.get("__name__", "")), frame.f_lineno
    for action, text, filtered, name, number in warnings.filters:
        is_text = text is None or text.match(message)
        if is_text and issubclass(category, filtered) and (name is None or name.match(module)) and number in (0, line):
            return action in ("default", "module", "once")
    return True
