"""Base class of estimators whose displays compute nothing."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import Any

from sklearn.base import BaseEstimator

from bayesnb.estimators.summary import summary


def require_unnested(nb: BaseEstimator) -> None:
    """Raise ValueError if a classifier wraps another one of its class, at any depth.

    The time of scikit-learn's `repr` doubles with each level of nesting.
    """
    inner = nb
    while isinstance(inner := getattr(inner, "estimator", None), BaseEstimator):
        if isinstance(inner, type(nb)) or isinstance(nb, type(inner)):
            name = type(nb).__name__
            raise ValueError(f"estimator: a {name} takes no other {name}. Give it the classifier that the other wraps.")


class Displayed(BaseEstimator):
    """Estimator whose displays and completion do not compute its properties, such as the posterior.

    scikit-learn reads every attribute to list those that exist, and to show those of a fitted estimator in HTML. This
    class lists properties without reading them, and shows stored attributes only.
    """

    def __dir__(self) -> list[str]:
        names, fitted = object.__dir__(self), "n_features_in_" in vars(self)
        refused = self._refused() if fitted else frozenset()
        unread = {name for name in names if fitted and _is_property(type(self), name)}
        return [name for name in names if name not in refused and (name in unread or hasattr(self, name))]

    def _refused(self) -> frozenset[str]:
        """Return the names of attributes that other classifiers have, and this one refuses."""
        refused = {name for name in dir(type(self)) if name[0] != "_" and _is_refusal(type(self), name)}
        with suppress(Exception):  # Completion must not fail, whatever was set after `fit`.
            nb: Any = self
            if nb.no_posterior is not None or nb.no_evidence is not None:
                refused.add("log_evidence_")
        return frozenset(refused)

    def _repr_html_inner(self) -> str:
        html: str = super()._repr_html_inner()
        return html + summary(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += summary(self)
        return bundle

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        displayed = BaseEstimator()
        for name in {*vars(self), "classes_", "class_count_"} - {"fitted_", "model_"}:
            if hasattr(self, name):
                setattr(displayed, name, getattr(self, name))
        return BaseEstimator._get_fitted_attr_html(displayed, doc_link)


def _is_property(owner: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(owner, name, None), property)


def _is_refusal(owner: type, name: str) -> bool:
    """Return whether a property or method is annotated as never returning."""
    attribute = inspect.getattr_static(owner, name, None)
    function = attribute.fget if isinstance(attribute, property) else attribute
    return getattr(function, "__annotations__", {}).get("return") == "NoReturn"
