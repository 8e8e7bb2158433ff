"""Packages that only some functions need: what is said where one is not installed."""

from __future__ import annotations

from importlib.util import find_spec


def require(who: str, extra: str, *packages: str) -> None:
    """Refuse before anything is computed if a package is not there, and say how to install it.

    Parameters
    ----------
    who : str
        What needs it, as the user knows it.
    extra : str
        The extra of pyproject.toml that installs it, or several with commas between.
    packages : str
        Names by which they are imported.

    Raises
    ------
    ImportError

    Examples
    --------
    >>> require("A report", "plots,arviz", "json", "a_printer", "a_press")
    Traceback (most recent call last):
    ImportError: A report needs a_printer and a_press, not installed here: pip install 'bayesnb[plots,arviz]'
    """
    absent = [package for package in packages if find_spec(package) is None]
    if absent:
        several = " and ".join(", ".join(absent).rsplit(", ", 1))
        raise ImportError(f"{who} needs {several}, not installed here: pip install 'bayesnb[{extra}]'", name=absent[0])
