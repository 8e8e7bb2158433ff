"""Bayesian naive Bayes: a model is a prior, counting data gives its posterior, all else is a function of it."""

from importlib import import_module
from typing import Any

from bayesnb._util import interrupt as _interrupt  # noqa: F401 (first: all other imports take seconds)

# isort: split
from bayesnb import datasets, decision, plots, sql
from bayesnb._util.compilation_cache import enable_cache
from bayesnb.checking import check_independence, posterior_predictive_check, prior_predictive, prior_sensitivity
from bayesnb.decision import decide
from bayesnb.estimators import (
    AODE,
    KDB,
    SPODE,
    TAN,
    BernoulliNB,
    BinnedNB,
    CategoricalNB,
    ExponentialNB,
    FeatureAveragedNB,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    NaiveBayesMixture,
    NetworkNB,
    PoissonNB,
    TreeAveragedNB,
    WeightedNB,
)
from bayesnb.estimators.from_counts import from_counts
from bayesnb.estimators.semi_supervised import fit_em
from bayesnb.evaluation import compare_estimates, learning_curve
from bayesnb.families import Dirichlet, GammaExponential, GammaPoisson, NormalInverseGamma
from bayesnb.inference_data import to_arviz
from bayesnb.model import NaiveBayes
from bayesnb.persistence import CorruptModelError, load, save
from bayesnb.prediction import (
    conformal,
    estimate_prevalence,
    explain,
    loo_terms,
    terms,
    top_words,
    value_of_information,
    weight_table,
)
from bayesnb.sampling.diagnostic_tests import diagnostic_tests
from bayesnb.sampling.latent import sample_latent
from bayesnb.sampling.nuts import run_nuts
from bayesnb.sampling.source import numpyro_model, numpyro_source
from bayesnb.selection import bayes_factor, loo, permutation_null, prequential, tune_alpha
from bayesnb.streaming import fit_stream
from bayesnb.uncertainty import (
    ImproperPosteriorError,
    context_table,
    cut_table,
    decompose_uncertainty,
    density_table,
    log_odds_moments,
    parameter_table,
    posterior_draws,
    predict_interval,
)
from bayesnb.version import __version__

__all__ = [
    "AODE",
    "KDB",
    "SPODE",
    "TAN",
    "BernoulliNB",
    "BinnedNB",
    "CategoricalNB",
    "CorruptModelError",
    "Dirichlet",
    "ExponentialNB",
    "FeatureAveragedNB",
    "GammaExponential",
    "GammaPoisson",
    "GaussianNB",
    "ImproperPosteriorError",
    "MixedNB",
    "MultinomialNB",
    "NaiveBayes",
    "NaiveBayesMixture",
    "NetworkNB",
    "NormalInverseGamma",
    "PoissonNB",
    "TreeAveragedNB",
    "WeightedNB",
    "__version__",
    "bayes_factor",
    "check_independence",
    "compare_estimates",
    "conformal",
    "context_table",
    "cut_table",
    "datasets",
    "decide",
    "decision",
    "decompose_uncertainty",
    "density_table",
    "diagnostic_tests",
    "distributed",
    "enable_cache",
    "estimate_prevalence",
    "explain",
    "fit_em",
    "fit_stream",
    "from_counts",
    "learning_curve",
    "load",
    "log_odds_moments",
    "loo",
    "loo_terms",
    "numpyro_model",
    "numpyro_source",
    "parameter_table",
    "permutation_null",
    "plots",
    "posterior_draws",
    "posterior_predictive_check",
    "predict_interval",
    "prequential",
    "prior_predictive",
    "prior_sensitivity",
    "run_nuts",
    "sample_latent",
    "save",
    "sql",
    "terms",
    "text",
    "to_arviz",
    "top_words",
    "tune_alpha",
    "value_of_information",
    "weight_table",
]


def __getattr__(name: str) -> Any:
    """Dask, and what scikit-learn has for text, take long to import: not before they are asked for."""
    if name in ("distributed", "text"):
        return import_module(f"bayesnb.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, those that are imported at their first use too."""
    return sorted({*globals(), *__all__})
