"""Which public name a piece of inline code stands for: docs/conf.py makes links of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from functools import cache, reduce

import bayesnb

CODE = re.compile(r"(?P<prefix>bayesnb\.|bnb\.|nb\.)?(?P<name>[A-Za-z_][\w.]*)(?P<call>\(.*)?", re.DOTALL)


def find_name(code: str, documented: Collection[str], arguments: Collection[str]) -> str | None:
    """Return the documented name that `code` stands for, without "bayesnb."; None if there is none, or several.

    `documented` are names such as "loo", "plots.forest" and "GaussianNB.fit". Code may begin with "bnb." or "bayesnb.",
    and a call may follow the name. The module or the class of a name with an underscore or a capital may be left out,
    as in `zero_one` or `nb.parents_from`, if no other name ends so. A word that is also an argument of a public
    function, such as `weights`, has no link by itself.
    """
    match = CODE.fullmatch(code)
    if not match:
        return None
    prefix, name, call = match.group("prefix", "name", "call")
    bare = not (prefix or call or "." in name)
    alike = [known for known in documented if known.rpartition(".")[2] == name]
    if bare and (len(alike) > 1 or name in arguments):
        return None
    if name in documented and prefix != "nb.":
        return name
    if prefix in ("bnb.", "bayesnb.") or len(alike) != 1:
        return None
    return alike[0] if prefix or "_" in name or name[0].isupper() else None


@cache
def argument_names(documented: frozenset[str]) -> set[str]:
    """Names of the arguments of all documented functions, classes and methods."""
    names: set[str] = set()
    for name in documented:
        found = reduce(lambda owner, part: getattr(owner, part, None), name.split("."), bayesnb)
        if callable(found) and not (inspect.isclass(found) and issubclass(found, Exception)):
            names |= set(inspect.signature(found).parameters)
    return names
