"""The command line that was typed, repeated with other options, and the day it was typed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_OUTPUT = {"--out": True, "--overwrite": False}


@dataclass(frozen=True)
class Command:
    """Arguments of `python -m bayesnb`, and the day they were given, in UTC."""

    arguments: tuple[str, ...]
    day: str

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> Command:
        """Command of today, or of the time `SOURCE_DATE_EPOCH` (in seconds) if that variable is set."""
        epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
        now = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)
        return cls(tuple(arguments), now.date().isoformat())

    @property
    def typed(self) -> str:
        """The command, quoted for a shell."""
        return _quote(self.arguments)

    def again(self, options: Mapping[str, str]) -> str:
        """Command with these options in place of those that were typed, and with another folder to write into.

        Examples
        --------
        >>> from bayesnb.cli.command import Command
        >>> Command(("compare", "--csv", "my file.csv", "--weig=none", "--out", "x"), "").again({"weights": "auto"})
        "python -m bayesnb compare --csv 'my file.csv' --weights auto --out x-weights"
        """
        given = {f"--{name}": value for name, value in options.items()}
        replaced = dict.fromkeys(given, True) | _OUTPUT
        kept, arguments = [], iter(self.arguments)
        for argument in arguments:
            name, equals, value = argument.partition("=")
            # Options may be abbreviated, as argparse allows.
            option = next((option for option in replaced if len(name) > 2 and option.startswith(name)), None)
            if option is None:
                kept.append(argument)
            elif replaced[option]:
                folder = Path(value if equals else next(arguments, ""))
                stem = "report" if folder.name in ("", "..") else folder.name
                given |= {option: str(folder.parent / "-".join([stem, *options]))} if option == "--out" else {}
        return _quote([*kept, *(part for pair in given.items() for part in pair)])


def _quote(arguments: Sequence[str]) -> str:
    return shlex.join(["python", "-m", "bayesnb", *arguments])
