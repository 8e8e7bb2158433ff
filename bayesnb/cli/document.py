"""Documents of sections, tables and paragraphs, as text, Markdown, JSON and HTML, on a terminal and in a folder."""

from __future__ import annotations

import base64
import json
import os
import re
import tempfile
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bayesnb._util.terminal import count_columns, shorten, shorten_apart
from bayesnb._util.warnings import OWN_WARNINGS

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Environment
    from jinja2.nodes import EvalContext

# == Errors and warnings of the command line =======================================================


class InputError(Exception):
    """Input that cannot be used; the message is one line for the user."""


class OutputError(Exception):
    """Standard output cannot be written; the argument is the OSError."""


def say(text: str = "") -> None:
    """Print text and flush, so that a full output is noticed at once; raise OutputError if it cannot be written."""
    try:
        print(text, flush=True)
    except OSError as error:
        raise OutputError(error) from None


@contextmanager
def recorded_warnings(*ignored: type[Warning]) -> Iterator[list[str]]:
    """Record user warnings inside the block; at its end the yielded list has their texts, each once."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield messages
    own = set(OWN_WARNINGS).difference(ignored)
    messages += dict.fromkeys(str(w.message) for w in caught if w.category in own)


# == Text for a terminal: East Asian characters take two columns, and control characters are shown, not obeyed

WIDTH = 100
_LONG_NAME = 80
_NARROWEST = 12
_JOINERS = "\u200c\u200d"  # Persian words and emojis are spelt with these characters.


def printable(text: str) -> str:
    r"""Replace control characters by escapes such as \x1b, \n and \u202e."""
    return "".join(map(_escape_character, text))


def _escape_character(c: str) -> str:
    """Return the escape of a control character; all other characters, blanks and joiners stay as they are."""
    harmless = c.isprintable() or c in _JOINERS or unicodedata.category(c) == "Zs"
    return c if harmless else c.encode("unicode_escape", "surrogatepass").decode("ascii")


def grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align a table: the first column to the left, shortened where lines would be too long; all others to the right.

    A line has at most 100 columns of text (`WIDTH`), unless the first column would be narrower than 12.
    """
    names, *others = ([*map(printable, column)] for column in zip(header, *rows, strict=True))
    widths = [max(map(count_columns, column)) for column in others]
    short = shorten_apart(names, max(WIDTH - sum(widths) - 2 * len(widths), _NARROWEST))
    first = max(map(count_columns, short.values()))
    columns = [[short[name] + " " * (first - count_columns(short[name])) for name in names]]
    for width, cells in zip(widths, others, strict=True):
        columns.append([" " * (width - count_columns(cell)) + cell for cell in cells])
    return "\n".join(map("  ".join, zip(*columns, strict=True)))


def fill(text: str, first: str = "", rest: str | None = None) -> str:
    """Wrap a paragraph at 100 columns, with `first` before its first line, and `rest` before all other lines.

    The default of `rest` is `first`.
    """
    rest = first if rest is None else rest
    lines, words = [], first
    for word in map(printable, text.split()):
        if words not in (first, rest) and count_columns(f"{words} {word}") > WIDTH:
            lines.append(words)
            words = rest
        words += word if words in (first, rest) else f" {word}"
    return "\n".join([*lines, words])


def enumerate_names(names: Sequence[str], limit: int) -> str:
    """Join at most `limit` names by commas, each shortened to 80 columns, and count the names that are not shown."""
    shown = ", ".join(shorten(name, _LONG_NAME) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown}, … ({len(names) - limit} more)"


# == A report as a typed document, and its renderings: text for a terminal, Markdown, JSON, HTML ===

Format = Literal["text", "markdown", "json", "html"]
SUFFIXES: dict[Format, str] = {"text": ".txt", "markdown": ".md", "json": ".json", "html": ".html"}

_LONG = 40
_NUMBER = re.compile(r"[-+<>≤]?(\d[\d,]*(\.\d+)?(e[-+]?\d+)?|inf|nan)( ± [\d.,]+|-)?|-|\[.*\]")
_MARKDOWN = re.compile(r"([\\`*_\[\]<>#|~&])")


@dataclass(frozen=True)
class Paragraph:
    """Running text; a role decides how it looks."""

    text: str
    role: Literal["text", "run", "explanation", "verdict", "note"] = "text"


@dataclass(frozen=True)
class Bullets:
    """List of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """Command or expression to copy."""

    text: str


@dataclass(frozen=True)
class Table:
    """Cells as text, the first column for names."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> Table:
        """Return the table of a DataFrame whose cells are strings."""
        return cls(tuple(frame.columns), tuple(map(tuple, frame.to_numpy().tolist())))

    @property
    def looks(self) -> tuple[str, ...]:
        """Look of each column: "" for numbers, to the right; "name" for text, to the left, also the first column.

        Text with a cell of more than 40 characters is "name long".
        """
        return tuple(
            ""
            if i and all(map(_NUMBER.fullmatch, cells))
            else "name" + " long" * (max(map(len, cells), default=0) > _LONG)
            for i, (_, *cells) in enumerate(zip(self.header, *self.rows, strict=True))
        )


@dataclass(frozen=True)
class Figure:
    """PNG image: the name of its file, the content, and its width in pixels of a page."""

    file: str
    title: str
    png: bytes
    width: int

    @property
    def base64(self) -> str:
        """PNG content in base64, as it stands in HTML."""
        return base64.b64encode(self.png).decode()


Block = Paragraph | Bullets | Code | Table | Figure


@dataclass(frozen=True)
class Section:
    """Title, blocks, and sections below; the document is the outermost section.

    Parameters
    ----------
    title : str
    blocks : tuple of blocks
    sections : tuple of Section
    role : {"", "box", "fold"}
        HTML puts "box" into a frame and hides "fold" until the reader opens it; neither is listed among the links.
    """

    title: str
    blocks: tuple[Block, ...] = ()
    sections: tuple[Section, ...] = ()
    role: Literal["", "box", "fold"] = ""


def render(section: Section, to: Format, depth: int = 1) -> str:
    """Return a document, or a section `depth` - 1 levels below it, as text in one of the formats.

    Examples
    --------
    >>> from bayesnb.cli.document import Paragraph, Section, Table, render
    >>> table = Table(("estimate", "brier"), (("mle", "0.30"),))
    >>> print(render(Section("Scores", (Paragraph("Lower is better."), table)), "markdown"))
    # Scores
    <BLANKLINE>
    Lower is better.
    <BLANKLINE>
    | estimate | brier |
    | :-- | --: |
    | mle | 0.30 |
    """
    if to == "json":
        return json.dumps(_to_plain(section), indent=2)
    template = templates().overlay(trim_blocks=True).get_template(f"report{SUFFIXES[to]}")
    report = template.render(document=section, depth=depth)
    return re.sub(r"\n{3,}", "\n\n", report).strip("\n")


def _to_plain(part: object) -> object:
    """Return a part of a document for JSON: a dictionary of its type and its fields, without the content of images."""
    if isinstance(part, tuple):
        return list(map(_to_plain, part))
    if not isinstance(part, Section | Block):
        return part
    names = [field.name for field in fields(part) if field.name != "png"]
    return {"type": type(part).__name__.lower()} | {name: _to_plain(getattr(part, name)) for name in names}


@cache
def templates() -> Environment:
    """Return the package's template environment; in HTML, control characters and markup in values are escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, pass_eval_context, select_autoescape

    @pass_eval_context
    def finalize(context: EvalContext, value: object) -> object:
        return printable(str(value)) if context.autoescape and not hasattr(value, "__html__") else value

    loader, autoescape = PackageLoader("bayesnb.cli"), select_autoescape(["html"])
    environment = Environment(loader=loader, autoescape=autoescape, undefined=StrictUndefined, finalize=finalize)
    environment.filters |= {"fill": fill, "grid": grid, "printable": printable, "escaped": _escape}
    environment.filters["enumerated"] = enumerate_names
    environment.globals["width"] = WIDTH
    return environment


def fill_template(template: str, macro: str, **facts: object) -> str:
    """Fill a macro of a template file with `facts`; return the text, with single blanks between words."""
    return " ".join(getattr(templates().get_template(template).module, macro)(**facts).split())


def fill_list(template: str, macro: str, **facts: object) -> tuple[str, ...]:
    """Fill a macro of a template file with `facts`; return its items, which begin with "* " on a new line."""
    _, *items = getattr(templates().get_template(template).module, macro)(**facts).split("\n* ")
    return tuple(" ".join(item.split()) for item in items)


def _escape(text: str) -> str:
    """Put a backslash before characters that are Markdown syntax, and escape control characters."""
    return _MARKDOWN.sub(r"\\\1", printable(text))


# == Folder of `--out`: names of its files, and their replacement when all of them are written =====

BUILT_IN = ("breast_cancer", "watermelon")
"""Names of the data sets that are analysed without a file."""
_ANALYSES = ("comparison", "reliability", "weights", "prior", "parameters", "sensitivity", "rows", "pairs")
"""Analyses that may have files: a table, a figure, or both."""


def file_names(data_sets: Iterable[str]) -> list[str]:
    """List the names of all files that a run on these data sets may write."""
    reports = [f"report{suffix}" for suffix in reversed(SUFFIXES.values())]
    parts = [("posterior", "nc"), *((name, suffix) for name in _ANALYSES for suffix in ("csv", "png"))]
    return [*reports, *(f"{file_stem(title, name)}.{suffix}" for title in data_sets for name, suffix in parts)]


def file_stem(data_set: str, analysis: str) -> str:
    """Return the name of an analysis's files without suffix, "<data set>-<analysis>", with safe characters.

    Each run of characters in the data set's name that are not letters, digits, `_`, `.` or `-` becomes one `_`; an
    empty name becomes "table".
    """
    stem = re.sub(r"[^\w.-]+", "_", data_set) or "table"
    return f"{stem}-{analysis}"


def require_free(folder: Path, names: Sequence[str], overwrite: bool) -> None:
    """Raise InputError if the folder has files of these names that may not be replaced, or folders of these names."""
    present = [folder / name for name in names if os.path.lexists(folder / name)]
    kept = [path.name for path in present if not overwrite or path.is_dir()]
    if kept:
        advice = "; --overwrite does not replace folders" if overwrite else ", or replace the files with --overwrite"
        raise InputError(f"--out {folder} already has {enumerate_names(kept, 12)}. Choose another folder{advice}.")


@contextmanager
def filled(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield a temporary folder to write into; at the end its files replace those of these names in `folder`.

    After an error, or an interrupt, `folder` is as it was.

    Raises
    ------
    InputError
        At the beginning, if the folder cannot be written; at the end, if a file could not be written.
    """
    try:
        new_folders = [path for path in (folder, *folder.parents) if not path.exists()]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".bayesnb-", dir=folder) as temporary:
                yield Path(temporary)
                for name in names:  # An earlier run may have written files that this run has not.
                    (folder / name).unlink(missing_ok=True)
                for path in Path(temporary).iterdir():
                    path.replace(folder / path.name)
        finally:
            with suppress(OSError):  # The folder has files: everything went well.
                for path in new_folders:
                    path.rmdir()
    except OSError as error:
        raise InputError(f"--out {folder} cannot be written: {error.strerror or error}.") from None
