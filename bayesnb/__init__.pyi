"""Public names for type checkers and editors; the package imports each of them when it is first used."""

from . import datasets, decision, distributed, kernels, plots, sql, text
from ._util.arrays import TooManyNumbersError
from ._util.precision import ForkedError, enable_cache
from ._util.warnings import (
    CopiedRowsWarning,
    NoWeightsWarning,
    SuspiciousColumnWarning,
    UndefinedProbabilityWarning,
    UnknownLevelWarning,
)
from .analysis.conformal import conformal
from .analysis.dependence import check_independence
from .analysis.drift import check_drift
from .analysis.explanation import explain, top_words, value_of_information
from .analysis.predictive import parameter_sensitivity, posterior_predictive_check, prior_predictive, prior_sensitivity
from .analysis.prevalence import estimate_prevalence
from .analysis.selection import bayes_factor, loo, permutation_null, prequential, tune_alpha
from .decision import decide
from .encoding import check_table
from .encoding.priors import prior_from_interval
from .estimators import (
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
    NegativeBinomialNB,
    NetworkNB,
    PoissonNB,
    TreeAveragedNB,
    WeightedNB,
)
from .estimators.from_counts import from_counts
from .estimators.latent import fit_em
from .evaluation import compare_estimates, learning_curve
from .families import BetaNegativeBinomial, Dirichlet, GammaExponential, GammaPoisson, NormalInverseGamma
from .fitted.state import NotOfferedError
from .model import JointLikelihood, NaiveBayes, Statistics
from .persistence import CorruptModelError, load, save
from .sampling.diagnostic_tests import diagnostic_tests
from .sampling.latent import sample_latent
from .sampling.nuts import run_nuts
from .sampling.source import numpyro_model, numpyro_source
from .streaming import fit_stream
from .uncertainty import (
    ImproperPosteriorError,
    context_table,
    contrast,
    cut_table,
    decompose_uncertainty,
    density_table,
    dependence_ratio,
    log_odds_moments,
    parameter_table,
    posterior_draws,
    predict_interval,
)
from .uncertainty.arviz import to_arviz
from .version import __version__
from .weights.terms import loo_terms, terms, weight_table

__all__ = [
    "AODE",
    "KDB",
    "SPODE",
    "TAN",
    "BernoulliNB",
    "BetaNegativeBinomial",
    "BinnedNB",
    "CategoricalNB",
    "CopiedRowsWarning",
    "CorruptModelError",
    "Dirichlet",
    "ExponentialNB",
    "FeatureAveragedNB",
    "ForkedError",
    "GammaExponential",
    "GammaPoisson",
    "GaussianNB",
    "ImproperPosteriorError",
    "JointLikelihood",
    "MixedNB",
    "MultinomialNB",
    "NaiveBayes",
    "NaiveBayesMixture",
    "NegativeBinomialNB",
    "NetworkNB",
    "NoWeightsWarning",
    "NormalInverseGamma",
    "NotOfferedError",
    "PoissonNB",
    "Statistics",
    "SuspiciousColumnWarning",
    "TooManyNumbersError",
    "TreeAveragedNB",
    "UndefinedProbabilityWarning",
    "UnknownLevelWarning",
    "WeightedNB",
    "__version__",
    "bayes_factor",
    "check_drift",
    "check_independence",
    "check_table",
    "compare_estimates",
    "conformal",
    "context_table",
    "contrast",
    "cut_table",
    "datasets",
    "decide",
    "decision",
    "decompose_uncertainty",
    "density_table",
    "dependence_ratio",
    "diagnostic_tests",
    "distributed",
    "enable_cache",
    "estimate_prevalence",
    "explain",
    "fit_em",
    "fit_stream",
    "from_counts",
    "kernels",
    "learning_curve",
    "load",
    "log_odds_moments",
    "loo",
    "loo_terms",
    "numpyro_model",
    "numpyro_source",
    "parameter_sensitivity",
    "parameter_table",
    "permutation_null",
    "plots",
    "posterior_draws",
    "posterior_predictive_check",
    "predict_interval",
    "prequential",
    "prior_from_interval",
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
