"""Bayesian naive Bayes: a model is a prior, counting data gives its posterior, all else is a function of it."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from lazy_loader import attach_stub

_import_public, _, __all__ = attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Import a public name of the stub `__init__.pyi`, or a module of the package, when it is first used."""
    if name in __all__:
        return _import_public(name)
    if name in _modules():
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names and the modules, imported or not."""
    return sorted({*globals(), *__all__, *_modules()})


def _modules() -> set[str]:
    """Names of the package's modules."""
    return {module.name for module in iter_modules(__path__)}
