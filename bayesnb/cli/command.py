"""The command that was run: as it was typed, and with other flags; and when."""

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
    """Arguments behind `python -m bayesnb`, and the day they were given, in UTC."""

    arguments: tuple[str, ...]
    day: str

    @property
    def typed(self) -> str:
        """As a shell takes it."""
        return _quoted(self.arguments)

    def again(self, flags: Mapping[str, str]) -> str:
        """The same command with these flags, and another folder to write into.

        Examples
        --------
        >>> from bayesnb.cli.command import Command
        >>> Command(("compare", "--csv", "my file.csv", "--weig=none", "--out", "x"), "").again({"weights": "auto"})
        "python -m bayesnb compare --csv 'my file.csv' --weights auto --out x-weights"
        """
        named = {f"--{name}": value for name, value in flags.items()}
        dropped = dict.fromkeys(named, True) | _OUTPUT
        kept, arguments = [], iter(self.arguments)
        for argument in arguments:
            name, given, value = argument.partition("=")
            # Flags may be abbreviated, as argparse allows.
            flag = next((flag for flag in dropped if len(name) > 2 and flag.startswith(name)), None)
            if flag is None:
                kept.append(argument)
            elif dropped[flag]:
                folder = Path(value if given else next(arguments, ""))
                name = "report" if folder.name in ("", "..") else folder.name
                named |= {flag: str(folder.parent / "-".join([name, *flags]))} if flag == "--out" else {}
        return _quoted([*kept, *(part for pair in named.items() for part in pair)])


def of(arguments: Sequence[str]) -> Command:
    """The command with these arguments, now, or at the seconds of `SOURCE_DATE_EPOCH` where that is set."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)
    return Command(tuple(arguments), now.date().isoformat())


def _quoted(arguments: Sequence[str]) -> str:
    return shlex.join(["python", "-m", "bayesnb", *arguments])
