"""Prevalence against quadrature, sums over all labellings, refereed optimisers; laws of label shift."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import gammaln

import bayesnb as bnb
from bayesnb.analysis.prevalence import Prevalence, effective_size
from tests.estimators.cases import CASES, each
from tests.raises import refused
from tests.tables import COUNTS, in_shares

LEVELS = 5
TAILS = np.array([0.05, 0.95])
# Five standard errors: of some two hundred comparisons none fails by chance.
FAR = 5.0


@cache
def table(n_classes: int) -> np.ndarray:
    """(C, L) how often each class has each level among labelled rows; none has none."""
    return np.random.default_rng(n_classes).integers(1, 40, (n_classes, LEVELS))


@cache
def of_levels(n_classes: int):
    """A classifier of one column, whose p(level | class) is (n + 1)/(N + L)."""
    counts = table(n_classes)
    y, x = (np.repeat(index.ravel(), counts.ravel()) for index in np.indices(counts.shape))
    return bnb.CategoricalNB(alpha=1.0, categories=[list(range(LEVELS))]).fit(x[:, None], y)


def likelihood(levels: np.ndarray, n_classes: int) -> np.ndarray:
    counts = table(n_classes)
    return ((counts + 1) / (counts.sum(axis=1, keepdims=True) + LEVELS)).T[levels]


@cache
def apart(n_classes: int):
    """A classifier for which the level is the class."""
    y = np.repeat(np.arange(n_classes), 60)
    return bnb.CategoricalNB(alpha=0.0, categories=[list(range(LEVELS))]).fit(y[:, None], y)


levels = st.lists(st.integers(0, LEVELS - 1), min_size=1, max_size=16).map(np.array)


def estimate(n_classes: int, rows: np.ndarray, **options) -> Prevalence:
    """Given the scores, where the posterior is known without draws of θ."""
    return bnb.estimate_prevalence(of_levels(n_classes), rows[:, None], given="scores", **options)


class TestMode:
    @pytest.mark.parametrize("alpha", [1.0, [1.5, 1.0, 3.0]])
    @settings(max_examples=10)
    @given(rows=levels)
    def test_no_other_shares_have_a_greater_density(self, alpha, rows):
        found = estimate(3, rows, alpha=alpha, draws=1)
        p, prior = likelihood(rows, 3), np.broadcast_to(alpha, 3) - 1.0

        def minus_log_density(shares):
            with np.errstate(divide="ignore", invalid="ignore"):
                own = np.where(prior > 0, prior * np.log(shares), 0.0)
            return -(np.log(p @ shares).sum() + own.sum())

        best = minimize(
            minus_log_density, np.full(3, 1 / 3), bounds=[(1e-12, 1)] * 3, options={"ftol": 1e-15}, method="SLSQP",
            constraints={"type": "eq", "fun": lambda shares: shares.sum() - 1},
        )  # fmt: skip
        # The density may be flat: it is what is compared.
        assert minus_log_density(found.mode) <= best.fun + 1e-6
        assert found.mode.sum() == pytest.approx(1.0, abs=1e-12)

    @pytest.mark.slow("compiles kernels of its own")
    @pytest.mark.parametrize(
        "nb",
        [
            bnb.CategoricalNB(),
            bnb.GaussianNB(estimate="mean"),
            bnb.MultinomialNB(),
            bnb.TAN(),
            bnb.AODE(),
            bnb.WeightedNB(bnb.GaussianNB()),
        ],
        ids=lambda nb: type(nb).__name__,
    )
    def test_the_mean_prediction_at_the_mode_is_the_mode(self, nb):
        """The fixed point of EM, in terms of predict_proba: for any classifier, by its public methods alone."""
        name = type(getattr(nb, "estimator", nb)).__name__
        case = CASES.get(name) or CASES["CategoricalNB"]
        nb.fit(case.X, case.y)
        shifted = np.flatnonzero((case.y == "low") | (np.arange(len(case.y)) % 4 == 0))
        X = case.X[shifted]
        mode = bnb.estimate_prevalence(nb, X, alpha=1.0, draws=5, given="scores").mode
        assert not np.allclose(mode, np.exp(nb.class_log_prior_), atol=0.05)
        np.testing.assert_allclose(nb.predict_proba(X, class_prior=mode).mean(axis=0), mode, atol=1e-7)
        # And the likelihoods are P(class | row) with the learned class prior taken out.
        odds = nb.predict_log_proba(X) - nb.class_log_prior_
        again = np.exp(odds + np.log(np.maximum(mode, 1e-300)))
        np.testing.assert_allclose((again / again.sum(axis=1, keepdims=True)).mean(axis=0), mode, atol=1e-7)

    def test_there_is_none_under_a_prior_without_one(self):
        found = estimate(3, np.arange(LEVELS), alpha=[0.5, 1.0, 1.0], draws=50)
        assert np.isnan(found.mode).all()
        assert np.isfinite(found.mean).all()


class TestTwoClasses:
    @pytest.mark.parametrize("alpha", [1.0, [0.02, 0.3], [4.0, 0.5]])
    @settings(max_examples=10)
    @given(rows=levels)
    def test_moments_and_intervals_are_those_of_the_density(self, alpha, rows):
        found = estimate(2, rows, alpha=alpha)
        a, b = np.broadcast_to(alpha, 2)[::-1]
        p = likelihood(rows, 2)
        # Over t with s = t^a on the left and (1 - s) = t^b on the right of ½, the density is smooth at both ends.
        peak = max(np.log(p @ [1 - s, s]).sum() for s in np.linspace(0.001, 0.999, 99))

        def left(t, power, end):
            s = t ** (1 / a)
            return s**power * (1 - s) ** (b - 1) * np.exp(np.log(p @ [1 - s, s]).sum() - peak) / a if s <= end else 0.0

        def right(t, power, start):
            s = 1 - t ** (1 / b)
            return s**power * s ** (a - 1) * np.exp(np.log(p @ [1 - s, s]).sum() - peak) / b if s >= start else 0.0

        def below(end, rest, power=0):
            """The integral up to `end`, which is 1 - `rest`: either may be next to 0."""
            value = quad(left, 0, min(end, 0.5) ** a, args=(power, 1.0), limit=400, epsrel=1e-10)[0]
            if rest < 0.5:
                value += quad(right, rest**b, 0.5**b, args=(power, 0.0), limit=400, epsrel=1e-10)[0]
            return value

        total = below(1.0, 0.0)
        mean, square = (below(1.0, 0.0, power) / total for power in (1, 2))
        assert found.mean[1] == pytest.approx(mean, abs=1e-6)
        assert found.sd[1] == pytest.approx(np.sqrt(square - mean**2), abs=1e-5)
        for end, rest, q in zip((found.lower[1], found.upper[1]), (found.upper[0], found.lower[0]), TAILS, strict=True):
            assert below(end, rest) / total == pytest.approx(q, abs=1e-4)

    def test_draws_are_independent_draws_from_it(self):
        rows = np.random.default_rng(1).integers(0, LEVELS, 40)
        found, grid = estimate(2, rows, draws=4000), np.linspace(0, 1, 20_001)
        log_density = sum(np.log(own[0] * (1 - grid) + own[1] * grid) for own in likelihood(rows, 2))
        cdf = np.cumsum(np.exp(log_density - log_density.max()))
        assert stats.kstest(np.interp(found.draws[:, 1], grid, cdf / cdf[-1]), "uniform").pvalue > 1e-4
        np.testing.assert_allclose(found.draws.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(found.effective_draws, 4000)

    def test_many_rows_have_the_posterior_of_all_of_them(self):
        """The density of 20,000 different rows, on a grid of shares."""
        rng, y = np.random.default_rng(2), np.repeat(["a", "b"], 300)
        nb = bnb.GaussianNB().fit(rng.normal(size=(600, 2)) + (y == "b")[:, None], y)
        X = rng.normal(size=(20_000, 2)) + (rng.random(20_000) < 0.07)[:, None]
        found = bnb.estimate_prevalence(nb, X, given="scores")
        grid = np.linspace(found.mean[1] - 8 * found.sd[1], found.mean[1] + 8 * found.sd[1], 401)
        log_odds = np.diff(nb.predict_log_proba(X, class_prior=[0.5, 0.5]), axis=1)
        log_density = np.array([np.logaddexp(np.log1p(-s), np.log(s) + log_odds).sum() for s in grid])
        density = np.exp(log_density - log_density.max())
        cdf = (density.cumsum() - density / 2) / density.sum()
        mean = density @ grid / density.sum()
        sd = np.sqrt(density @ (grid - mean) ** 2 / density.sum())
        assert found.mean[1] == pytest.approx(mean, abs=0.002 * sd)
        assert found.sd[1] == pytest.approx(sd, rel=0.002)
        np.testing.assert_allclose(np.interp([found.lower[1], found.upper[1]], grid, cdf), TAILS, atol=0.001)
        assert found.mode[1] == pytest.approx(grid[np.argmax(density)], abs=0.05 * sd)

    def test_many_rows_of_one_score_or_of_none(self):
        found = bnb.estimate_prevalence(of_levels(2), np.full((2_500, 1), np.nan), given="scores")
        np.testing.assert_allclose([found.mean[1], found.sd[1]], [0.5, np.sqrt(1 / 12)], rtol=1e-6)
        certain = bnb.estimate_prevalence(apart(2), np.repeat([[0], [1]], [2_400, 600], axis=0), given="scores")
        exact = stats.beta(601, 2_401)
        np.testing.assert_allclose([certain.mean[1], certain.sd[1]], [exact.mean(), exact.std()], rtol=1e-6)


class TestPValue:
    def test_where_the_row_is_the_class_two_frequencies_are_compared(self):
        for k in (20, 25, 40):
            rows = np.repeat([0, 1, 2], [k, 30, 40])
            found = bnb.estimate_prevalence(apart(3), rows[:, None], given="scores")
            share, p = k / len(rows), 1 / 3
            error = np.sqrt(max(p * (1 - p), share * (1 - share)) * (1 / len(rows) + 1 / 180))
            assert found.p_value[0] == pytest.approx(2 * stats.norm.sf(abs(share - p) / error), rel=1e-9)

    @pytest.mark.slow("simulates many data sets or draws")
    @pytest.mark.parametrize("n_rows", [500, 5_000, 20_000])
    def test_rows_of_the_same_population_are_rejected_at_the_level_and_others_are_found(self, n_rows):
        """600 labelled rows; with 20,000 others nearly all of the error is that of the labelled rows' share."""
        sets, p_values, excluded, found = 300, [], 0, 0

        def draw(n: int, share: float) -> tuple[np.ndarray, np.ndarray]:
            y = (rng.random(n) < share).astype(int)
            return (rng.random((n, 4)) < np.where(y[:, None] == 1, [0.8, 0.6, 0.5, 0.9], [0.3, 0.4, 0.2, 0.6])) * 1, y

        for s in range(sets):
            rng = np.random.default_rng([s, n_rows])
            nb = bnb.BernoulliNB().fit(*draw(600, 0.2))
            same = bnb.estimate_prevalence(nb, draw(n_rows, 0.2)[0], prob=0.95, draws=1, given="scores")
            p_values.append(same.p_value[1])
            excluded += not same.lower[1] <= same.training[1] <= same.upper[1]
            other = bnb.estimate_prevalence(nb, draw(n_rows, 0.4)[0], draws=1, given="scores")
            found += other.p_value[1] < 0.05
        below = [(np.array(p_values) < level).mean() for level in (0.01, 0.05, 0.2)]
        print(n_rows, "rows: p below .01, .05, .2:", below, "excluded", excluded / sets, "found", found / sets)
        for rate, level in zip(below, (0.01, 0.05, 0.2), strict=True):
            assert rate < level + 3.0 * np.sqrt(level * (1 - level) / sets)
        assert found / sets > 0.95
        assert n_rows < 20_000 or excluded / sets > 0.3


class TestMoreClasses:
    @pytest.mark.parametrize("alpha", [1.0, [0.3, 2.0, 1.0]])
    def test_moments_are_those_of_the_sum_over_all_labellings(self, alpha):
        rows = np.array([0, 1, 1, 2, 3, 4, 4])
        found, prior = estimate(3, rows, alpha=alpha, draws=1500), np.broadcast_to(alpha, 3)
        p = likelihood(rows, 3)
        labels = np.array(list(product(range(3), repeat=len(rows))))
        after = prior + (labels[..., None] == np.arange(3)).sum(axis=1)
        weight = p[np.arange(len(rows)), labels].prod(axis=1) * np.exp(gammaln(after).sum(axis=1))
        share = after / after.sum(axis=1, keepdims=True)
        mean = np.average(share, axis=0, weights=weight)
        second = np.average(share * (after + 1) / (after.sum(axis=1, keepdims=True) + 1), axis=0, weights=weight)
        sd = np.sqrt(second - mean**2)
        assert (abs(found.mean - mean) < FAR * sd / np.sqrt(found.effective_draws)).all()
        np.testing.assert_allclose(found.sd, sd, rtol=0.15)

    @pytest.mark.slow("simulates many data sets or draws")
    def test_rows_that_stand_there_often_are_drawn_as_if_one_by_one(self, monkeypatch):
        rows = np.repeat(np.arange(LEVELS), [40, 3, 2, 20, 1])
        found = estimate(3, rows, draws=1000)
        monkeypatch.setattr("bayesnb.analysis.prevalence._FEW", 100)
        other = estimate(3, rows, draws=1000)
        error = found.sd * np.sqrt(1 / found.effective_draws + 1 / other.effective_draws)
        assert (abs(found.mean - other.mean) < FAR * error).all()
        assert (found.draws != other.draws).any()

    @pytest.mark.slow("simulates many data sets or draws")
    def test_classes_that_rows_hardly_tell_apart(self):
        rng = np.random.default_rng(5)
        y = np.repeat(range(3), 2000)
        nb = bnb.GaussianNB().fit(rng.normal(0.05 * y)[:, None], y)
        with pytest.warns(UserWarning, match="worth .* independent draws"):
            found = bnb.estimate_prevalence(nb, rng.normal(size=(3000, 1)), draws=200, given="scores")
        assert found.effective_draws.min() < 50
        assert found.sd.min() > 0.05


@pytest.mark.parametrize("n", [400, 401])
def test_effective_size_is_geyers_sum_of_autocorrelations(n):
    """Chains that are correlated, that alternate, whose size is at most n, and that never move."""
    noise, chain = np.random.default_rng(n).normal(size=(n, 3)), np.zeros((n, 3))
    for i in range(1, n):
        chain[i] = [0.7, -0.5, 0.0] * chain[i - 1] + [1.0, 1.0, 0.0] * noise[i]
    expected = np.full(3, float(n))
    for j in (0, 1):
        centred = chain[:, j] - chain[:, j].mean()
        correlation = [centred[: n - lag] @ centred[lag:] / (centred @ centred) for lag in range(n)]
        pairs = [a + b for a, b in zip(correlation[::2], correlation[1::2], strict=False)]
        until = next(k for k, pair in enumerate(pairs) if pair <= 0)
        expected[j] = min(n, n / (2 * sum(pairs[:until]) - 1))
    assert expected[0] < n / 3
    np.testing.assert_allclose(effective_size(chain), expected, rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_where_the_row_is_the_class_the_posterior_is_that_of_labelled_rows(n_classes, alpha):
    rows = np.repeat(np.arange(n_classes), [30, 0, 12][:n_classes])
    found = bnb.estimate_prevalence(apart(n_classes), rows[:, None], alpha=alpha, draws=2000, given="scores")
    after = alpha + np.bincount(rows, minlength=n_classes)
    for c, n in enumerate(after):
        exact = stats.beta(n, after.sum() - n)
        assert stats.kstest(found.draws[:, c], exact.cdf).pvalue > 1e-4
        if n_classes == 2:
            np.testing.assert_allclose([found.mean[c], found.sd[c]], [exact.mean(), exact.std()], rtol=1e-9)
            np.testing.assert_allclose([found.lower[c], found.upper[c]], exact.ppf(TAILS), rtol=1e-3)
    assert (found.effective_draws > 1000).all()


class TestLaws:
    @pytest.mark.filterwarnings("ignore:The rows hardly tell")
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_the_order_of_rows_does_not_matter(self, n_classes):
        rows = np.random.default_rng(6).integers(0, LEVELS, 50)
        found, other = estimate(n_classes, rows, draws=50), estimate(n_classes, rows[::-1], draws=50)
        for field in ("mode", "mean", "sd", "lower", "upper", "draws"):
            np.testing.assert_array_equal(getattr(found, field), getattr(other, field))

    def test_the_names_of_the_classes_do_not_matter(self):
        rows = np.random.default_rng(7).integers(0, LEVELS, (60, 1))
        counts = table(2)
        y, x = (np.repeat(index.ravel(), counts.ravel()) for index in np.indices(counts.shape))
        renamed = bnb.CategoricalNB(alpha=1.0, categories=[list(range(LEVELS))]).fit(
            x[:, None], np.array(["z", "a"])[y]
        )
        found = bnb.estimate_prevalence(of_levels(2), rows, alpha=[1.0, 3.0], given="scores")
        other = bnb.estimate_prevalence(renamed, rows, alpha=[3.0, 1.0], given="scores")
        for field in ("mode", "mean", "sd", "lower", "upper"):
            np.testing.assert_allclose(getattr(other, field)[::-1], getattr(found, field), rtol=1e-6)
        assert list(other.classes) == ["a", "z"]

    @pytest.mark.slow("compiles kernels of its own")
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_a_row_without_a_cell_says_nothing(self, n_classes):
        nb, rows = of_levels(n_classes), np.arange(LEVELS, dtype=float)[:, None]
        found = bnb.estimate_prevalence(nb, rows, draws=800)
        other = bnb.estimate_prevalence(nb, np.vstack([rows, np.full((30, 1), np.nan)]), draws=800)
        np.testing.assert_allclose(other.mode, found.mode, atol=1e-5)
        error = 0.0 if n_classes == 2 else found.sd * np.sqrt(1 / found.effective_draws + 1 / other.effective_draws)
        assert (abs(other.mean - found.mean) < FAR * error + 1e-6).all()
        assert other.n_rows == LEVELS + 30

    def test_the_shares_of_the_labelled_rows_do_not_matter(self):
        rows = np.random.default_rng(8).integers(0, LEVELS, (60, 1))
        counts = table(2)
        y, x = (np.repeat(index.ravel(), counts.ravel()) for index in np.indices(counts.shape))
        options = {"alpha": 1.0, "categories": [list(range(LEVELS))]}
        found = bnb.estimate_prevalence(of_levels(2), rows, given="scores")
        for prior in ([0.01, 0.99], [1.0, 0.0]):
            nb = bnb.CategoricalNB(class_prior=prior, **options).fit(x[:, None], y)
            other = bnb.estimate_prevalence(nb, rows, given="scores")
            np.testing.assert_allclose(other.training, prior)
            np.testing.assert_allclose(other.draws, found.draws, rtol=1e-9)

    def test_the_mean_is_what_further_rows_need(self):
        """P(class | row, U) = E[π_c | U] p(row | c) / Σ, by the evidences of the rows with each class added."""
        rows, row = np.random.default_rng(9).integers(0, LEVELS, 40), np.array([[2]])
        found, grid = estimate(2, rows), np.linspace(0, 1, 100_001)
        log_density = sum(np.log(own[0] * (1 - grid) + own[1] * grid) for own in likelihood(rows, 2))
        density = np.exp(log_density - log_density.max())
        own = likelihood(row.ravel(), 2)[0]
        evidence = np.array([np.trapezoid(density * (1 - grid) * own[0]), np.trapezoid(density * grid * own[1])])
        exact = evidence / evidence.sum()
        np.testing.assert_allclose(of_levels(2).predict_proba(row, class_prior=found.mean)[0], exact, atol=1e-6)


class TestGivenTheData:
    @pytest.mark.slow("compiles kernels of its own")
    def test_each_draw_is_the_posterior_given_its_parameters(self):
        """Reference: beta draws of θ, and the posterior given θ on a grid, averaged."""
        nb = bnb.BernoulliNB(alpha=1.0).fit([[1]] * 6 + [[0]] * 2 + [[1]] * 1 + [[0]] * 5, [0] * 8 + [1] * 6)
        X = np.repeat([[0], [1]], [30, 20], axis=0)
        found = bnb.estimate_prevalence(nb, X, draws=2000, given="data")
        rng, grid = np.random.default_rng(10), np.linspace(0, 1, 501)[1:-1]
        first, second = rng.beta(7, 3, 4000)[:, None], rng.beta(2, 6, 4000)[:, None]
        one = first * (1 - grid) + second * grid
        log_density = 30 * np.log1p(-one) + 20 * np.log(one)
        density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
        density = (density / density.sum(axis=1, keepdims=True)).mean(axis=0)
        mean = density @ grid
        sd = np.sqrt(density @ (grid - mean) ** 2)
        assert 100 < found.effective_draws[1] <= 2000
        assert abs(found.mean[1] - mean) < FAR * sd / 10
        assert found.sd[1] == pytest.approx(sd, rel=0.1)
        np.testing.assert_allclose(
            np.interp([found.lower[1], found.upper[1]], grid, density.cumsum()), TAILS, atol=0.03
        )
        assert found.sd[1] > 1.2 * bnb.estimate_prevalence(nb, X, given="scores").sd[1]
        default = bnb.estimate_prevalence(nb, X, draws=2000)
        np.testing.assert_array_equal(default.draws, found.draws)

    @pytest.mark.slow("compiles kernels of its own")
    @each
    def test_it_is_offered_for_every_family(self, case):
        few, X = case.make().fit(case.X, case.y), case.X[:30]
        found = bnb.estimate_prevalence(few, X, draws=200, given="data")
        scores = bnb.estimate_prevalence(few, X, draws=200, given="scores")
        np.testing.assert_array_equal(found.mode, scores.mode)
        assert (abs(found.mean - scores.mean) < scores.sd).all()
        assert found.draws.shape == (200, 3)
        assert "given the data" in repr(found)

    @pytest.mark.slow("compiles kernels of its own")
    def test_there_has_to_be_a_posterior(self):
        said = r"given='data' averages over the posterior\. .* counted by EM.*\. Pass given='scores'"
        refused(said, bnb.estimate_prevalence, in_shares(), COUNTS, error=NotImplementedError)
        assert bnb.estimate_prevalence(in_shares(), COUNTS, draws=10, given="scores").given == "scores"
        refused("improper", bnb.estimate_prevalence, apart(2), [[0]], given="data", error=bnb.ImproperPosteriorError)


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"alpha": 0.0}, "alpha=0.0 must be finite and above 0"),
            ({"alpha": [1.0, 1.0, 1.0]}, r"alpha has shape \(3,\); it must be a number or have shape \(2,\)"),
            ({"alpha": "much"}, "alpha='much' must be a number"),
            ({"prob": 1.0}, "prob=1.0 must be a number between 0 and 1"),
            ({"draws": 0}, "draws=0 must be a positive integer"),
            ({"seed": -1}, "seed=-1 must be an integer of at least 0"),
            ({"given": "rows"}, "given='rows' is unknown; use 'data' or 'scores'"),
        ],
    )
    def test_arguments(self, options, message):
        refused(message, bnb.estimate_prevalence, of_levels(2), [[1]], **options)

    def test_rows(self):
        refused("0 sample", bnb.estimate_prevalence, of_levels(2), np.empty((0, 1)))
        refused("2 features", bnb.estimate_prevalence, of_levels(2), [[1, 2]])
        impossible = bnb.CategoricalNB(categories=[[0, 1, 2]], estimate="mle").fit([[0], [1]], ["a", "b"])
        with pytest.warns(UserWarning, match="no class probabilities"):
            refused(r"1 of 3 rows .* \(first: row 1\)", bnb.estimate_prevalence, impossible, [[0], [2], [1]])

    @pytest.mark.slow("compiles kernels of its own")
    def test_classifiers(self):
        refused("classifier of bayesnb", bnb.estimate_prevalence, object(), [[1]], error=TypeError)
        refused("not fitted", bnb.estimate_prevalence, bnb.GaussianNB(), [[1]])
        mixture = bnb.NaiveBayesMixture(2).fit(CASES["GaussianNB"].X)
        refused("estimator_", bnb.estimate_prevalence, mixture, CASES["GaussianNB"].X, error=TypeError)


def test_a_class_that_no_row_can_be_of():
    found = bnb.estimate_prevalence(apart(2), [[0]] * 9, given="scores")
    assert list(found.mode) == [1.0, 0.0]
    np.testing.assert_allclose(found.upper[1], stats.beta(1, 10).ppf(0.95), rtol=1e-4)


def test_the_seed_decides_the_draws_and_nothing_else():
    rows = np.arange(LEVELS)
    one, same, other = (estimate(2, rows, seed=seed, draws=30) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.draws, same.draws)
    assert (one.draws != other.draws).any()
    np.testing.assert_array_equal(one.mean, other.mean)


def test_the_table_and_what_is_printed():
    found = estimate(3, np.arange(LEVELS), draws=50, prob=0.5)
    frame = found.to_frame()
    assert list(frame) == ["training", "mode", "mean", "sd", "lower", "upper", "p_value"]
    assert list(frame.index) == list(of_levels(3).classes_)
    np.testing.assert_array_equal(frame["mean"], found.mean)
    assert repr(found).startswith("Prevalence in 5 rows, 50% intervals given the scores, if")
    assert repr(frame.round(4)) in repr(found)


SETS, ROWS, DRAWS = 1_000, 60, 199


def scores_that_hold(n_classes: int):
    """A classifier of three columns whose plug-in probabilities are taken for the truth, and those, (C, 3, 3)."""
    rng = np.random.default_rng(n_classes)
    y, X = np.repeat(np.arange(n_classes), 30), rng.integers(0, 3, (30 * n_classes, 3))
    X = np.where(rng.random(X.shape) < 0.5, (y[:, None] + np.arange(3)) % 3, X)
    nb = bnb.CategoricalNB(categories=[[0, 1, 2]] * 3, estimate="mean").fit(X, y)
    return nb, np.exp(np.stack(nb.feature_log_prob_, axis=1))


@pytest.mark.calibration
@pytest.mark.parametrize("n_classes", [2, 3])
def test_given_scores_that_hold_intervals_cover(n_classes):
    """90% ± 3 over 1,000 simulations from the prior (three standard errors: 2.8%)."""
    nb, theta = scores_that_hold(n_classes)
    alpha = np.array([1.0, 0.5, 2.0])[:n_classes]
    covered, ranks = np.zeros(n_classes), []
    for s in range(SETS):
        rng = np.random.default_rng([s, 17])
        truth = rng.dirichlet(alpha)
        label = rng.choice(n_classes, ROWS, p=truth)
        X = (rng.random((ROWS, 3, 1)) > np.cumsum(theta[label], axis=2)).sum(axis=2)
        found = bnb.estimate_prevalence(nb, X, alpha=alpha, draws=DRAWS, seed=s, given="scores")
        covered += (found.lower <= truth) & (truth <= found.upper)
        ranks.append((found.draws < truth).sum(axis=0))
    print(f"{n_classes} classes: covered {covered / SETS}")
    assert (abs(covered / SETS - 0.9) < 0.03).all()
    counts = [np.bincount(np.array(ranks)[:, c] * 10 // (DRAWS + 1), minlength=10) for c in range(n_classes)]
    # Draws of three classes are nearly independent: ranks of 10 bins hardly notice.
    assert min(stats.chisquare(own).pvalue for own in counts) > 1e-3


@pytest.mark.calibration
def test_given_the_data_intervals_cover_after_few_labelled_rows():
    """Twenty labelled rows a class from the classifier's own prior. Given the scores far fewer do: that is why."""
    covered = {"scores": 0, "data": 0}
    for s in range(SETS):
        rng = np.random.default_rng([s, 18])
        theta, truth = rng.beta(1.0, 1.0, (2, 6)), rng.beta(1.0, 1.0)
        y, label = np.repeat([0, 1], 20), (rng.random(200) < truth).astype(int)
        nb = bnb.BernoulliNB().fit(rng.random((40, 6)) < theta[y], y)
        X = rng.random((200, 6)) < theta[label]
        for condition in covered:
            found = bnb.estimate_prevalence(nb, X, draws=DRAWS, seed=s, given=condition)
            covered[condition] += int(found.lower[1] <= truth <= found.upper[1])
    print({given: n / SETS for given, n in covered.items()})
    assert abs(covered["data"] / SETS - 0.9) < 0.05
    assert covered["scores"] / SETS < covered["data"] / SETS - 0.05
