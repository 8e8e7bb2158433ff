"""Structures that the rows decide."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.utils.metaestimators import available_if

from bayesnb.encoding import Encoding
from bayesnb.estimators.network_base import StructuredNB


class LearnedStructure(StructuredNB):
    """Base of the classifiers whose structure `fit` finds; further rows are counted for that one."""

    _learned: ClassVar[str]
    """What `fit` finds."""

    def _made_choices(self, encoding: Encoding) -> tuple[str, ...]:
        return (self._learned, *super()._made_choices(encoding))

    def _has_structure(self) -> bool:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(
                f"{type(self).__name__} has partial_fit only once fit has found {self._learned}: later rows may want "
                "another. NetworkNB(parents=...) counts for given parents from the start."
            )
        return True

    @available_if(_has_structure)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Count further rows for the structure that `fit` has found; as `NaiveBayesClassifier.partial_fit`.

        Examples
        --------
        >>> from bayesnb import TAN
        >>> X, y = [["sun", "dry"], ["sun", "wet"], ["rain", "wet"], ["rain", "wet"]], ["out", "out", "in", "in"]
        >>> tan = TAN().fit(X, y)
        >>> tan.partial_fit([["sun", "dry"]], ["out"]).class_count_  # in, out
        array([2., 3.])
        """
        return super().partial_fit(X, y, classes, sample_weight)
