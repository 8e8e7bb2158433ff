"""What `import bayesnb` offers, and what it takes from others."""

import ast
from pathlib import Path

import pytest

import bayesnb

# contracts of the project, as far as they are there; a name that leaves this list is a broken promise.
FIXED = """
    Dirichlet NormalInverseGamma GammaPoisson NaiveBayes CategoricalNB BernoulliNB MultinomialNB GaussianNB PoissonNB
    ExponentialNB GammaExponential MixedNB TAN SPODE AODE NetworkNB FeatureAveragedNB PolyaNB NaiveBayesMixture
    posterior_draws parameter_table
    predict_interval decompose_uncertainty log_odds_moments compare_estimates learning_curve loo tune_alpha bayes_factor
    decide check_independence prior_sensitivity run_nuts to_arviz fit_em fit_stream distributed save load
    CorruptModelError ImproperPosteriorError plots text datasets decision prior_predictive prequential
    from_counts sql WeightedNB terms loo_terms weight_table conformal estimate_prevalence explain value_of_information
""".split()  # noqa: SIM905


@pytest.mark.parametrize("name", FIXED)
def test_public_names_are_found_by_looking(name):
    assert name in dir(bayesnb)
    assert name in bayesnb.__all__


def test_what_loads_late_is_there():
    assert set(bayesnb.__all__) <= set(dir(bayesnb))
    assert bayesnb.text.BagOfWords
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        bayesnb.nonsense  # noqa: B018


def imported():
    """Every module that the package imports, and where."""
    root = Path(bayesnb.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((alias.name, path.relative_to(root)) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module, path.relative_to(root)


def test_nothing_is_taken_from_the_inside_of_arviz():
    found = {name: where for name, where in imported() if name.partition(".")[0].startswith("arviz")}
    assert set(found) == {"arviz"}, found
