"""Displays of estimators that do not compute properties, such as the posterior."""

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
            raise ValueError(
                f"estimator: a {name} cannot wrap another {name}. Pass the classifier that the inner {name} wraps."
            )


def list_attributes(nb: BaseEstimator) -> list[str]:
    """Return the names of the attributes that exist; properties of a fitted classifier are listed without reading them.

    scikit-learn's list reads every attribute, and so computes the posterior. Left out are names that other classifiers
    have, and this one refuses.
    """
    names, fitted = object.__dir__(nb), "n_features_in_" in vars(nb)
    if not fitted:
        return [name for name in names if hasattr(nb, name)]
    members = {name: inspect.getattr_static(type(nb), name, None) for name in names}
    refused = {name for name, member in members.items() if name[0] != "_" and _is_refusal(member)}
    with suppress(Exception):  # Completion must not fail, whatever was set after `fit`.
        if nb.no_posterior is not None or nb.no_evidence is not None:
            refused.add("log_evidence_")
    return [n for n in names if n not in refused and (isinstance(members[n], property) or hasattr(nb, n))]


def _is_refusal(member: object) -> bool:
    """Return whether a property or method is annotated with NoReturn: it always raises."""
    function = member.fget if isinstance(member, property) else member
    return getattr(function, "__annotations__", {}).get("return") == "NoReturn"


def show_html(nb: BaseEstimator) -> str:
    """Return HTML for notebooks: scikit-learn's diagram of the estimator, and the summary of a fitted classifier."""
    html: str = BaseEstimator._repr_html_inner(nb)
    return html + summary(nb)


def show_mimebundle(nb: BaseEstimator, **kwargs: object) -> dict[str, str]:
    """Return scikit-learn's representations of the estimator by MIME type; the HTML includes the fitted summary."""
    bundle: dict[str, str] = BaseEstimator._repr_mimebundle_(nb, **kwargs)
    if "text/html" in bundle:
        bundle["text/html"] += summary(nb)
    return bundle


def show_stored_attributes(nb: BaseEstimator, doc_link: str = "") -> Any:
    """Return scikit-learn's HTML table of fitted attributes, without properties, which would be computed."""
    displayed = BaseEstimator()
    for name in {*vars(nb), "classes_", "class_count_"} - {"fitted_", "model_"}:
        if hasattr(nb, name):
            setattr(displayed, name, getattr(nb, name))
    return BaseEstimator._get_fitted_attr_html(displayed, doc_link)
