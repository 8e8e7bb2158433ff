"""A report as a typed document, and its three renderings: text for a terminal, Markdown, HTML."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from bayesnb.cli.terminal import WIDTH, enumerate_names, fill, grid, printable

Format = Literal["text", "markdown", "html"]
SUFFIXES: dict[Format, str] = {"text": ".txt", "markdown": ".md", "html": ".html"}

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
    def from_frame(cls, frame: Any) -> Table:
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
    """Return a document, or a section `depth` - 1 levels below it, as text in one of the three formats.

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
    template = templates().overlay(trim_blocks=True).get_template(f"report{SUFFIXES[to]}")
    report = template.render(document=section, depth=depth)
    return re.sub(r"\n{3,}", "\n\n", report).strip("\n")


@cache
def templates() -> Any:
    """Return the package's template environment; in HTML, control characters and markup in values are escaped."""
    import jinja2

    @jinja2.pass_eval_context
    def finalize(context: Any, value: object) -> Any:
        return printable(str(value)) if context.autoescape and not hasattr(value, "__html__") else value

    loader, autoescape = jinja2.PackageLoader("bayesnb.cli"), jinja2.select_autoescape(["html"])
    options: dict[str, Any] = {"autoescape": autoescape, "undefined": jinja2.StrictUndefined, "finalize": finalize}
    environment = jinja2.Environment(loader=loader, **options)
    environment.filters |= {"fill": fill, "grid": grid, "printable": printable, "escaped": _escape}
    environment.filters["enumerated"] = enumerate_names
    environment.globals["width"] = WIDTH
    return environment


def fill_template(template: str, macro: str, **facts: Any) -> str:
    """Fill a macro of a template file with `facts`; return the text, with single blanks between words."""
    return " ".join(getattr(templates().get_template(template).module, macro)(**facts).split())


def fill_list(template: str, macro: str, **facts: Any) -> tuple[str, ...]:
    """Fill a macro of a template file with `facts`; return its items, which begin with "* " on a new line."""
    _, *items = getattr(templates().get_template(template).module, macro)(**facts).split("\n* ")
    return tuple(" ".join(item.split()) for item in items)


def _escape(text: str) -> str:
    """Put a backslash before characters that are Markdown syntax, and escape control characters."""
    return _MARKDOWN.sub(r"\\\1", printable(text))
