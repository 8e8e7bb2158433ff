"""Evaluation: scores of predicted probabilities on held-out rows, and comparison of the estimates."""

from bayesnb.evaluation.compare import compare_estimates, compare_fitted, compare_folds
from bayesnb.evaluation.curve import learning_curve
from bayesnb.evaluation.resampling import corrected_error, nested_splits, stratified_splits
from bayesnb.evaluation.scores import reliability, scores

__all__ = [
    "compare_estimates",
    "compare_fitted",
    "compare_folds",
    "corrected_error",
    "learning_curve",
    "nested_splits",
    "reliability",
    "scores",
    "stratified_splits",
]
