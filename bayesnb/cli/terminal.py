"""Text for a terminal: East Asian characters take two columns, and control characters are shown, not obeyed."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bayesnb._util.terminal import count_columns, shorten, shorten_apart
from bayesnb._util.warnings import OWN_WARNINGS

WIDTH = 100
_LONG_NAME = 80
_NARROWEST = 12
_JOINERS = "\u200c\u200d"  # Persian words and emojis are spelt with these characters.


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
