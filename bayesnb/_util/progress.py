"""A progress bar on a terminal for what takes longer than a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


def _nothing(steps: float = 1) -> None:
    return None


@contextmanager
def progress(title: str | None, total: float | None, unit: str = "it") -> Iterator[Callable[..., object]]:
    """Yield a function to call after each step, or with the number of steps since the last call.

    Parameters
    ----------
    title : str or None
        Stands before the bar; None: no bar.
    total : number or None
        Steps to come, if that is known.
    unit : str
        What a step is; "B" for bytes.

    Notes
    -----
    Written to stderr after the first second, if that is a terminal, and taken away at the end.
    """
    if title is None:
        yield _nothing
        return
    from tqdm import tqdm

    with tqdm(total=total, desc=title, unit=unit, unit_scale=unit == "B", delay=1, leave=False, disable=None) as bar:
        yield bar.update
