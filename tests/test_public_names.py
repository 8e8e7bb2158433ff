"""Public names of the package and its modules, and imports from other packages."""

import ast
import importlib
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import bayesnb
from bayesnb.fitted import Fitted

# contracts of the project, as far as they are there; a name that leaves this list is a broken promise.
FIXED = """
    Dirichlet NormalInverseGamma GammaPoisson NaiveBayes CategoricalNB BernoulliNB MultinomialNB GaussianNB PoissonNB
    ExponentialNB GammaExponential MixedNB TAN SPODE AODE NetworkNB FeatureAveragedNB NaiveBayesMixture
    posterior_draws parameter_table
    predict_interval decompose_uncertainty log_odds_moments compare_estimates learning_curve loo tune_alpha bayes_factor
    decide check_independence prior_sensitivity run_nuts to_arviz fit_em fit_stream distributed save load
    CorruptModelError ImproperPosteriorError plots text datasets decision prior_predictive prequential
    from_counts sql WeightedNB terms loo_terms weight_table conformal estimate_prevalence explain value_of_information
    enable_cache top_words
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


@pytest.mark.parametrize("name", ["datasets", "decision", "evaluation", "plots", "sql", "streaming", "text"])
def test_a_module_says_what_it_offers(name):
    module = importlib.import_module(f"bayesnb.{name}")
    assert len(set(module.__all__)) == len(module.__all__) > 0
    assert all(hasattr(module, own) for own in module.__all__)


X = np.array([[0, 1], [1, 0], [0, 0], [1, 1], [2, 1], [0, 1]] * 4)
Y = np.array(list("ababab") * 4)
REFUSED = {
    "AODE": {"prior_", "posterior_", "parents_", "log_evidence_"},
    "TreeAveragedNB": {"parents_", "query"},
    "WeightedNB": {"log_evidence_"},
    "GaussianNB": set(),
    "KDB": set(),
    "FeatureAveragedNB": set(),
}


@pytest.mark.slow("other variants compile kernels of their own", but=["CategoricalNB", "WeightedNB"])
@pytest.mark.parametrize("name", sorted(set(REFUSED) | {"CategoricalNB", "MixedNB", "TAN", "NetworkNB"}))
def test_completion_in_a_notebook_computes_nothing(name, monkeypatch):
    """jedi, which IPython asks, reads the annotations of properties: one of them that it cannot read hides all."""
    jedi = pytest.importorskip("jedi")
    nb = getattr(bayesnb, name)().fit(X, Y)

    def computed(self):
        raise AssertionError("computed")

    for attribute in ("prior", "posterior", "log_evidence", "class_log_prior"):
        monkeypatch.setattr(Fitted, attribute, property(computed))
    offered = {found.name for found in jedi.Interpreter("nb.", [{"nb": nb}]).complete(1, 3)}
    assert {"predict_proba", "classes_"} <= offered
    assert not REFUSED.get(name, set()) & offered


@cache
def imported():
    """Every module that the package imports, and where."""
    root, found = Path(bayesnb.__file__).parent, []
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found += [(alias.name, path.relative_to(root)) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.append((node.module, path.relative_to(root)))
    return found


def test_nothing_is_taken_from_the_inside_of_arviz():
    found = {name: where for name, where in imported() if name.partition(".")[0].startswith("arviz")}
    assert set(found) == {"arviz"}, found
