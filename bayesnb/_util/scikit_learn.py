"""Base classes of scikit-learn's estimators, with types for type checkers: scikit-learn has none.

A checker that does not know a base class accepts any argument of a constructor, and any attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:

    class BaseEstimator:
        """Methods that all estimators share."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Hyperparameters by name."""

        def set_params(self, **params: object) -> Self:
            """Set hyperparameters, and return the estimator."""

        def set_fit_request(self, **requested: object) -> Self:
            """Request metadata for `fit`, and return the estimator."""

        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin:
        """Marks a classifier."""

    class DensityMixin:
        """Marks an estimator of densities."""

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, DensityMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "DensityMixin"]
