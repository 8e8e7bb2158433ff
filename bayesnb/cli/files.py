"""What came out, as files: tables, figures, the posterior, and a page with all of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bayesnb.cli.analysis import Section, analyse
from bayesnb.cli.holdout import Settings
from bayesnb.cli.job import Outcome
from bayesnb.cli.page import page
from bayesnb.cli.tables import InputError
from bayesnb.inference_data import to_arviz
from bayesnb.progress import progress

_DRAWS = 500
_PARAMETERS = 20_000


def write(outcomes: Sequence[Outcome], settings: Settings, folder: Path) -> Iterator[Path]:
    """Write everything and yield the paths.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    analyses = []
    for outcome in outcomes:
        with progress(f"{outcome.data.name}: posterior analysis", 1) as tick:
            analyses.append(analyse(outcome, settings.prob))
            tick()
        for name, save in _files(outcome, analyses[-1]).items():
            yield _save(folder / f"{_stem(outcome)}-{name}", save)
    text = page(zip(outcomes, analyses, strict=True))
    yield _save(folder / "report.html", lambda path: path.write_text(text, encoding="utf-8"))


def _files(outcome: Outcome, sections: Sequence[Section]) -> dict[str, Callable[[Path], Any]]:
    files: dict[str, Callable[[Path], Any]] = {
        f"{section.name}.csv": partial(section.table.to_csv, index=False)
        for section in sections
        if section.table is not None
    }
    files |= {
        f"{section.name}.png": partial(section.figure.savefig, dpi=150, bbox_inches="tight")
        for section in sections
        if section.figure is not None
    }
    if outcome.parameters is not None and len(outcome.parameters) <= _PARAMETERS:
        files["posterior.nc"] = lambda path: to_arviz(outcome.fits.nb, draws=_DRAWS).to_netcdf(str(path))
    return files


def _save(path: Path, save: Callable[[Path], Any]) -> Path:
    try:
        save(path)
    except OSError as error:
        raise InputError(f"--out {path.parent}: {error.strerror or error}.") from None
    return path


def _stem(outcome: Outcome) -> str:
    return re.sub(r"[^\w.-]+", "_", outcome.data.name) or "table"
