"""Refusals of analyses that need what a family lacks."""

from __future__ import annotations

from typing import Any

from bayesnb.families import reason_for_lack, supports


def require_capability(family: Any, capability: type) -> Any:
    """Return the family if it has a capability, one of the protocols of `bayesnb.families.protocol`.

    Raises
    ------
    NotImplementedError
        With the reason that the family gives, if it lacks the capability.
    """
    if not supports(family, capability):
        raise NotImplementedError(reason_for_lack(family, capability))
    return family
