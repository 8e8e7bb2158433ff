"""What came out, as files: tables, figures, the posterior, and a page with all of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesnb._util.progress import progress
from bayesnb.cli.analysis import NAMES, Section, analyse
from bayesnb.cli.command import Command
from bayesnb.cli.holdout import Settings
from bayesnb.cli.job import Outcome
from bayesnb.cli.page import page
from bayesnb.cli.report import conclusion
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.inference_data import to_arviz

if TYPE_CHECKING:
    import pandas as pd

PAGE = "report.html"
POSTERIOR = "posterior.nc"
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_DRAWS = 500
_HEADERS = 2**20
_PARAMETERS = 20_000


def names(titles: Iterable[str]) -> list[str]:
    """Of all files that data sets of these names may get."""
    kinds = [POSTERIOR, *(f"{section}.{kind}" for section in NAMES for kind in ("csv", "png"))]
    return [PAGE, *(f"{_stem(title)}-{kind}" for title in titles for kind in kinds)]


def write(outcomes: Sequence[Outcome], settings: Settings, command: Command, folder: Path) -> list[str]:
    """Write everything that `command` asked for, and return the names of the files.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    analyses: list[list[Section]] = []
    written = []
    for outcome in outcomes:
        with progress(f"{outcome.data.name}: posterior analysis", 1) as tick:
            analyses.append(analyse(outcome, settings.prob))
            tick()
        for name, save in _files(outcome, analyses[-1]).items():
            written.append(f"{_stem(outcome.data.name)}-{name}")
            save(folder / written[-1])
    parts = [
        (outcome, sections, conclusion(outcome, settings, sections))
        for outcome, sections in zip(outcomes, analyses, strict=True)
    ]
    (folder / PAGE).write_text(page(parts, command, settings.seed), encoding="utf-8")
    return [*written, PAGE]


def _files(outcome: Outcome, sections: Sequence[Section]) -> dict[str, Callable[[Path], Any]]:
    files: dict[str, Callable[[Path], Any]] = {
        f"{section.name}.csv": partial(harmless(section.table).to_csv, index=False)
        for section in sections
        if section.table is not None
    }
    files |= {
        f"{section.name}.png": partial(Path.write_bytes, data=section.image[0])
        for section in sections
        if section.figure is not None
    }
    if outcome.parameters is not None and len(outcome.parameters) <= _PARAMETERS:
        files[POSTERIOR] = partial(_write_posterior, outcome.fits.nb)
    return files


def _write_posterior(nb: NaiveBayesClassifier, path: Path) -> None:
    data = to_arviz(nb, draws=_DRAWS)
    # HDF5 does not survive a full disk: what it could not write it tries again when Python ends, and crashes.
    size = _HEADERS + int(1.05 * sum(group.nbytes for group in data.values()))
    with path.open("wb") as file:
        for start in range(0, size, _HEADERS):
            file.write(bytes(min(_HEADERS, size - start)))
    data.to_netcdf(str(path))


def harmless(table: pd.DataFrame) -> pd.DataFrame:
    """The table with an apostrophe before each text that a spreadsheet would compute; numbers stay what they are.

    References
    ----------
    OWASP, *CSV injection*.
    """
    return table.map(_harmless)


def _harmless(cell: Any) -> Any:
    if not (isinstance(cell, str) and cell.startswith(_FORMULA)):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def _stem(title: str) -> str:
    return re.sub(r"[^\w.-]+", "_", title) or "table"
