"""Weights of terms against another optimiser, and the properties of weighted classifiers."""

import warnings
from copy import copy
from functools import cache, partial
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax
from scipy.stats import norm
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB as Foreign

import bayesnb as bnb
from bayesnb.weights import cross_fitting, optimum
from bayesnb.weights.halves import random_halves
from bayesnb.weights.terms import Terms
from tests.raises import refused
from tests.strategies import variants
from tests.tables import (
    ASKED,
    CLASSES,
    CODE,
    COUNTS,
    LABEL,
    LEVELS,
    NUMBERS,
    N,
    margins_and_dependences,
    of_numbers,
    weighted,
    weighted_numbers,
)

CASES = {
    "categorical": (bnb.CategoricalNB(), LEVELS),
    "gaussian": (bnb.GaussianNB(), NUMBERS),
    "binary": (bnb.BernoulliNB(), np.where(np.median(NUMBERS, axis=0) < NUMBERS, 1, 0)),
    "tree": (bnb.TAN(gaussian=None), LEVELS),
}


# -- the optimum ---------------------------------------------------------------------------------


def splits(n_rows: int) -> int:
    """Three, and up to six of few rows."""
    return max(3, min(6, 3000 // n_rows))


SPLITS = splits(N)


def crossed(estimator, X, y=LABEL, seed=0, weight=None, unit=None) -> Terms:
    """Terms of all rows in each split, one after the other, by fits to the half of the split without the row."""
    label = np.searchsorted(CLASSES, y)
    values, log_class = [], []
    unit = np.arange(len(label)) if unit is None else unit
    for half in random_halves(label, splits(len(set(unit))), seed, unit):
        of_row: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for fit, rest in ((half, ~half), (~half, half)):
            half_weight = None if weight is None else weight[fit]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of levels that only the other half has
                found = terms_of(estimator, X[rest], X[fit], y[fit], half_weight)
            of_row |= dict(
                zip(np.flatnonzero(rest), zip(found.values, found.log_class_prior, strict=True), strict=True)
            )
        values += [of_row[i][0] for i in range(len(X))]
        log_class += [of_row[i][1] for i in range(len(X))]
    return Terms(np.array(values), np.array(log_class), found.names, found.classes)


def terms_of(estimator, rows, *fitted_to) -> Terms:
    """Terms of rows by a fit; of a structure margins and dependences."""
    nb = clone(estimator).fit(*fitted_to)
    if not isinstance(nb, bnb.TAN):
        return bnb.terms(nb, rows)
    children = [j for j, parent in nb.parents_.items() if parent is not None]
    names = (*map(str, range(4)), *(f"{j} | parents" for j in children))
    weighted = SimpleNamespace(term_names_=names, estimator_=nb, classes_=nb.classes_)
    return margins_and_dependences(weighted, rows, bnb.CategoricalNB().fit(*fitted_to))


def objective(scores: Terms, label: np.ndarray, tau: float, biased: bool = True, weight=1.0, share=None):
    """Minus the penalised log score of (b, T, d), and its gradient, written out once more; each row in each split.

    `share` (S·N,) are weights of the rows in each split, in place of S-th parts of `weight`.
    """
    _, n_classes, n_terms = scores.values.shape
    n_splits = len(scores.values) // len(label)
    own = np.tile(np.eye(n_classes)[label], (n_splits, 1))
    share = np.tile(np.broadcast_to(weight, len(label)), n_splits) / n_splits if share is None else share
    share = share[:, None]

    def value(theta: np.ndarray) -> tuple[float, np.ndarray]:
        b, temperature, d = theta[:n_classes] * biased, theta[n_classes], theta[n_classes + 1 :]
        log_p = log_softmax(scores.log_class_prior + b + scores.values @ (temperature + tau * d), axis=1)
        rest = share * (own - np.exp(log_p))
        of_weights = np.einsum("nc,nct->t", rest, scores.values)
        gradient = [rest.sum(axis=0) * biased - b, [of_weights.sum() - (temperature - 1)], tau * of_weights - d]
        penalty = (b @ b + d @ d + (temperature - 1) ** 2) / 2
        return penalty - (share * own * log_p).sum(), -np.concatenate(gradient)

    start = np.zeros(n_classes + 1 + n_terms)
    start[n_classes] = 1.0
    return value, start


def solved(scores, label, tau, biased=True):
    value, start = objective(scores, label, tau, biased)
    return minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 2000})


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("case", ["categorical", "gaussian"])
@pytest.mark.parametrize("tau", [0.0, 0.1, 1.0])
def test_weights_are_those_of_another_solver(case, tau, monkeypatch):
    nb, X = CASES[case]
    monkeypatch.setattr(optimum, "GRID", ((tau,),))
    found = bnb.WeightedNB(nb, "feature").fit(X, LABEL)
    scores = crossed(nb, X)
    at = solved(scores, CODE, tau).x
    np.testing.assert_allclose(found.class_bias_, at[:3], atol=1e-6)
    np.testing.assert_allclose(found.temperature_, at[3], atol=1e-6)
    np.testing.assert_allclose(found.weight_, at[3] + tau * at[4:], atol=1e-6)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("tau", [(0.0, 0.0), (0.3, 0.0), (1.0, 0.3)])
def test_margins_and_dependences_have_temperatures_of_their_own(tau, monkeypatch):
    """w = T + τ d with T ~ N(1, 1) of margins and N(½, 1) of dependences, by another solver."""
    monkeypatch.setattr(optimum, "GRID_OF_TWO", (tau,))
    nb, X = CASES["tree"]
    found = bnb.WeightedNB(nb, "feature").fit(X, LABEL)
    scores, own = crossed(nb, X), np.tile(np.eye(3)[CODE], (SPLITS, 1))
    group = np.array([" | " in name for name in scores.names], int)
    assert scores.names == found.term_names_
    spread = np.array(tau)[group]

    def loss(theta):
        b, temperature, d = np.split(theta, [3, 5])
        log_p = log_softmax(scores.log_class_prior + b + scores.values @ (temperature[group] + spread * d), axis=1)
        rest = (own - np.exp(log_p)) / SPLITS
        slope = np.einsum("nc,nct->t", rest, scores.values)
        away = temperature - [1.0, 0.5]
        gradient = [rest.sum(axis=0) - b, np.bincount(group, slope) - away, spread * slope - d]
        return (b @ b + d @ d + away @ away) / 2 - (own * log_p).sum() / SPLITS, -np.concatenate(gradient)

    start = np.zeros(5 + len(group))
    at = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 2000}).x
    np.testing.assert_allclose(found.class_bias_, at[:3], atol=1e-6)
    np.testing.assert_allclose([found.temperature_, found.dependence_temperature_], at[3:5], atol=1e-6)
    np.testing.assert_allclose(found.weight_, at[3:5][group] + spread * at[5:], atol=1e-6)
    assert (found.shrinkage_, found.dependence_shrinkage_) == tau


def test_shrinkage_is_the_smallest_without_strong_evidence_against_it():
    nb = weighted()
    scores, evidence = crossed(nb.estimator, LEVELS), {}
    for (tau,) in optimum.GRID:
        value, _ = objective(scores, CODE, tau)
        at = solved(scores, CODE, tau).x
        # Laplace's approximation, the Hessian by differences of the gradient.
        steps = 1e-5 * np.eye(len(at))
        hessian = np.array([(value(at + h)[1] - value(at - h)[1]) / 2e-5 for h in steps])
        evidence[tau] = -value(at)[0] - np.linalg.slogdet(hessian)[1] / 2
    best = max(evidence.values())
    assert nb.shrinkage_ == min(tau for tau, value in evidence.items() if value > best - np.log(10))


def test_a_temperature_is_temperature_scaling():
    """One number, on the joint scores by fits without the row."""
    nb = weighted("temperature")
    scores, label = crossed(nb.estimator, LEVELS), np.tile(CODE, SPLITS)

    def loss(t: float) -> float:
        log_p = log_softmax(scores.log_class_prior + t * scores.values.sum(axis=2), axis=1)
        return (t - 1) ** 2 / 2 - log_p[np.arange(SPLITS * N), label].sum() / SPLITS

    expected = minimize_scalar(loss, bounds=(0, 5), method="bounded", options={"xatol": 1e-10}).x
    assert nb.temperature_ == pytest.approx(expected, abs=1e-6)
    np.testing.assert_array_equal(nb.weight_, np.full(4, nb.temperature_))
    np.testing.assert_array_equal(nb.class_bias_, np.zeros(3))


@pytest.mark.slow("compiles kernels of its own")
def test_long_rows_count_for_less():
    """Reference: T and β of T (t + 1)^-β by the Nelder-Mead method."""
    nb = bnb.WeightedNB(bnb.MultinomialNB()).fit(COUNTS, LABEL)
    scores = crossed(bnb.MultinomialNB(), COUNTS)
    length, label = np.tile(COUNTS.sum(axis=1), SPLITS), np.tile(CODE, SPLITS)
    reference = np.exp(np.log1p(length).mean())

    def loss(theta: np.ndarray) -> float:
        t, beta = theta
        power = t * ((length + 1) / reference) ** -beta
        log_p = log_softmax(scores.log_class_prior + power[:, None] * scores.values[:, :, 0], axis=1)
        return (t - 1) ** 2 / 2 + 2 * beta**2 - log_p[np.arange(SPLITS * N), label].sum() / SPLITS

    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}
    found = minimize(loss, [0.5, 0.5], method="Nelder-Mead", options=options, bounds=[(0, 9), (0, 2)]).x
    assert nb.temperature_ == pytest.approx(found[0], abs=1e-5)
    assert nb.length_exponent_ == pytest.approx(found[1], abs=1e-5)
    row = COUNTS[[4]]
    power = nb.weight_[0] * (row.sum() + 1) ** -nb.length_exponent_
    joint = nb.class_log_prior_ + power * bnb.terms(nb.estimator_, row).values[0, :, 0]
    np.testing.assert_allclose(nb.predict_log_proba(row)[0], log_softmax(joint), rtol=1e-12)


@pytest.mark.parametrize(
    ("case", "size"),
    [
        ("categorical", 1),
        ("gaussian", 1),
        ("binary", 1),
        pytest.param("gaussian", 2, marks=pytest.mark.slow("another solver fits weights some sixty times")),
    ],
)
def test_the_expected_loss_is_that_of_weights_that_do_not_know_the_row(case, size, monkeypatch):
    """Reference: weights of another solver, fitted to rows and halves without the group of the row; τ = 1 fits most.

    Groups, of `size` rows of a class, that the same halves score are held out by quarters, those of a class one after
    the other; the class is rarer by the group, as stratified halves know its share.
    """
    monkeypatch.setattr(optimum, "GRID", ((1.0,),))
    estimator, X = CASES[case]
    by_class = np.argsort(CODE, kind="stable")
    group = np.empty(N, int)
    group[by_class] = np.arange(N) // size
    unit = pd.factorize(group)[0]
    nb, losses = bnb.WeightedNB(estimator, "feature").fit(X, LABEL, groups=group), np.zeros(N)
    scores = crossed(estimator, X, unit=unit)
    full, half = solved(scores, CODE, 1.0).x, random_halves(CODE, SPLITS, 0, unit)
    class_of = CODE[np.unique(unit, return_index=True)[1]]
    for splits_of in np.arange(SPLITS).reshape(-1, 3):
        for sides in product([False, True], repeat=3):
            first = [int(np.argmax(unit == u)) for u in np.argsort(class_of, kind="stable")]
            of_sides = [unit[i] for i in first if tuple(half[splits_of, i]) == sides]
            for held_out in (np.flatnonzero(np.isin(unit, of_sides[quarter::4])) for quarter in range(4)):
                share = np.zeros((SPLITS, N))
                share[splits_of] = half[splits_of] == np.array(sides)[:, None]
                share[:, held_out] = 0.0
                value, _ = objective(scores, CODE, 1.0, share=share.ravel() * (N / share.sum()))
                b, w = np.split(minimize(value, full, jac=True, method="BFGS", options={"gtol": 1e-6}).x, [3])
                here = splits_of[:, None] * N + np.array(held_out, int)
                own = np.eye(3)[CODE[held_out]]
                joint = scores.log_class_prior[here] + b + scores.values[here] @ (w[0] + w[1:])
                joint = joint + own * np.log1p(-size / (np.bincount(CODE) + 1))
                losses[held_out] -= (own * log_softmax(joint, axis=2)).sum(axis=2).mean(axis=0) * 3 / SPLITS
    assert nb.expected_log_loss_ == pytest.approx(np.mean(losses), abs=1e-6)


def test_of_more_rows_a_sample_of_each_class():
    """Weights of the sample, by leave-one-out of all rows."""
    nb, again, other = (
        bnb.WeightedNB(bnb.CategoricalNB(), "temperature", max_rows=30, seed=seed).fit(LEVELS, LABEL)
        for seed in (0, 0, 1)
    )
    assert nb.weights_.n_rows == 30
    assert nb.temperature_ == again.temperature_ != other.temperature_
    np.testing.assert_array_equal(other.class_count_, [20, 20, 20])


# -- what it says --------------------------------------------------------------------------------


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize(("nb", "X"), CASES.values(), ids=CASES)
def test_scores_are_weighted_terms(nb, X):
    nb, rows = bnb.WeightedNB(nb).fit(X, LABEL), X[ASKED]
    terms = terms_of(nb.estimator, rows, X, LABEL)
    joint = terms.log_class_prior + nb.class_bias_ + terms.values @ nb.weight_
    np.testing.assert_allclose(nb.predict_joint_log_proba(rows), joint, rtol=1e-10)
    np.testing.assert_allclose(bnb.terms(nb, rows).joint(), joint, rtol=1e-10)
    np.testing.assert_array_equal(nb.predict(rows), nb.classes_[joint.argmax(axis=1)])


def test_leave_one_out_of_weights_that_these_labels_taught_is_refused():
    with pytest.raises(NotImplementedError, match=r"would be too low\. Use nb\.expected_log_loss_"):
        bnb.loo(weighted_numbers(), NUMBERS, LABEL)


def test_rows_without_counts_have_no_length():
    weights = weighted().weights_
    assert not weights.of_draws.any()
    assert weights.log_length == weights.exponent == 0.0


def test_the_loss_without_weights_is_that_of_the_halves():
    nb, scores = weighted(), crossed(weighted().estimator, LEVELS)
    log_p = log_softmax(scores.joint(), axis=1)[np.arange(SPLITS * N), np.tile(CODE, SPLITS)]
    assert nb.weights_.plain_log_loss == pytest.approx(-log_p.mean(), rel=1e-12)


def test_the_former_name_of_the_expected_loss_is_deprecated():
    with pytest.warns(FutureWarning, match="expected_log_loss_"):
        assert weighted().loo_log_loss_ == weighted().expected_log_loss_


def test_one_witness_heard_many_times_is_one_witness():
    rng, n = np.random.default_rng(0), 3000
    code = np.arange(n) % 3
    x = np.where(rng.random(n) < 0.8, code, (code + 1) % 3)[:, None].astype(float)
    often, label = np.repeat(x, 4, axis=1), np.array(CLASSES)[code]
    heard, plain = bnb.WeightedNB(bnb.CategoricalNB()).fit(often, label), bnb.CategoricalNB().fit(x, label)
    assert heard.temperature_ == pytest.approx(1 / 4, rel=0.1)
    for nb in (heard, bnb.WeightedNB().fit(often, label)):
        np.testing.assert_allclose(nb.predict_proba(often[ASKED]), plain.predict_proba(x[ASKED]), atol=0.02)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("method", ["moments", "draws"])
def test_parameters_move_the_weighted_scores(method):
    """Moments of weighted log odds by draws of the parameters, and intervals by draws of the weights, too."""
    nb, rows = weighted_numbers(), NUMBERS[:3]
    drawn = bnb.posterior_draws(nb, 20_000)
    cells = norm.logpdf(rows[:, None], drawn["mu"][:, None], np.sqrt(drawn["sigma2"])[:, None])
    log_class, weights = np.log(drawn["class_prob"])[:, None], nb.weights_.draw(20_000, seed=1)
    scores = cells @ nb.weight_ + log_class + nb.class_bias_
    odds = scores - scores[..., :1]
    mean, sd = bnb.log_odds_moments(nb, rows)
    np.testing.assert_allclose(mean, odds.mean(axis=0), atol=5 * odds.std(axis=0).max() / np.sqrt(20_000))
    np.testing.assert_allclose(sd, odds.std(axis=0), rtol=0.03)
    lower, upper = bnb.predict_interval(nb, rows, given="data", method=method, draws=20_000)
    scores = np.einsum("snct,st->snc", cells, weights.weight) + log_class + weights.class_bias[:, None]
    expected = np.quantile(np.exp(log_softmax(scores, axis=2)), [0.05, 0.95], axis=0)
    np.testing.assert_allclose([lower, upper], expected, atol=0.03)


def test_intervals_and_decisions_are_given_the_data_by_default():
    nb, rows = weighted(), LEVELS[ASKED]
    decide = partial(bnb.decide, loss=bnb.decision.zero_one(CLASSES))
    analyses = [partial(of, draws=50) for of in (bnb.predict_interval, bnb.decompose_uncertainty, decide)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, split, decided = (analysis(nb, rows) for analysis in analyses)
    same, same_split, same_decided = (analysis(nb, rows, given="data") for analysis in analyses)
    np.testing.assert_array_equal(found, same)
    pd.testing.assert_frame_equal(split, same_split)
    np.testing.assert_array_equal(decided.regret, same_decided.regret)
    assert np.isfinite(found).all()
    assert (split["epistemic"] > 0).all()
    assert np.isfinite(decided.p_optimal).all()
    assert (decided.regret >= 0).all()
    for analysis in analyses:
        said = r"given='row' is not available for a WeightedNB.* Pass given='data'"
        refused(said, analysis, nb, rows, given="row", error=NotImplementedError)
    interval, unweighted, rows = analyses[0], of_numbers(), NUMBERS[ASKED]
    np.testing.assert_array_equal(interval(unweighted, rows), interval(unweighted, rows, given="row"))


@pytest.mark.slow("a second view of what quick tests see")
def test_what_needs_a_joint_distribution_is_refused():
    nb = weighted_numbers()
    with pytest.raises(NotImplementedError, match=r"log_evidence_: WeightedNB has no evidence, because weighted terms"):
        _ = nb.log_evidence_
    refused(r"bayes_factor: WeightedNB has no evidence", bnb.bayes_factor, nb, nb.estimator_, error=NotImplementedError)
    decisions = bnb.decide(nb, NUMBERS[:2], bnb.decision.zero_one(nb.classes_))
    np.testing.assert_array_equal(decisions.action, nb.predict(NUMBERS[:2]))


# -- as classifiers do it ------------------------------------------------------------------------


def test_weights_are_kept_while_it_counts():
    nb, rows, some = weighted(), LEVELS[ASKED], np.arange(N) < 30
    later = copy(nb).partial_fit(LEVELS[some], LABEL[some])
    np.testing.assert_array_equal(later.weight_, nb.weight_)
    assert later.class_count_.sum() == N + 30
    expected = bnb.CategoricalNB().fit(LEVELS, LABEL, 1.0 + some)
    np.testing.assert_array_equal(bnb.terms(later.estimator_, rows).values, bnb.terms(expected, rows).values)
    back = later.forget(LEVELS[some], LABEL[some])
    np.testing.assert_array_equal(back.predict_proba(rows), nb.predict_proba(rows))
    again = back.weigh(LEVELS, LABEL)
    np.testing.assert_allclose(again.weight_, nb.weight_, rtol=1e-12)


def test_a_class_that_comes_later_has_no_bias():
    nb, rows = copy(of_two_classes()), LEVELS[ASKED]
    bias = nb.class_bias_
    nb.partial_fit(LEVELS[:4], ["elm"] * 4, classes=["elm"])
    assert nb.classes_.tolist() == CLASSES
    np.testing.assert_array_equal(nb.class_bias_, [bias[0], 0.0, bias[1]])
    terms = bnb.terms(nb.estimator_, rows)
    joint = terms.log_class_prior + nb.class_bias_ + terms.values @ nb.weight_
    np.testing.assert_allclose(nb.predict_log_proba(rows), log_softmax(joint, axis=1), rtol=1e-10)


def test_streams_count_and_weigh_afterwards():
    nb = bnb.WeightedNB(bnb.CategoricalNB())
    batches = ((LEVELS[i : i + 20], LABEL[i : i + 20]) for i in range(0, N, 20))
    bnb.fit_stream(nb, batches, progress=False)
    np.testing.assert_array_equal(nb.weight_, np.ones(4))
    np.testing.assert_allclose(nb.predict_proba(LEVELS[ASKED]), nb.estimator_.predict_proba(LEVELS[ASKED]), rtol=1e-12)
    np.testing.assert_allclose(nb.weigh(LEVELS, LABEL).weight_, weighted().weight_, rtol=1e-6)


def test_weights_of_other_rows_are_kept():
    one = bnb.WeightedNB(bnb.CategoricalNB()).fit(LEVELS[:30], LABEL[:30])
    two = bnb.WeightedNB(bnb.CategoricalNB(), one.weights_).fit(LEVELS[30:], LABEL[30:])
    np.testing.assert_array_equal(two.weight_, one.weight_)
    assert bnb.loo(two, LEVELS[30:], LABEL[30:]).notes == ()
    assert clone(two).weights is not None
    said = r"weights were fitted for 4 terms, .*, but the terms of the classifier differ: it has 1 term"
    refused(said, clone(two).fit, LEVELS[:, :1], LABEL)
    named = pd.DataFrame(LEVELS, columns=list("0124"))
    said = r"weights were fitted for 4 terms, .*, but the terms of the classifier differ: .* different term is '4'"
    refused(said, clone(two).fit, named, LABEL)
    said = r"weights were fitted for the classes \['ash', .*, none of which the classifier has; its .* \[0, 1, 2\]"
    refused(said, clone(two).fit, LEVELS, CODE)


@pytest.mark.slow("compiles kernels of its own")
def test_shifted_prevalence_and_readings():
    nb = weighted_numbers()
    shifted = nb.predict_log_proba(NUMBERS, class_prior=[0.1, 0.1, 0.8])
    expected = nb.predict_joint_log_proba(NUMBERS) - nb.class_log_prior_ + np.log([0.1, 0.1, 0.8])
    np.testing.assert_allclose(shifted, log_softmax(expected, axis=1), rtol=1e-10)
    mean = bnb.terms(nb.estimator_, NUMBERS, estimate="mean")
    joint = mean.log_class_prior + nb.class_bias_ + mean.values @ nb.weight_
    np.testing.assert_allclose(nb.predict_joint_log_proba(NUMBERS, estimate="mean"), joint, rtol=1e-10)


def test_or_a_weight_a_member():
    """A product of the members to powers; by their own scores, and their own leave-one-out."""
    nb = bnb.WeightedNB(bnb.AODE(gaussian=None)).fit(LEVELS, LABEL)
    assert nb.term_names_ == ("0", "1", "2", "3")
    members, log_class = nb.estimator_.members_, nb.class_log_prior_
    scores = np.stack([m.predict_joint_log_proba(LEVELS) for m in members], axis=2) - log_class[:, None]
    joint = log_class + nb.class_bias_ + scores @ nb.weight_
    np.testing.assert_allclose(nb.predict_joint_log_proba(LEVELS), joint, rtol=1e-10)
    np.testing.assert_allclose(bnb.terms(nb, LEVELS).joint(), joint, rtol=1e-10)
    as_one = bnb.WeightedNB(bnb.AODE(gaussian=None), "temperature").fit(LEVELS, LABEL)
    assert nb.weights_.plain_log_loss == pytest.approx(as_one.weights_.plain_log_loss, rel=1e-12)


@pytest.mark.slow("compiles kernels of its own")
def test_members_that_do_not_vote_are_as_the_others():
    """A member whose parent is missing gets the average score of the other members."""
    X = LEVELS.copy()
    X[::4, 1] = np.nan
    nb = bnb.WeightedNB(bnb.AODE(gaussian=None)).fit(X, LABEL)
    values = bnb.terms(nb.estimator_, X[:1]).values[0]
    np.testing.assert_allclose(values[:, 1], values[:, [0, 2, 3]].mean(axis=1))
    nothing = bnb.terms(nb.estimator_, np.full((1, 4), np.nan)).values[0]
    np.testing.assert_allclose(nothing - nothing[0], 0.0, atol=1e-12)


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_small", "few"), [(0, "0"), (1, "0"), (9, "9")])
def test_too_few_rows_leave_the_plain_model(n_small, few):
    at = np.append(np.flatnonzero(CODE == 0), np.flatnonzero(CODE == 1)[:n_small])
    base = bnb.CategoricalNB(categories=[[0, 1, 2]] * 4)
    nb = bnb.WeightedNB(base).partial_fit(LEVELS[at], LABEL[at], CLASSES)
    with pytest.warns(
        UserWarning, match=rf"CategoricalNB is not weighted.* outside the largest class, but there are only {few}"
    ):
        nb.weigh(LEVELS[at], LABEL[at])
    plain = clone(base).partial_fit(LEVELS[at], LABEL[at], CLASSES)
    np.testing.assert_array_equal(nb.predict_proba(LEVELS[ASKED]), plain.predict_proba(LEVELS[ASKED]))
    np.testing.assert_array_equal(nb.weight_, np.ones(4))
    assert np.isnan(nb.expected_log_loss_)


def test_rows_of_weight_zero_are_as_if_they_were_not_there():
    weight = 1.0 * (np.arange(N) % 4 > 0)
    with_them = bnb.WeightedNB(bnb.CategoricalNB()).fit(LEVELS, LABEL, weight)
    without = bnb.WeightedNB(bnb.CategoricalNB()).fit(LEVELS[weight > 0], LABEL[weight > 0])
    np.testing.assert_allclose(with_them.weight_, without.weight_, rtol=1e-12)
    assert with_them.expected_log_loss_ == pytest.approx(without.expected_log_loss_, rel=1e-12)


def test_a_class_of_one_row_does_not_enter():
    y = np.where(CODE == 2, "ash", LABEL)
    y[5] = "oak"
    with pytest.warns(UserWarning, match=r"the classes \['oak'\] have one row each"):
        nb = bnb.WeightedNB(bnb.CategoricalNB()).fit(LEVELS, y)
    assert nb.weights_.n_rows == N - 1


@cache
def of_two_classes() -> bnb.WeightedNB:
    here = LABEL != "elm"
    return bnb.WeightedNB(bnb.CategoricalNB(class_alpha=0.0)).fit(LEVELS[here], LABEL[here])


def test_a_class_without_rows_here_has_no_bias():
    """Weights come from rows of the other two classes, as if the third class did not exist."""
    here, of_two = LABEL != "elm", of_two_classes()
    nb = bnb.WeightedNB(bnb.CategoricalNB(class_alpha=0.0)).partial_fit(LEVELS, LABEL, CLASSES)
    nb.weigh(LEVELS[here], LABEL[here])
    np.testing.assert_allclose(nb.weight_, of_two.weight_, rtol=1e-9)
    np.testing.assert_allclose(nb.class_bias_, np.insert(of_two.class_bias_, 1, 0.0), rtol=1e-9)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("weights", ["feature", "temperature"])
@pytest.mark.parametrize("known", [[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]])
def test_known_class_probabilities_are_not_undone(known, weights):
    """The class frequencies of the sample do not bias known class probabilities."""
    nb = bnb.WeightedNB(bnb.CategoricalNB(class_prior=known), weights).fit(LEVELS, LABEL)
    learned = weighted(weights)
    np.testing.assert_array_equal(nb.weight_, learned.weight_)
    np.testing.assert_array_equal(nb.class_bias_, learned.class_bias_)
    expected = learned.predict_proba(LEVELS[ASKED], class_prior=known)
    np.testing.assert_allclose(nb.predict_proba(LEVELS[ASKED]), expected, rtol=1e-12)


@pytest.mark.filterwarnings("error", "ignore:X has suspicious columns")
def test_two_rows_of_high_weight_have_losses(monkeypatch):
    """If no row is left to fit weights to, the weights are those of the prior."""
    monkeypatch.setattr(cross_fitting, "FEWEST_EVENTS", 1)
    nb = bnb.WeightedNB(bnb.CategoricalNB(), "temperature", max_rows=2).fit(LEVELS, LABEL, np.full(N, 20.0))
    assert nb.weights_.n_rows == 2
    assert np.isfinite(nb.expected_log_loss_)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("seed", range(3))
def test_where_labels_are_told_without_error_predictions_stay_as_they_are(seed):
    """The scores do not bound T and β there: their priors do, and plain naive Bayes is not made worse."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(500, 0.5), 2)

    def texts(n: int) -> tuple[np.ndarray, np.ndarray]:
        y = rng.integers(0, 2, n)
        return np.array([rng.multinomial(rng.integers(1, 200), theta[c]) for c in y]), y

    (X, y), (held_out, truth) = texts(300), texts(2000)
    nb = bnb.WeightedNB(bnb.MultinomialNB()).fit(X, y)
    plain, weighted = (
        -found.predict_log_proba(held_out)[np.arange(2000), truth].mean() for found in (nb.estimator_, nb)
    )
    assert weighted < plain + 0.01


def test_infinite_scores_are_refused():
    X, y = LEVELS.copy(), np.where(np.arange(N) == 0, "ash", LABEL)
    X[y == "elm", 0], X[0, 0] = 1, 0
    said = r"weights: for row \d+ the term of '0' in class '.*' is -inf, in the fit to the other half of the rows"
    for estimator in (bnb.CategoricalNB(alpha=0), bnb.CategoricalNB(estimate="mle")):
        refused(said, bnb.WeightedNB(estimator).fit, X[:, :1], y)


@variants(
    ("options", "message"),
    [
        ({"weights": "feet"}, "weights='feet' must be one of"),
        ({"max_rows": 0}, "max_rows=0"),
        ({"seed": -1}, "seed=-1"),
        (
            {"estimator": bnb.NaiveBayesMixture()},
            r"estimator=NaiveBayesMixture\(\) must be a classifier of bayesnb without weights, such as MixedNB",
        ),
        ({"estimator": Foreign()}, r"estimator=GaussianNB\(\) must be .* it is a sklearn.naive_bayes.GaussianNB"),
    ],
)
def test_bad_arguments(options, message):
    nb = bnb.WeightedNB(**options)
    refused(message, nb.fit, LEVELS, LABEL)
    assert not hasattr(nb, "classes_")


def test_weigh_wants_labels_that_were_counted():
    refused("The label 'fir' of row 7 is not among", copy(weighted()).weigh, LEVELS, np.where(CODE == 0, "fir", LABEL))


def test_what_has_no_meaning_for_weights_is_refused():
    nb, not_offered = weighted(), {"error": NotImplementedError}
    refused("fit_em: Weights are fitted to labels", bnb.fit_em, nb, LEVELS, LABEL, LEVELS, **not_offered)
    refused("tune_alpha: WeightedNB takes its prior from its", bnb.tune_alpha, nb, LEVELS, LABEL, **not_offered)
    refused("a WeightedNB defines no likelihood of rows", bnb.to_arviz, nb, LEVELS, LABEL, **not_offered)
    refused("must be a classifier .* without weights", bnb.FeatureAveragedNB(bnb.WeightedNB()).fit, LEVELS, LABEL)


@pytest.mark.parametrize("kind", [bnb.WeightedNB, bnb.FeatureAveragedNB, bnb.NaiveBayesMixture])
def test_no_classifier_wraps_another_of_its_class(kind):
    """Nested wrappers would make `repr` take 2^n steps."""
    message = f"a {kind.__name__} cannot wrap another {kind.__name__}"
    for inner in (kind(), bnb.WeightedNB(kind()) if kind is not bnb.WeightedNB else bnb.FeatureAveragedNB(kind())):
        refused(message, kind, estimator=inner)
    nest = kind()
    for _ in range(100):
        outer = kind()
        outer.estimator = nest  # as set_params does
        nest = outer
    refused(message, nest.fit, LEVELS, LABEL)
    assert repr(bnb.WeightedNB(bnb.FeatureAveragedNB())) == "WeightedNB(estimator=FeatureAveragedNB())"


def test_what_the_estimator_cannot_count_it_says():
    with pytest.raises(AttributeError) as caught:
        _ = bnb.WeightedNB(bnb.TAN()).partial_fit
    assert "Call fit before partial_fit: TAN learns the tree from the rows passed to fit" in str(
        caught.value.__cause__.__cause__
    )
    assert not hasattr(bnb.WeightedNB("a name"), "partial_fit")


@pytest.mark.parametrize(("weights", "most"), [("temperature", None), ("feature", 3)])
def test_the_weights_of_a_network_are_those_of_its_number_of_parents(weights, most):
    """Reference: the network with as many parents, whose weights are fitted without a comparison."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    X = pd.DataFrame(
        (rng.integers(0, 3, (200, 3)) + (rng.random((200, 3)) < 0.5) * y[:, None]) % 3, columns=list("abc")
    )
    X = X.astype(str).assign(d=rng.normal(y), e=rng.normal(y / 2), f=rng.normal(size=200))
    X["g"] = X["d"] + rng.normal(size=200)
    free = bnb.WeightedNB(bnb.KDB(gaussian="dtype", max_features=most), weights).fit(X, y)
    given = bnb.WeightedNB(bnb.KDB(free.estimator_.k_, gaussian="dtype", max_features=most), weights).fit(X, y)
    assert free.term_names_ == given.term_names_
    np.testing.assert_allclose(free.weight_, given.weight_, rtol=1e-5)
    np.testing.assert_allclose(free.predict_proba(X), given.predict_proba(X), atol=1e-5)
