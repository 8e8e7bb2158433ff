"""Short labels for names of any length and script, different for different names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

from bayesnb._util.short_names import shorten_apart
from bayesnb._util.warnings import warn
from bayesnb.plots.fonts import undrawable_characters

_BOX = "□"


def labels(values: Iterable[Hashable], width: int = 24) -> dict[Any, str]:
    """Dict from each value to a label of at most `width` columns of text, different for different values.

    Long names lose their middle, or the text that they share if they would look alike. Characters that no installed
    font has become boxes, with a warning. Labels that are still equal get the position of the value, from 0 on.
    """
    names = {value: " ".join(str(value).split()) or repr(value) for value in values}
    if strange := undrawable_characters("".join(names.values())):
        # The message is always the same, so that Python shows it once.
        warn(
            "No installed font has all characters of the names in this figure, and missing characters are drawn as "
            f"{_BOX}. Install a font that has these characters, such as Noto Sans CJK, or name such a font in "
            "matplotlib's rcParams['font.family']."
        )
        box = "?" if undrawable_characters(_BOX) else _BOX
        boxes = str.maketrans(dict.fromkeys(strange, box))
        names = {value: name.translate(boxes) for value, name in names.items()}
    short = shorten_apart(names.values(), width)
    occurrences = Counter(short[name] for name in names.values())
    # An escaped dollar is a dollar; two bare ones would begin a formula.
    return {
        value: (f"{short[name]} #{i}" if occurrences[short[name]] > 1 else short[name]).replace("$", r"\$")
        for i, (value, name) in enumerate(names.items())
    }
