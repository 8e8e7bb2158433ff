"""Files larger than memory: read in pieces, most rows counted, some held out."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb.cli.holdout import NONE_HELD_OUT, SHARE, Fits, Fold, Settings, held_out
from bayesnb.cli.reading import InputError, length_of
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.streaming import fit_stream

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS = 100_000
_MOST_CELLS = 10_000_000
# Peak memory of an analysis that holds the whole table, in bytes a byte of the file; measured: 10 to 45, most where
# cells are short.
_BYTES_A_BYTE = 45
_LARGEST_POPULATION = 10**9
_LIMITS = {
    "/proc/meminfo": r"MemAvailable:\s+",
    "/sys/fs/cgroup/memory.max": "",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": "",
}


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a file, typed.

    Parameters
    ----------
    rows : (n,) array
        Their numbers, from 0.
    columns : dict of (n,) arrays
        Floats, or objects with None for a missing cell.
    y : (n,) array
        Labels.
    """

    rows: np.ndarray
    columns: Mapping[str, np.ndarray]
    y: np.ndarray

    def take(self, chosen: np.ndarray) -> Batch:
        """The rows where `chosen` is true."""
        columns = {name: values[chosen] for name, values in self.columns.items()}
        return Batch(self.rows[chosen], columns, self.y[chosen])

    def frame(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame({name: pd.Series(values, dtype=values.dtype) for name, values in self.columns.items()})


def join(batches: Sequence[Batch]) -> Batch:
    """Batches of the same columns as one."""
    columns = {name: np.concatenate([batch.columns[name] for batch in batches]) for name in batches[0].columns}
    rows, y = (np.concatenate(parts) for parts in zip(*((b.rows, b.y) for b in batches), strict=True))
    return Batch(rows, columns, y)


class Lottery:
    """Draws a given number of rows of each class without replacement, as the rows come.

    Every set of that many rows is as probable as any other.

    Parameters
    ----------
    class_count : dict
        Rows of each class that will come.
    wanted : dict
        How many of them to draw.
    """

    def __init__(self, class_count: Mapping[Any, int], wanted: Mapping[Any, int], seed: int) -> None:
        self.left, self.wanted = dict(class_count), dict(wanted)
        self.rng = np.random.default_rng(seed)

    def unseen(self) -> int:
        """How many rows are still to come."""
        return sum(self.left.values())

    def draw(self, y: np.ndarray) -> np.ndarray | None:
        """Which of the next rows are drawn, given their labels; None if there are more than were to come."""
        chosen = np.zeros(len(y), bool)
        labels, code = np.unique(y, return_inverse=True)
        for i, label in enumerate(labels.tolist()):
            rows = np.flatnonzero(code == i)
            n, wanted = self.left[label], self.wanted[label]
            if len(rows) > n:
                return None
            if n < _LARGEST_POPULATION:
                size = self.rng.hypergeometric(wanted, n - wanted, len(rows))
            else:  # beyond what NumPy draws from, the two distributions agree
                size = min(len(rows), self.rng.binomial(wanted, len(rows) / n))
            chosen[self.rng.choice(rows, size, replace=False)] = True
            self.left[label], self.wanted[label] = n - len(rows), wanted - size
        return chosen


@dataclass(frozen=True, eq=False)
class Streamed:
    """Rows of a file.

    Parameters
    ----------
    batches : callable
        Reads the file once more.
    class_count : dict
        Number of rows of each label.
    most : int
        Rows that may be kept in memory, about.
    """

    path: Path
    batches: Callable[[], Iterator[Batch]]
    class_count: Mapping[Any, int]
    most: int

    def fit(self, nb: NaiveBayesClassifier, settings: Settings, title: str) -> Fits:
        """Count all rows in one pass but for a stratified sample that is held out, then add that to a copy.

        Raises
        ------
        InputError
            If no row can be held out; if the file is not what it was when its columns were typed.
        """
        n = sum(self.class_count.values())
        share = SHARE if settings.test_size is None else settings.test_size
        sizes = held_out(self.class_count, min(share, self.most / n))
        size = sum(sizes.values())
        if not size:
            raise InputError(NONE_HELD_OUT)
        kept: list[Batch] = []
        lottery = Lottery(self.class_count, sizes, settings.seed)
        nb = fit_stream(nb, self._others(lottery, kept), classes=list(self.class_count), progress=False)
        if lottery.unseen():
            raise self._changed()
        fold = _fold(nb, kept)
        whole = copy.copy(nb).partial_fit(fold.X, fold.y)
        why = " (a sample that fits into memory)" if share > self.most / n else ""
        said = f"{size:,} rows held out, stratified{why}; fitted to the other {n - size:,}"
        return Fits(whole, [fold], said, fold.X, fold.y)

    def _others(self, lottery: Lottery, kept: list[Batch]) -> Iterator[tuple[pd.DataFrame, np.ndarray]]:
        """The rows that are not drawn; those that are go to `kept`."""
        for batch in self.batches():
            drawn = lottery.draw(batch.y)
            if drawn is None:
                raise self._changed()
            kept.append(batch.take(drawn))
            rest = batch.take(~drawn)
            if len(rest.y):
                yield rest.frame(), rest.y

    def _changed(self) -> InputError:
        return InputError(f"{self.path.name} has changed while it was read; start again.")


def _fold(nb: NaiveBayesClassifier, kept: list[Batch]) -> Fold:
    held = join(kept)
    return Fold(nb, held.rows, held.frame(), held.y)


def room(n_columns: int) -> int:
    """Rows that may be kept in memory."""
    return max(1, min(_MOST_ROWS, _MOST_CELLS // n_columns))


def larger_than_memory(path: Path) -> bool:
    """Whether an analysis that holds the whole file would need more memory than there is."""
    most = available_memory() / _BYTES_A_BYTE
    return length_of(path, most) > most


def available_memory() -> float:
    """Bytes that a process may take, as far as the system tells: what is available, or a container's limit if less."""
    limits = [_number_in(Path(name), before) for name, before in _LIMITS.items()]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=np.inf)


def _number_in(path: Path, before: str) -> float:
    """The number that a file of the system holds, in bytes; infinity where there is no such file or number."""
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return np.inf
    found = re.search(rf"^{before}(\d+)( kB)?", text, re.MULTILINE)
    return int(found[1]) * (1024 if found[2] else 1) if found else np.inf
