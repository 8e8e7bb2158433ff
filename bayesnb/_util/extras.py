"""Check of the optional packages that a function needs."""

from __future__ import annotations

from importlib.util import find_spec


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
