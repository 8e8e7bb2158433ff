"""What an estimator shows of itself."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import Any

from sklearn.base import BaseEstimator

from bayesnb.estimators.summary import summary


def require_unnested(nb: BaseEstimator) -> None:
    """Raise ValueError if a classifier wraps another one of its class, at any depth.

    scikit-learn's `repr` takes twice as long with each estimator that stands in another.
    """
    inner = nb
    while isinstance(inner := getattr(inner, "estimator", None), BaseEstimator):
        if isinstance(inner, type(nb)) or isinstance(nb, type(inner)):
            name = type(nb).__name__
            raise ValueError(f"estimator: a {name} takes no other {name}. Give it the classifier that the other wraps.")


class Displayed(BaseEstimator):
    """An estimator of which displays and completion compute nothing.

    Its posterior and all that follows from it are properties. scikit-learn reads every attribute to list those that are
    there, and to show those of a fitted estimator in HTML; here the former are listed unread, and the latter are what
    is stored.
    """

    def __dir__(self) -> list[str]:
        names, fitted = object.__dir__(self), "n_features_in_" in vars(self)
        refused = self._refused() if fitted else frozenset()
        unread = {name for name in names if fitted and _is_property(type(self), name)}
        return [name for name in names if name not in refused and (name in unread or hasattr(self, name))]

    def _refused(self) -> frozenset[str]:
        """What other classifiers have, and this one says that it does not."""
        found = {name for name in dir(type(self)) if name[0] != "_" and _is_refusal(type(self), name)}
        with suppress(Exception):  # whatever was set after `fit`
            nb: Any = self
            if nb.no_posterior is not None or nb.no_evidence is not None:
                found.add("log_evidence_")
        return frozenset(found)

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + summary(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += summary(self)
        return bundle

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        shown = BaseEstimator()
        for name in {*vars(self), "classes_", "class_count_"} - {"fitted_", "model_"}:
            if hasattr(self, name):
                setattr(shown, name, getattr(self, name))
        return BaseEstimator._get_fitted_attr_html(shown, doc_link)


def _is_property(owner: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(owner, name, None), property)


def _is_refusal(owner: type, name: str) -> bool:
    """Whether it is a property, or a method, that never returns."""
    own = inspect.getattr_static(owner, name, None)
    read = own.fget if isinstance(own, property) else own
    return getattr(read, "__annotations__", {}).get("return") == "NoReturn"
