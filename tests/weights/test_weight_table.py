"""Intervals of weights against an independent Hessian, other optimisers, integrals and averages in NumPy."""

from copy import copy
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, minimize
from scipy.special import log_softmax, softmax
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

import bayesnb as bnb
from bayesnb.weights import cross_fitting, optimum
from bayesnb.weights.terms import Terms
from tests import tables
from tests.raises import refused
from tests.tables import CODE, COUNTS, LABEL, LEVELS, NUMBERS, N, of_levels
from tests.weights.test_weighted import CASES, crossed, objective, of_two_classes, solved, splits, terms_of


@pytest.fixture(scope="module")
def weighted():
    """Classifier with one weight for each term."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimum, "GRID", ((0.3,),))
        return bnb.WeightedNB(bnb.CategoricalNB()).fit(LEVELS, LABEL)


# Words of a text come again: the longer it is, the less each of them says.
TEXTS = COUNTS * np.random.default_rng(1).integers(1, 12, (N, 1))


@pytest.fixture(scope="module")
def words():
    return bnb.WeightedNB(bnb.MultinomialNB()).fit(TEXTS, LABEL)


def covariance(value: Any, at: np.ndarray) -> np.ndarray:
    """Inverse Hessian, by differences of the gradient."""
    steps = 1e-5 * np.eye(len(at))
    return np.linalg.inv(np.array([(value(at + h)[1] - value(at - h)[1]) / 2e-5 for h in steps]))


# -- the table -----------------------------------------------------------------------------------


@pytest.mark.parametrize("prob", [0.5, 0.9])
def test_intervals_are_those_of_laplace(weighted, prob):
    scores = crossed(weighted.estimator, LEVELS)
    value, _ = objective(scores, CODE, 0.3)
    at = solved(scores, CODE, 0.3).x
    into = np.column_stack([np.zeros((4, 3)), np.ones(4), 0.3 * np.eye(4)])
    sd = np.sqrt(np.diag(into @ covariance(value, at) @ into.T))
    table = bnb.weight_table(weighted, prob)
    assert table["term"].tolist() == list(weighted.term_names_)
    np.testing.assert_allclose(table["weight"], into @ at, atol=1e-6)
    np.testing.assert_allclose(table["sd"], sd, rtol=1e-5)
    expected = norm.interval(prob, into @ at, sd)
    np.testing.assert_allclose(table[["lower", "upper"]].T, expected, rtol=1e-5, atol=1e-6)
    assert table.attrs == {"temperature": weighted.temperature_, "shrinkage": 0.3, "prob": prob}


def test_intervals_are_averaged_over_how_far_weights_may_be_from_the_temperature():
    """Quantiles of the mixture of normals, each τ by Laplace's evidence, found by a root of its distribution."""
    parts, grid = [], (0.1, 0.3, 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimum, "GRID", [(tau,) for tau in grid])
        nb = bnb.WeightedNB(bnb.CategoricalNB()).fit(LEVELS, LABEL)
    scores = crossed(nb.estimator, LEVELS)
    for tau in grid:
        value, _ = objective(scores, CODE, tau)
        at = solved(scores, CODE, tau).x
        spread, into = covariance(value, at), np.column_stack([np.zeros((4, 3)), np.ones(4), tau * np.eye(4)])
        evidence = -value(at)[0] + np.linalg.slogdet(spread)[1] / 2
        parts.append((np.exp(evidence), into @ at, np.sqrt(np.diag(into @ spread @ into.T))))
    share, mean, sd = (np.array(v) for v in zip(*parts, strict=True))
    share /= share.sum()
    table = bnb.weight_table(nb, 0.8)
    for t in range(4):
        for name, prob in (("lower", 0.1), ("upper", 0.9)):
            root = brentq(lambda q, t=t, prob=prob: share @ norm.cdf((q - mean[:, t]) / sd[:, t]) - prob, -20, 20)
            assert table[name][t] == pytest.approx(root, abs=1e-5)
    average = share @ mean
    np.testing.assert_allclose(table["sd"], np.sqrt(share @ (sd**2 + (mean - average) ** 2)), rtol=1e-5)


def test_the_cost_of_a_term_is_that_of_leaving_it_out(weighted):
    """Laplace's against the optimum at which its weight is held at 0: d = -T/τ."""
    scores, tau, each = crossed(weighted.estimator, LEVELS), 0.3, np.eye(8)
    value, start = objective(scores, CODE, tau)
    best, costs = solved(scores, CODE, tau).fun, bnb.weight_table(weighted)["cost"]
    assert (costs < 4).any()
    for t, cost in enumerate(costs):
        into = np.delete(each, 4 + t, axis=1)
        into[4 + t, 3] = -1 / tau

        def without(theta: np.ndarray, into: np.ndarray = into) -> tuple[float, np.ndarray]:
            found, gradient = value(into @ theta)
            return found, into.T @ gradient

        found = minimize(without, np.delete(start, 4 + t), jac=True, method="BFGS", options={"gtol": 1e-8})
        exact = found.fun - best
        assert cost == pytest.approx(exact, rel=0.1, abs=0.01) if exact < 4 else cost < exact


def test_terms_that_share_a_temperature_are_one_row():
    nb = tables.weighted("temperature")
    value, _ = objective(crossed(nb.estimator, LEVELS), CODE, 0.0, biased=False)

    def of_temperature(t: np.ndarray) -> tuple[float, np.ndarray]:
        found, gradient = value(np.concatenate([np.zeros(3), t, np.zeros(4)]))
        return found, gradient[3:4]

    sd = covariance(of_temperature, np.array([nb.temperature_]))[0, 0] ** 0.5
    table = bnb.weight_table(nb)
    assert table["term"].tolist() == ["temperature"]
    assert table["weight"][0] == nb.temperature_
    assert table["sd"][0] == pytest.approx(sd, rel=1e-5)
    assert table["cost"][0] == pytest.approx((nb.temperature_ / sd) ** 2 / 2, rel=1e-4)
    drawn = drawn_for(nb, alike=True)
    of_draws = bnb.weight_table(nb, 0.8, draws=drawn)
    np.testing.assert_allclose(
        of_draws[["lower", "upper"]].to_numpy()[0], np.quantile(drawn["weight"][:, 0], [0.1, 0.9])
    )


@pytest.mark.slow("compiles kernels of its own")
def test_of_words_it_is_the_weight_of_a_typical_row(words):
    assert words.length_exponent_ > 0.1
    table, length = bnb.weight_table(words), np.exp(np.log1p(TEXTS.sum(axis=1)).mean())
    assert table["weight"][0] == pytest.approx(words.weight_[0] * length**-words.length_exponent_, rel=1e-12)
    assert table["weight"][0] == pytest.approx(words.temperature_, rel=1e-12)
    assert table["cost"][0] == pytest.approx((table["weight"][0] / table["sd"][0]) ** 2 / 2, rel=1e-12)


def test_intervals_of_draws_are_their_quantiles(weighted):
    drawn = drawn_for(weighted)
    table = bnb.weight_table(weighted, 0.8, draws=drawn)
    np.testing.assert_allclose(table[["lower", "upper"]].T, np.quantile(drawn["weight"], [0.1, 0.9], axis=0))
    np.testing.assert_allclose(table["sd"], drawn["weight"].std(axis=0, ddof=1))
    np.testing.assert_array_equal(table["cost"], bnb.weight_table(weighted)["cost"])


# -- predictions averaged over draws --------------------------------------------------------------


def drawn_for(nb: Any, n_draws: int = 7, *, alike: bool = False) -> dict[str, np.ndarray]:
    rng, n_terms = np.random.default_rng(5), len(nb.term_names_)
    weight = rng.normal(0.6, 0.4, (n_draws, 1 if alike else n_terms))
    return {
        "class_bias": rng.normal(0.0, 0.5, (n_draws, len(nb.classes_))),
        "weight": np.broadcast_to(weight, (n_draws, n_terms)),
    }


def averaged(terms: Terms, drawn: dict[str, np.ndarray]) -> np.ndarray:
    """(N, C) mean over the draws of softmax."""
    pairs = zip(drawn["class_bias"], drawn["weight"], strict=True)
    return np.mean([softmax(terms.log_class_prior + b + terms.values @ w, axis=1) for b, w in pairs], axis=0)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("case", [*CASES, "members"])
@pytest.mark.parametrize("alike", [False, True])
def test_class_probabilities_are_averages(case, alike):
    nb, X = {**CASES, "members": (bnb.AODE(gaussian=None), LEVELS)}[case]
    nb = bnb.WeightedNB(nb).fit(X, LABEL)
    drawn = drawn_for(nb, alike=alike)
    expected = averaged(terms_of(nb.estimator, X, X, LABEL), drawn)
    np.testing.assert_allclose(nb.predict_proba(X, draws=drawn), expected, rtol=1e-10)
    np.testing.assert_allclose(nb.predict_log_proba(X, draws=drawn), np.log(expected), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(nb.predict(X, draws=drawn), nb.classes_[expected.argmax(axis=1)])


def test_readings_prevalence_and_blocks_of_rows(weighted, monkeypatch):
    drawn = drawn_for(weighted)
    terms = bnb.terms(weighted.estimator_, LEVELS, estimate="mean")
    terms = Terms(terms.values, np.tile(np.log([0.1, 0.1, 0.8]), (N, 1)), terms.names, terms.classes)
    monkeypatch.setattr("bayesnb.encoding.encoded_rows.CELLS", 2000)
    found = weighted.predict_proba(LEVELS, estimate="mean", class_prior=[0.1, 0.1, 0.8], draws=drawn)
    np.testing.assert_allclose(found, averaged(terms, drawn), rtol=1e-10)


# -- the program -----------------------------------------------------------------------------------


def terms_by_halves(nb: Any, X: Any, weight: Any = None) -> cross_fitting.CrossFit:
    kind = "feature" if nb.weights_.biased else "temperature"
    return cross_fitting.cross_fit(nb.model_.fit_parts(X, LABEL, weight), kind, nb.max_rows, nb.seed)[0]


def density(nb: Any, X: Any, at: dict[str, Any], weight: Any = None) -> float:
    """log p of the program, up to the normalisers of its normal priors."""
    numpyro = pytest.importorskip("numpyro")
    from numpyro.infer.util import log_density

    from bayesnb.sampling.programs import WeightsGiven

    weights = nb.weights_
    found = terms_by_halves(nb, X, weight)
    tau = np.array([weights.shrinkage])
    program, data = WeightsGiven(*found.terms_under(weights.exponent, tau), tau, weights.biased).program()
    with jax.enable_x64(True):
        value = float(log_density(numpyro.handlers.seed(program, 0), (data,), {}, at)[0])
    n = sum(np.size(v) for v in at.values())
    return value + n / 2 * np.log(2 * np.pi)


@pytest.mark.slow("NumPyro compiles for seconds")
def test_its_density_is_the_objective(weighted):
    """Σ_i log softmax(s(x_i))[y_i], with priors b, d ~ N(0, 1), T ~ N(1, 1)."""
    at = np.random.default_rng(3).normal(size=8)
    value, _ = objective(crossed(weighted.estimator, LEVELS), CODE, 0.3)
    found = density(weighted, LEVELS, {"class_bias": at[:3], "temperature": at[3], "deviation": at[4:]})
    assert found == pytest.approx(-value(at)[0], rel=1e-10)


# -- draws by NUTS -----------------------------------------------------------------------------------


@pytest.mark.slow("NumPyro compiles for seconds")
@pytest.mark.parametrize("kind", ["numbers", "words"])
def test_a_temperature_against_an_integral(kind):
    """Few rows, where the posterior is far from normal; word counts are scaled to rows of typical length."""
    from tests.sampling.monte_carlo import errors, quiet

    nb, X = {"numbers": (bnb.GaussianNB(), NUMBERS), "words": (bnb.MultinomialNB(), TEXTS)}[kind]
    X, label, code = X[:24], LABEL[:24], CODE[:24]
    nb = bnb.WeightedNB(nb, "temperature").fit(X, label)
    scores, code = crossed(nb.estimator, X, label), np.tile(code, splits(24))
    length = np.tile(np.log1p(X.sum(axis=1)) if kind == "words" else np.zeros(24), splits(24))
    values = scores.values.sum(axis=2) * np.exp(-nb.length_exponent_ * (length - length.mean()))[:, None]

    def log_p(t: float) -> float:
        own = log_softmax(scores.log_class_prior + t * values, axis=1)[np.arange(len(code)), code]
        return own.sum() / splits(24) - (t - 1) ** 2 / 2

    def integral(f: Any) -> float:
        width = 12 * bnb.weight_table(nb)["sd"][0]
        ends = nb.temperature_ - width, nb.temperature_ + width
        return quad(lambda t: f(t) * np.exp(log_p(t) - log_p(nb.temperature_)), *ends, points=[nb.temperature_])[0]

    total = integral(lambda t: 1.0)
    mean = integral(lambda t: t) / total
    sd = np.sqrt(integral(lambda t: (t - mean) ** 2) / total)
    assert abs(mean - nb.temperature_) > 0.05 * sd  # a normal approximation would be seen
    data = quiet(nb, X=X, y=label, draws=2000, seed=3)
    drawn = data["posterior"]["temperature"].to_numpy()
    assert abs(errors(drawn - mean)) < 4
    assert abs(errors((drawn - mean) ** 2 - sd**2)) < 4
    np.testing.assert_array_equal(data["posterior"]["weight"], np.repeat(drawn[..., None], len(nb.term_names_), axis=2))
    assert not data["posterior"]["class_bias"].any()


# -- bad input -----------------------------------------------------------------------------------------


def test_what_has_no_weights():
    said = "weight_table: CategoricalNB has no weights of terms; pass a fitted WeightedNB"
    refused(said, bnb.weight_table, of_levels())
    with pytest.raises(NotFittedError):
        bnb.weight_table(bnb.WeightedNB())
    counted = bnb.WeightedNB(bnb.CategoricalNB())
    bnb.fit_stream(counted, [(LEVELS, LABEL)], progress=False)
    refused("all weights of this WeightedNB are 1, because none were fitted", bnb.weight_table, counted)
    refused("all weights of this WeightedNB are 1, because none were fitted", bnb.run_nuts, counted, X=LEVELS, y=LABEL)


def test_weights_of_files_of_older_versions_have_no_deviations(weighted):
    older = copy(weighted)
    older.weights_ = replace(weighted.weights_, path=None)
    refused("are from a file of an older version", bnb.weight_table, older)


def test_bad_arguments_of_the_table(weighted):
    refused("prob=90 must be a number between 0 and 1", bnb.weight_table, weighted, 90)
    parameters = {"class_prob": np.full((5, 3), 1 / 3), "theta": np.full((5, 3, 12), 1 / 3)}
    refused("draws must be draws of the weights, as run_nuts", bnb.weight_table, weighted, draws=parameters)
    of_another = {"class_bias": np.zeros((4, 3)), "weight": np.zeros((4, 9))}
    said = r"draws\['weight'\] has shape \(4, 9\); it must have shape \(draws, 4\)"
    refused(said, bnb.weight_table, weighted, draws=of_another)
    refused(r"draws\['weight'\] has shape \(4, 9\)", weighted.predict_proba, LEVELS, draws=of_another)


def test_bad_arguments_of_nuts(weighted):
    rows = {"X": LEVELS, "y": LABEL}
    refused(r"Pass the rows that the weights were fitted to, run_nuts\(nb, X=X, y=y\)", bnb.run_nuts, weighted)
    refused("Pass the rows that the weights were fitted to", bnb.run_nuts, weighted, X=LEVELS)
    message = "hyperprior= applies to parameters, but run_nuts draws the weights of a WeightedNB"
    refused(message, bnb.run_nuts, weighted, "symmetric", **rows)
    message = "features= applies to parameters, but run_nuts draws the weights of a WeightedNB"
    refused(message, bnb.run_nuts, weighted, features=[0], **rows)
    one = LABEL == "ash"
    message = "run_nuts: Weights need 10 or more rows outside the largest class, but there are only 0"
    refused(message, bnb.run_nuts, weighted, X=LEVELS[one], y=LABEL[one])
    refused("draws=0 must be a positive integer", bnb.run_nuts, weighted, draws=0, **rows)
    weights = np.ones(len(LABEL))
    refused("run_nuts: sample_weight= cannot", bnb.run_nuts, weighted.estimator_, **rows, sample_weight=weights)
    here = LABEL != "elm"
    later = copy(of_two_classes()).partial_fit(LEVELS[:4], ["elm"] * 4, classes=["elm"])
    said = r"run_nuts: the classifier has the classes \['ash', 'elm', .*Fit the weights again by nb.weigh\(X, y\)"
    refused(said, bnb.run_nuts, later, X=LEVELS[here], y=LABEL[here])
