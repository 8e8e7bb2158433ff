"""Checks that a family has the optional methods that an analysis needs."""

from __future__ import annotations

from typing import Any

from bayesnb.families import reason_for_lack, supports


def require_capability(family: Any, capability: type) -> Any:
    """Return the family unchanged if it implements a capability, one of the protocols of `bayesnb.families.protocol`.

    Raises
    ------
    NotImplementedError
        If the family lacks the capability, with the reason that the family states.
    """
    if not supports(family, capability):
        raise NotImplementedError(reason_for_lack(family, capability))
    return family
