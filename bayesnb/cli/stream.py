"""Files larger than memory: read in pieces, most rows counted, some held out."""

from __future__ import annotations

import copy
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb.cli.holdout import NONE_HELD_OUT, SHARE, Fits, Fold, Sample, Settings
from bayesnb.cli.reading import InputError, opened
from bayesnb.streaming import fit_stream

if TYPE_CHECKING:
    import pandas as pd

    from bayesnb.estimators.base import NaiveBayesClassifier

Batch = tuple["pd.DataFrame", np.ndarray]

_MOST_ROWS = 100_000
_MOST_CELLS = 10_000_000
# Peak memory of an analysis that holds the whole table, in bytes a byte of the file; measured: 10 to 45, most where
# cells are short.
_BYTES_A_BYTE = 45
_LIMITS = {
    "/proc/meminfo": r"MemAvailable:\s+",
    "/sys/fs/cgroup/memory.max": "",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": "",
}


@dataclass(frozen=True, eq=False)
class Streamed:
    """Rows of a file.

    Parameters
    ----------
    batches : callable
        Reads the file once more: features, with the rows' numbers as index, and labels.
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

        Weights are fitted to halves of a sample of the rows that were counted.

        Raises
        ------
        InputError
            If no row can be held out; if the file is not what it was when its columns were typed.
        """
        n = sum(self.class_count.values())
        share = SHARE if settings.test_size is None else settings.test_size
        sample = Sample(self.class_count, min(share, self.most / n), settings.seed)
        size = len(sample)
        if not size:
            raise InputError(NONE_HELD_OUT)
        weighs = nb.unweighted is not nb
        counted = Sample(sample.others, min(1.0, self.most / (n - size)) if weighs else 0.0, settings.seed)
        kept: list[Batch] = []
        weighed: list[Batch] = []
        batches = self._others(sample, kept, counted, weighed)
        fitted: Any = fit_stream(nb, batches, classes=list(self.class_count), progress=False)
        if any(sample.left.values()):
            raise self._changed()
        if weighs:
            fitted.weigh(*join(weighed))
        X, y = join(kept)
        fold = Fold(fitted, X.index.to_numpy(), X.reset_index(drop=True), y)
        whole = copy.copy(fitted).partial_fit(fold.X, y)
        why = " (a sample that fits into memory)" if share > self.most / n else ""
        said = f"{size:,} rows held out, stratified{why}; fitted to the other {n - size:,}"
        return Fits(whole, [fold], said, fold.X, y)

    def _others(self, sample: Sample, kept: list[Batch], counted: Sample, weighed: list[Batch]) -> Iterator[Batch]:
        """The rows that are not drawn; those that are go to `kept`, and those of them that are to `weighed` too."""
        for X, y in self.batches():
            drawn = sample.draw(y)
            if min(sample.left.values()) < 0:
                raise self._changed()
            kept.append((X[drawn], y[drawn]))
            X, y = X[~drawn], y[~drawn]
            also = counted.draw(y)
            weighed.append((X[also], y[also]))
            if len(y):
                yield X, y

    def _changed(self) -> InputError:
        return InputError(f"{self.path.name} has changed while it was read; start again.")


def join(batches: Sequence[Batch]) -> Batch:
    """Batches of the same columns as one."""
    import pandas as pd

    X, y = zip(*batches, strict=True)
    return pd.concat(X), np.concatenate(y)


def room(n_columns: int) -> int:
    """Rows that may be kept in memory."""
    return max(1, min(_MOST_ROWS, _MOST_CELLS // n_columns))


def larger_than_memory(path: Path) -> bool:
    """Whether an analysis that holds the whole file would need more memory than there is."""
    if not os.path.isfile(path):
        return False  # a pipe, which can be read only once
    with opened(path) as content:
        content.seek(int(min(available_memory() / _BYTES_A_BYTE, sys.maxsize)))
        return bool(content.read(1))


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
