"""Every public function refuses unusable arguments, and the error names the argument and its value."""

import re

import numpy as np
import numpyro  # noqa: F401, since JAX traces every kernel anew after it
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import GaussianNB as Foreign
from sklearn.pipeline import make_pipeline

import bayesnb as bnb
from bayesnb import evaluation
from tests.estimators.cases import CASES, NAMES, each, some, state

HUGE = 10**400
GIANT = 10**5000  # which Python refuses to write
X = np.array([[0, 1], [1, 0], [0, 0], [1, 1], [2, 1], [0, 1], [1, 2], [2, 0]])
Y = np.array(list("ababbaba"))
REAL = X.astype(float)


@pytest.fixture(scope="module")
def nb():
    return bnb.CategoricalNB().fit(X, Y)


def assert_refused(call, *says, error=(ValueError, TypeError)):
    """Raises one of our errors, in which each of `says` is, and which fits a screen."""
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) in (ValueError, TypeError)
    message = str(caught.value)
    for word in says:
        assert re.search(word, message), f"{word!r} is not in: {message}"
    assert len(message) < 1200


# -- numbers that no float64 holds -------------------------------------------------------------------


@some("GaussianNB", "PoissonNB", "MultinomialNB", "BernoulliNB", quick=["GaussianNB"])
@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, np.ndarray.tolist], ids=["array", "frame", "list"])
def test_a_cell_too_large_for_a_number(case, form):
    cells = case.X.astype(object)
    cells[17, 2] = HUGE
    made = case.fit()
    before = state(made)
    for call in (made.predict, lambda bad: made.partial_fit(bad, case.y), lambda bad: made.forget(bad, case.y)):
        assert_refused(lambda call=call: call(form(cells)), "Input X", "column '2'", "row 17", "1e400", "too large")
    assert state(made) == before


def test_a_level_may_be_as_large_as_it_likes():
    cells = X.astype(object)
    cells[X == 2] = HUGE
    made = bnb.CategoricalNB().fit(cells, Y)
    assert made.categories_[1].tolist() == [0, 1, HUGE]
    assert bnb.CategoricalNB().fit(X, [HUGE, 1] * 4).classes_.tolist() == [1, HUGE]


@each
@pytest.mark.parametrize("huge", [HUGE, -HUGE, GIANT], ids=["huge", "-huge", "giant"])
def test_hyperparameters_and_weights_too_large(case, huge):
    weights = [1.0] * len(case.y)
    weights[5] = huge
    for name, value in {"class_alpha": huge, "class_prior": [huge, 0, 0]}.items():
        fresh = case.make(**{name: value})
        assert_refused(lambda fresh=fresh: fresh.fit(case.X, case.y), rf"\b{name}\b", "too large|float64")
        assert not hasattr(fresh, "classes_")
    for weight in (weights, np.array(weights, object), huge):
        fresh = case.make()
        assert_refused(lambda w=weight, nb=fresh: nb.fit(case.X, case.y, sample_weight=w), "sample_weight", "too large")
        assert not hasattr(fresh, "classes_")


@pytest.mark.parametrize("weight", ["heavy", ["a"] * 8, {}, len, [object()] * 8, np.full(8, 1j)])
def test_weights_that_are_no_numbers(nb, weight):
    before = state(nb)
    assert_refused(lambda: nb.partial_fit(X, Y, sample_weight=weight), "[Ss]ample_weight|[Cc]omplex")
    assert state(nb) == before


@pytest.mark.parametrize("name", ["alpha", "class_alpha"])
@pytest.mark.parametrize("value", ["1", np.array(["1", "1"]), 1j, np.array([1j, 1j]), [[1, 2], [3]], object()])
def test_concentrations_that_are_no_numbers(name, value):
    assert_refused(lambda: bnb.MultinomialNB(**{name: value}).fit(REAL, Y), rf"\b{name}\b")


def test_a_weight_that_float64_cannot_reckon_with():
    """Subnormal numbers are flushed to zero by the kernels, and priors from such data were those of no data."""
    weight = np.ones(8)
    weight[3] = 1e-320
    assert_refused(lambda: bnb.GaussianNB().fit(REAL, Y, sample_weight=weight), "sample_weight", "1e-320", "row 3")
    weight[3] = 1e-300
    bnb.GaussianNB().fit(REAL, Y, sample_weight=weight)


# -- seeds and counts --------------------------------------------------------------------------------

SEEDED = {
    "posterior_draws": lambda nb, **o: bnb.posterior_draws(nb, **o),
    "predict_interval": lambda nb, **o: bnb.predict_interval(nb, X, method="draws", **o),
    "decompose_uncertainty": lambda nb, **o: bnb.decompose_uncertainty(nb, X, **o),
    "decide": lambda nb, **o: bnb.decide(nb, X, 1 - np.eye(2), **o),
    "prior_predictive": lambda nb, **o: bnb.prior_predictive(nb, **o),
    "check_independence": lambda nb, **o: bnb.check_independence(nb, X, Y, **o),
    "posterior_predictive_check": lambda nb, **o: bnb.posterior_predictive_check(nb, X, Y, **o),
    "to_arviz": lambda nb, **o: bnb.to_arviz(nb, **o),
    "run_nuts": lambda nb, **o: bnb.run_nuts(nb, **o),
}
SPLIT = {
    "learning_curve": lambda nb, **o: bnb.learning_curve(nb, X, Y, [1], 2, **o),
    "compare_estimates": lambda nb, **o: bnb.compare_estimates(nb, X, Y, repeats=2, **o),
    "stratified_splits": lambda nb, **o: evaluation.stratified_splits(Y, 2, **o),
    "nested_splits": lambda nb, **o: evaluation.nested_splits(Y, 2, 2, **o),
    "fit_em": lambda nb, **o: bnb.fit_em(nb, X, Y, **o),
    "NaiveBayesMixture": lambda nb, **o: bnb.NaiveBayesMixture(**o).fit(X),
}


@pytest.mark.parametrize("name", [*SEEDED, *SPLIT])
def test_a_seed_is_an_integer_of_at_least_zero(nb, name):
    call = (SEEDED | SPLIT)[name]
    for seed in (-1, 1.5, "a", None, True, np.nan, [1, 2], HUGE, GIANT):
        assert_refused(lambda seed=seed: call(nb, seed=seed), "^seed=", "integer")


@pytest.mark.parametrize("name", SEEDED)
def test_a_number_of_draws_that_could_not_be_made(nb, name):
    """`prior_predictive` went on for ever."""
    for draws in (HUGE, GIANT, 2**31, 0, -1, 1.5, np.nan, True):
        assert_refused(lambda draws=draws: SEEDED[name](nb, draws=draws), "^draws=", "integer")


# -- objects of another kind -------------------------------------------------------------------------

TAKE_A_CLASSIFIER = {
    "decide": lambda nb: bnb.decide(nb, X, 1 - np.eye(2)),
    "posterior_draws": bnb.posterior_draws,
    "parameter_table": bnb.parameter_table,
    "predict_interval": lambda nb: bnb.predict_interval(nb, X),
    "log_odds_moments": lambda nb: bnb.log_odds_moments(nb, X),
    "bayes_factor": lambda nb: bnb.bayes_factor(nb, nb),
    "prior_predictive": bnb.prior_predictive,
    "prior_sensitivity": lambda nb: bnb.prior_sensitivity(nb, X),
    "parameter_sensitivity": bnb.parameter_sensitivity,
    "contrast": lambda nb: bnb.contrast(nb, 0),
    "check_independence": lambda nb: bnb.check_independence(nb, X, Y),
    "check_drift": lambda nb: bnb.check_drift(nb, X),
    "posterior_predictive_check": lambda nb: bnb.posterior_predictive_check(nb, X, Y),
    "to_arviz": bnb.to_arviz,
    "run_nuts": lambda nb: bnb.run_nuts(nb),
    "fit_stream": lambda nb: bnb.fit_stream(nb, [(X, Y)]),
    "distributed.fit": lambda nb: bnb.distributed.fit(nb, []),
    "fit_em": lambda nb: bnb.fit_em(nb, X, Y),
    "save": lambda nb: bnb.save(nb, "unwritten.bnb"),
    "plots.forest": bnb.plots.forest,
    "plots.structure": bnb.plots.structure,
    "plots.prediction_intervals": lambda nb: bnb.plots.prediction_intervals(nb, X),
}


@pytest.mark.parametrize("name", TAKE_A_CLASSIFIER)
def test_an_estimator_of_another_package(name):
    fitted = Foreign().fit(X, Y)
    for foreign in (fitted, make_pipeline(bnb.CategoricalNB()).fit(X, Y), None, "nb", GIANT):
        call = lambda foreign=foreign: TAKE_A_CLASSIFIER[name](foreign)  # noqa: E731
        assert_refused(call, "classifier of bayesnb", "got", error=TypeError)


def test_draws_that_are_none(nb):
    for draws in (np.ones(3), np.ones((2, 3)), "draws", [1, 2], {"class_prob": "a"}, GIANT):
        assert_refused(lambda draws=draws: bnb.predict_interval(nb, X, draws=draws), "^draws")
        assert_refused(lambda draws=draws: bnb.log_odds_moments(nb, X, draws=draws), "^draws")


def test_a_cost_of_rejection_is_one_number(nb):
    for cost in ([0, 5], "a", np.nan, np.inf, HUGE, 1j, np.ones(2), True):
        call = lambda cost=cost: bnb.decide(nb, X, 1 - np.eye(2), reject_cost=cost)  # noqa: E731
        assert_refused(call, "^reject_cost=", "number")


@pytest.mark.parametrize("names", [["a", "a"], [1, "1"], ["b", "a", "b"]])
def test_two_columns_of_one_name(names):
    cells = pd.DataFrame(np.ones((8, len(names))), columns=names)
    fresh = bnb.GaussianNB()
    again = repr(str(names[-1]))
    assert_refused(lambda: fresh.fit(cells, Y), "Input X", f"columns 0 and {len(names) - 1}", again, "Rename")
    assert not hasattr(fresh, "n_features_in_")


# -- arguments of one function -----------------------------------------------------------------------

WRONG = {
    "factor": lambda nb: nb.decay("half"),
    "class_prior": lambda nb: nb.predict_proba(X, class_prior=["a", "b"]),
    "estimate": lambda nb: nb.predict(X, estimate=np.ones(2)),
    "classes": lambda nb: nb.partial_fit(X, Y, classes="ab"),
    "handle_unknown": lambda nb: bnb.CategoricalNB(handle_unknown=np.ones(2)).fit(X, Y),
    "binarize": lambda nb: bnb.BernoulliNB(binarize=HUGE).fit(X, Y),
    "gaussian": lambda nb: bnb.MixedNB(gaussian=np.ones((1, 1, 1))).fit(X, Y),
    "inclusion": lambda nb: bnb.FeatureAveragedNB(inclusion=HUGE).fit(X, Y),
    "expected_features": lambda nb: bnb.FeatureAveragedNB(expected_features="one").fit(X, Y),
    "given": lambda nb: bnb.TAN().fit(X, Y).query("0", given="1"),
    "against": lambda nb: bnb.log_odds_moments(nb, X, against=np.ones(2)),
    "alpha": lambda nb: bnb.prior_sensitivity(nb, X, alpha=(HUGE, 2 * HUGE)),
    "batches": lambda nb: bnb.fit_stream(bnb.CategoricalNB(), None),
    "checkpoint": lambda nb: bnb.fit_stream(bnb.CategoricalNB(), [], checkpoint=1.5),
    "path": lambda nb: bnb.load(None),
    "weight": lambda nb: bnb.fit_em(nb, X, Y, weight="half"),
    "tol": lambda nb: bnb.NaiveBayesMixture(tol=HUGE).fit(X),
    "priors": lambda nb: bnb.learning_curve(nb, X, Y, [1], 2, priors=[1.0]),
    "baselines": lambda nb: bnb.compare_estimates(nb, X, Y, repeats=2, baselines="sklearn"),
    "test_size": lambda nb: bnb.compare_estimates(nb, X, Y, repeats=2, test_size="third"),
    "X": lambda nb: bnb.learning_curve(nb, None, Y, [1], 2),
    "prior": lambda nb: bnb.decision.bayes_theorem([0.5], {"a": 1}),
    "likelihood": lambda nb: bnb.decision.bayes_theorem({"a": 0.5}, [1]),
    "features": lambda nb: bnb.plots.forest(nb, []),
    "parameter": lambda nb: bnb.plots.shrinkage(nb, parameter=np.ones(2)),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_argument_of_another_kind(nb, name):
    before = state(nb)
    assert_refused(lambda: WRONG[name](nb), rf"\b{name}\b")
    assert state(nb) == before


NUMBERS = np.random.default_rng(0).normal(size=(len(Y), 2))
CHOICES = {
    "predict_interval given": ("row", lambda nb, **o: bnb.predict_interval(nb, X, **o)),
    "predict_interval method": ("moments", lambda nb, **o: bnb.predict_interval(nb, X, **o)),
    "decompose_uncertainty given": ("row", lambda nb, **o: bnb.decompose_uncertainty(nb, X, **o)),
    "log_odds_moments given": ("data", lambda nb, **o: bnb.log_odds_moments(nb, X, **o)),
    "decide given": ("row", lambda nb, **o: bnb.decide(nb, X, 1 - np.eye(2), **o)),
    "decide method": ("draws", lambda nb, **o: bnb.decide(bnb.AODE().fit(X, Y), X, 1 - np.eye(2), **o)),
    "estimate_prevalence given": ("scores", lambda nb, **o: bnb.estimate_prevalence(nb, X, **o)),
    "loo prior": ("fixed", lambda nb, **o: bnb.loo(nb, X, Y, **o)),
    "loo_terms prior": ("derived", lambda nb, **o: bnb.loo_terms(nb, X, Y, **o)),
    "loo_terms estimate": ("mean", lambda nb, **o: bnb.loo_terms(nb, X, Y, **o)),
    "terms estimate": ("mle", lambda nb, **o: bnb.terms(nb, X, **o)),
    "conformal ties": ("random", lambda nb, **o: bnb.conformal(nb, X, Y, **o)),
    "tune_alpha by": ("loo", lambda nb, **o: bnb.tune_alpha(nb, X, Y, **o)),
    "tune_alpha prior": ("fixed", lambda nb, **o: bnb.tune_alpha(nb, X, Y, **o)),
    "tune_alpha bounds": ("number", lambda nb, **o: bnb.tune_alpha(nb, X, Y, **o)),
    "compare_estimates against": ("mle", lambda nb, **o: bnb.compare_estimates(nb, X, Y, X, Y, **o)),
    "MixedNB handle_unknown": ("ignore", lambda nb, **o: bnb.MixedNB(**o).fit(NUMBERS, Y)),
    "MixedNB poisson_prior": ("pooled", lambda nb, **o: bnb.MixedNB(**o).fit(NUMBERS, Y)),
    "WeightedNB weights": ("temperature", lambda nb, **o: bnb.WeightedNB(**o).fit(X, Y)),
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_word_that_is_no_choice_is_refused(nb, name):
    """The error names the argument, the word and the choices, even where the result does not depend on the choice."""
    (choice, call), argument = CHOICES[name], name.split()[1]
    assert_refused(lambda: call(nb, **{argument: "zz"}), f"^{argument}='zz'", choice)


def test_baselines_are_classifiers(nb):
    for baselines in ([Foreign], ["mle"], [None]):
        call = lambda b=baselines: bnb.compare_estimates(nb, X, Y, repeats=2, baselines=b)  # noqa: E731
        assert_refused(call, "^an entry of baselines=", "classifier")


# -- numbers whose sums are not finite ---------------------------------------------------------------

ALPHAS = ("CategoricalNB", "BernoulliNB", "MultinomialNB")
PRIORS = {
    "GaussianNB": (bnb.NormalInverseGamma, {"loc": 0.0, "kappa": 1.0, "concentration": 1.0, "rate": 1.0}),
    "PoissonNB": (bnb.GammaPoisson, {"concentration": 1.0, "rate": 1.0}),
    "NegativeBinomialNB": (bnb.BetaNegativeBinomial, {"concentration": 1.0, "rate": 1.0}),
}


@some(*NAMES)
@pytest.mark.parametrize("huge", [1e76, 1e308])
def test_finite_numbers_whose_sums_overflow(case, huge):
    weights = np.ones(len(case.y))
    weights[5] = huge
    plain = {"numbers": "gaussian"} if case.make is bnb.MixedNB else {}
    fresh = case.make(**plain)
    assert_refused(lambda: fresh.fit(case.X, case.y, sample_weight=weights), "sample_weight", "row 5", r"1e\+75")
    options = {"class_alpha": huge} | ({"alpha": huge} if type(fresh).__name__ in ALPHAS else {})
    for name, value in options.items():
        fresh = case.make(**plain, **{name: value})
        assert_refused(lambda fresh=fresh: fresh.fit(case.X, case.y), rf"\b{name} is", r"at most 1e\+75")
        assert not hasattr(fresh, "classes_")


@pytest.mark.parametrize("owner", PRIORS)
def test_priors_of_numbers_have_the_same_bound(owner):
    (family, values), case = PRIORS[owner], CASES[owner]
    for name in values:
        nb = getattr(bnb, owner)(prior=family(**values | {name: 1e308}))
        assert_refused(lambda nb=nb: nb.fit(case.X, case.y), rf"prior\.{name} is 1e\+308", r"at most 1e\+75")


@pytest.mark.slow(reason="leave-one-out and moments of three families are compiled: 11 s")
def test_the_greatest_hyperparameters_give_finite_answers():
    """One bound for all is low enough for evidence, leave-one-out and moments, which take fourth powers."""
    models = [bnb.CategoricalNB(alpha=1e75, class_alpha=1e75)]
    models += [
        getattr(bnb, owner)(prior=family(**values | {name: 1e75}))
        for owner, (family, values) in PRIORS.items()
        for name in list(values)[-1:]
    ]
    for nb in models:
        nb.fit(X, Y)
        answers = [nb.predict_proba(X), nb.log_evidence_, bnb.loo(nb, X, Y).pointwise, *bnb.log_odds_moments(nb, X)]
        assert all(np.isfinite(answer).all() for answer in answers), nb


def test_counts_that_add_up_beyond_the_bound():
    case = CASES["CategoricalNB"]
    weight = np.where(case.y == "high", 4e73, 1.0)
    made = case.make().fit(case.X, case.y, sample_weight=weight)
    before = state(made)
    assert_refused(lambda: made.partial_fit(case.X, case.y, sample_weight=weight), "class 'high'")
    assert np.isfinite(made.log_evidence_)
    assert state(made) == before
    assert_refused(lambda: bnb.MultinomialNB().fit(REAL * 1e76, Y), "Input X", "too large", "Rescale")


# -- integers that no float64 holds ------------------------------------------------------------------


@pytest.mark.parametrize(
    "cells", [[2**63, 2**63 + 1, -1], [2**53, 2**53 + 1, 0.5], [2**53 + 1, 2**53, np.nan]], ids=str
)
@pytest.mark.parametrize("form", [list, tuple], ids=["list", "tuple"])
def test_integers_in_a_list_are_read_exactly(cells, form):
    """NumPy makes float64 of such a list, in which the first two are one."""
    levels = [cell for cell in cells if cell == cell]
    made = bnb.CategoricalNB().fit(form(form([cell]) for cell in cells), ["a", "b", "c"])
    assert set(made.categories_[0].tolist()) == set(levels)
    assert made.predict([[cells[0]], [cells[1]]]).tolist() == ["a", "b"]
    if len(levels) == 3 and isinstance(cells[2], int):
        named = bnb.CategoricalNB().fit([[0], [1], [2]], cells)
        assert named.classes_.tolist() == sorted(cells)
        assert named.predict([[0], [1], [2]]).tolist() == cells


# -- objects of pandas, and long texts ---------------------------------------------------------------

ODD = {
    "Series": pd.Series([1.0, 2.0]),
    "DataFrame": pd.DataFrame({"a": [1.0, 2.0]}),
    "texts": np.array(["a", "b"]),
    "NA": pd.NA,
    "text": "x" * 100_000,
    "list": ["x" * 100_000],
    "tuple": tuple(range(50_000)),
    "dict": {"x" * 100_000: 1},
}
OPTIONS = {
    "CategoricalNB": ("alpha", "class_alpha", "class_prior", "estimate", "prior", "categories", "handle_unknown"),
    "GaussianNB": ("prior", "class_prior", "estimate"),
    "BinnedNB": ("prior",),
    "TAN": ("root", "score"),
    "NetworkNB": ("parents",),
    "AODE": ("class_alpha", "alpha"),
    "MixedNB": ("categorical", "gaussian_prior"),
    "FeatureAveragedNB": ("estimator", "estimate", "inclusion"),
    "NaiveBayesMixture": ("estimator",),
}


@pytest.mark.parametrize("owner", OPTIONS)
def test_options_are_refused_by_name_and_in_a_few_words(owner):
    messages = {}
    for name in OPTIONS[owner]:
        for kind, value in ODD.items():
            nb = getattr(bnb, owner)(**{name: value})
            try:
                nb.fit(REAL, Y) if owner != "NaiveBayesMixture" else nb.fit(REAL)
            except (ValueError, TypeError) as error:
                messages[name, kind] = str(error)
    assert messages
    assert {place: text for place, text in messages.items() if "ambiguous" in text or len(text) > 1200} == {}


def test_missing_values_may_name_the_missing_value_of_pandas():
    cells = pd.DataFrame({"x": ["u", pd.NA, "v", "?"]}, dtype=object)
    made = bnb.CategoricalNB(missing_values=[pd.NA, "?"]).fit(cells, [0, 0, 1, 1])
    assert made.categories_[0].tolist() == ["u", "v"]


def test_labels_levels_and_names_are_shortened():
    long = "x" * 100_000
    frame = pd.DataFrame({long: [1.0, -2.0], "b": [1.0, 1.0]})
    made = bnb.CategoricalNB(handle_unknown="error").fit([["u"], ["v"]], [long, "b"])
    assert_refused(lambda: bnb.PoissonNB().fit(frame, [0, 1]), "Negative values")
    assert_refused(lambda: bnb.GaussianNB().fit(frame.replace(1.0, np.inf), [0, 1]), "infinity")
    assert_refused(lambda: made.predict([[long]]), "level")
    assert_refused(lambda: made.forget([["u"]], [long + "x"]), "label")
    assert_refused(lambda: made.forget([["u"], ["u"]], [long, long]), "Removing these rows would leave a negative")
    assert_refused(lambda: made.predict(long), "scalar array", "CategoricalNB takes a table")


# -- progress ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("progress", ["no", 1, None, [], pd.Series([1])], ids=["text", "1", "None", "list", "Series"])
def test_a_flag_of_progress_is_true_or_false(nb, progress):
    assert_refused(
        lambda: bnb.fit_stream(bnb.CategoricalNB(), [(X, Y)], progress=progress), "progress=", "True or False"
    )
    assert_refused(lambda: bnb.run_nuts(nb, progress=progress), "progress=", "True or False")


# -- tables of other dimensions ----------------------------------------------------------------------


@pytest.mark.parametrize("make", [bnb.CategoricalNB, bnb.MultinomialNB, bnb.GaussianNB], ids=lambda make: make.__name__)
@pytest.mark.parametrize("form", [sp.coo_array, sp.csr_array], ids=["coo", "csr"])
def test_a_sparse_row_is_no_table(make, form):
    made, row = make().fit(REAL, Y), form(np.array([0, 1]))
    assert_refused(lambda: made.predict(row), "Expected 2D array, got 1D", r"reshape\(1, -1\)")
    assert_refused(lambda: make().fit(row, ["a", "b"]), "Expected 2D array, got 1D")


@pytest.mark.parametrize("progress", [True, False, 0, pd.Series([1])], ids=["True", "False", "0", "Series"])
def test_a_title_of_progress_is_a_text_or_none(nb, progress):
    assert_refused(lambda: bnb.learning_curve(nb, X, Y, [1], 2, progress=progress), "progress=", "title", "None")
    assert_refused(lambda: bnb.compare_estimates(nb, X, Y, repeats=2, progress=progress), "progress=", "title", "None")
