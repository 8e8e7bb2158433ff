"""What an estimator shows of itself."""

from __future__ import annotations

import inspect
from typing import Any

from sklearn.base import BaseEstimator


class Displayed(BaseEstimator):
    """An estimator of which displays and completion compute nothing.

    Its posterior and all that follows from it are properties. scikit-learn reads every attribute to list those that are
    there, and to show those of a fitted estimator in HTML; here the former are listed unread, and the latter are what
    is stored.
    """

    def __dir__(self) -> list[str]:
        names, fitted = object.__dir__(self), "n_features_in_" in vars(self)
        return [name for name in names if (fitted and _is_property(type(self), name)) or hasattr(self, name)]

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        shown = BaseEstimator()
        for name in {*vars(self), "classes_", "class_count_"} - {"encoding_", "statistics_"}:
            if hasattr(self, name):
                setattr(shown, name, getattr(self, name))
        return BaseEstimator._get_fitted_attr_html(shown, doc_link)


def _is_property(owner: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(owner, name, None), property)
