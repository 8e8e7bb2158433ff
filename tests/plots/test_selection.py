"""Prequential curves against refits of prefixes; figures of choices against the numbers they are of."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

import bayesnb as bnb
from bayesnb import BernoulliNB, CategoricalNB, FeatureAveragedNB, GaussianNB, MultinomialNB, plots
from tests.plots.figures import LONG, check, said, segments
from tests.strategies import KINDS, problems, thorough, with_prior_of

pytestmark = pytest.mark.slow("compiles kernels of its own")


def relevant_and_noise(n_features: int, n_rows: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Binary features, the first tenth of which follow the label."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    X = rng.integers(0, 2, (n_rows, n_features))
    k = max(1, n_features // 10)
    X[:, :k] = np.where(rng.random((n_rows, k)) < rng.uniform(0.05, 0.95, k), y[:, None], X[:, :k])
    return pd.DataFrame(X, columns=[f"{LONG} {j:03d}" for j in range(n_features)]), y


def averaged(n_features: int, **options) -> FeatureAveragedNB:
    return FeatureAveragedNB(BernoulliNB(), **options).fit(*relevant_and_noise(n_features))


@pytest.fixture(scope="module")
def two():
    """Two models of 120 rows, which are not in the order of their classes."""
    X, y = relevant_and_noise(20)
    return BernoulliNB().fit(X, y), FeatureAveragedNB(BernoulliNB()).fit(X, y), X, y


class TestPrequentialCurve:
    @pytest.mark.parametrize("kind", thorough(KINDS))
    @settings(max_examples=5)
    @given(data=st.data())
    def test_it_is_the_evidence_of_each_prefix_and_grows_by_the_next_row(self, kind, data):
        problem = data.draw(problems(kind, max_rows=6))
        whole = problem.fit()
        fixed = with_prior_of(problem.nb, whole)
        curve = bnb.prequential(whole, problem.X, problem.y, problem.weight)
        np.testing.assert_array_equal(curve.sizes, np.arange(len(problem) + 1))
        assert curve.log_evidence[0] == 0.0
        scale = max(1.0, np.abs(curve.log_evidence).max())
        sequence = None
        for n in range(1, len(problem) + 1):
            prefix = problem.take(range(n)).fit(fixed)
            assert abs(curve.log_evidence[n] - prefix.log_evidence_) <= 1e-9 * scale
            one = problem.take([n - 1])
            sequence = one.fit(fixed) if sequence is None else sequence.partial_fit(one.X, one.y, None, one.weight)
            assert abs(curve.log_evidence[n] - sequence.log_evidence_) <= 1e-9 * scale
        assert abs(curve.log_evidence[-1] - whole.log_evidence_) <= 1e-9 * scale

    def test_it_is_the_sum_of_the_predictions_of_each_row_by_those_before(self, two):
        X, y = two[2][:30], two[3][:30]
        curve = bnb.prequential(FeatureAveragedNB(BernoulliNB()).fit(X, y), X, y)
        total, before = [0.0], None
        for n in range(len(y)):
            row, label = X.iloc[n : n + 1], y[n : n + 1]
            if before is None:  # no rows: each value and each label has probability 1/2
                total.append(-np.log(2) * (1 + X.shape[1]))
                before = FeatureAveragedNB(BernoulliNB()).partial_fit(row, label, classes=[0, 1])
                continue
            total.append(total[-1] + before.predict_joint_log_proba(row)[0, label[0]])
            before.partial_fit(row, label)
        np.testing.assert_allclose(curve.log_evidence, total, rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_differences_of_two_end_at_the_log_bayes_factor(self, weighted):
        rng = np.random.default_rng(3)
        y = rng.integers(0, 3, 300)
        X = rng.poisson(3, (300, 4)) + y[:, None]
        weight = rng.integers(0, 4, 300).astype(float) if weighted else np.ones(300)
        pairs = [
            (CategoricalNB(alpha=0.3), FeatureAveragedNB()),
            (GaussianNB(prior="pooled"), GaussianNB(prior="within")),
            (MultinomialNB(), MultinomialNB(alpha=7.0)),
        ]
        for one, other in pairs:
            one.fit(X, y, weight)
            other.fit(X, y, weight)
            first, second = bnb.prequential(one, X, y, weight), bnb.prequential(other, X, y, weight)
            end = first.log_evidence[-1] - second.log_evidence[-1]
            assert abs(end - bnb.bayes_factor(one, other).log) <= 1e-9 * max(1.0, abs(one.log_evidence_))

    def test_the_order_of_the_rows_changes_the_way_and_not_the_end(self, two):
        nb, _, X, y = two
        order = np.argsort(y, kind="stable")
        given_, by_class = bnb.prequential(nb, X, y), bnb.prequential(nb, X.iloc[order], y[order])
        assert given_.log_evidence[-1] == pytest.approx(by_class.log_evidence[-1], rel=1e-12)
        assert np.abs(given_.log_evidence - by_class.log_evidence).max() > 1

    @pytest.mark.parametrize("points", [1, 7, 50, 120, 1000])
    def test_sizes_go_from_no_row_to_all_of_them(self, two, points):
        nb, _, X, y = two
        curve = bnb.prequential(nb, X, y, points=points)
        assert curve.sizes[0] == 0
        assert curve.sizes[-1] == len(y)
        steps = np.diff(curve.sizes)
        assert len(steps) == min(points, len(y))
        assert steps.max() - steps.min() <= 1

    def test_it_keeps_the_estimator_as_it_was(self, two):
        _, _, X, y = two
        nb = BernoulliNB().fit(X, y)
        curve = bnb.prequential(nb, X, y)
        nb.partial_fit(X, y)
        assert curve.estimator.log_evidence_ == pytest.approx(curve.log_evidence[-1], rel=1e-12)
        assert f"{curve.log_evidence[-1]:.3f}" in repr(curve)

    def test_other_rows_are_refused(self, two):
        nb, _, X, y = two
        refused(r"prequential: .*negative", bnb.prequential, nb, X, 1 - y)
        refused(r"must be all rows .* 119 of 120 rows", bnb.prequential, nb, X.iloc[1:], y[1:])
        with pytest.raises(ValueError, match=r"must be all rows .* or cells are missing"):
            bnb.prequential(nb, X.astype(float).replace({X.columns[3]: {1.0: np.nan}}), y)
        refused("points=0", bnb.prequential, nb, X, y, points=0)


class TestInclusion:
    @pytest.mark.parametrize("n", [2, 20, 40, 41, 200])
    def test_nothing_overlaps_and_the_highest_have_names(self, n):
        nb = averaged(n)
        ax = check(plots.inclusion(nb))
        named = n if n <= 40 else 30
        shown = np.sort(nb.inclusion_probability_)[::-1]
        dots = next(line for line in ax.lines if line.get_marker() == "o")
        np.testing.assert_allclose(dots.get_xdata(), shown[:named], rtol=1e-12)
        names = [t.get_text() for t in ax.get_yticklabels()]
        of = {f"{j:03d}": p for j, p in enumerate(nb.inclusion_probability_)}
        np.testing.assert_allclose([of[name[-3:]] for name in names[:named]], shown[:named], rtol=1e-12)
        assert (f"the other {n - 30}" in said(ax)) == (n > 40)
        assert f"{shown.sum():.3g} of {n} features expected, {n / 2:.3g} a priori" in said(ax)
        if n > 40:
            (curve,) = ax.patches
            np.testing.assert_allclose(curve.get_data().values, shown[30:], rtol=1e-12)
            assert names[-1] == f"rank {n}"

    def test_bars_from_each_prior_to_its_posterior(self):
        prior = np.random.default_rng(0).uniform(0.05, 0.95, 20)
        nb = averaged(20, inclusion=prior)
        order = np.argsort(-nb.inclusion_probability_, kind="stable")
        ends = segments(check(plots.inclusion(nb)))
        bars, lines = ends[:20], ends[20:]
        np.testing.assert_allclose(bars[:, :, 0], np.stack([prior, nb.inclusion_probability_])[:, order].T, rtol=1e-12)
        np.testing.assert_allclose(lines[:, :, 0], np.stack([prior, prior])[:, order].T, rtol=1e-12)
        np.testing.assert_allclose(lines[:, :, 1], np.arange(20)[:, None] + [-0.5, 0.5])

    def test_in_low_axes(self):
        for n in (2, 20, 200):
            ax = Figure(figsize=(6, 2.8), layout="constrained").add_subplot()
            assert plots.inclusion(averaged(n), ax=ax) is ax
            check(ax)

    def test_a_hundred_thousand_features(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 40)
        X = rng.integers(0, 2, (40, 100_000), dtype=np.int8)
        X[:, 12_345] = y
        nb = FeatureAveragedNB(BernoulliNB(), expected_features=5).fit(X, y)
        ax = check(plots.inclusion(nb))
        names = [t.get_text() for t in ax.get_yticklabels()]
        assert names[0].endswith("12345")
        assert names[30:] == ["rank 100", "rank 1,000", "rank 10,000", "rank 100,000"]
        heights = ax.get_yticks()[30:]
        np.testing.assert_allclose(np.diff(heights), np.diff(heights)[0])

    def test_a_column_keeps_its_probability_wherever_its_block_puts_it(self):
        X = pd.DataFrame(
            {"size": [1.0, 2.0, 3.0, 4.0] * 9, "shape": list("abba") * 9, "noise": [0.0, 1.0, 1.0, 0.0] * 9}
        )
        nb = FeatureAveragedNB(bnb.MixedNB()).fit(X, X["shape"].map({"a": 0, "b": 1}).to_numpy())
        assert plots.inclusion(nb).get_yticklabels()[0].get_text() in ("shape", "noise")
        assert plots.inclusion(nb).get_yticklabels()[-1].get_text() == "size"

    def test_other_models_are_refused(self, two):
        refused("BernoulliNB does not average over features", plots.inclusion, two[0])


def marks(ax) -> dict[str, np.ndarray]:
    """Positions of what is drawn with each mark."""
    found: dict[str, list] = {}
    for line in ax.lines:
        found.setdefault(str(line.get_marker()), []).append(line.get_xydata())
    return {mark: np.concatenate(points) for mark, points in found.items()}


class TestAlphaPath:
    @pytest.mark.parametrize("by", ["loo", "evidence"])
    def test_every_evaluation_and_the_best(self, two, by):
        nb, _, X, y = two
        tuned = bnb.tune_alpha(nb, X, y, by=by, bounds=(1e-3, 1e5))
        assert not tuned.boundary
        ax = check(plots.alpha_path(tuned))
        drawn = marks(ax)
        below = tuned.path["objective"].max() - tuned.path["objective"]
        np.testing.assert_allclose(drawn["o"], np.stack([tuned.path["alpha"], below], axis=1))
        np.testing.assert_allclose(drawn["*"], [[tuned.alpha, 0.0]])
        assert ax.get_xscale() == "log"
        assert f"{tuned.objective:.3f} nats at best" in said(ax)
        assert "end of the interval" not in said(ax)

    @pytest.mark.parametrize(("bounds", "mark"), [((1e-4, 1e-3), ">"), ((50, 1000), "<"), ((0.01, 0.011), ">")])
    def test_an_optimum_at_the_end_points_beyond(self, two, bounds, mark):
        nb, _, X, y = two
        with pytest.warns(UserWarning, match="end of the interval"):
            tuned = bnb.tune_alpha(nb, X, y, by="evidence", bounds=bounds)
        ax = check(plots.alpha_path(tuned))
        np.testing.assert_allclose(marks(ax)[mark], [[tuned.alpha, 0.0]])
        assert "*" not in marks(ax)
        assert f"alpha = {tuned.alpha:.4g}, at the end of the interval" in said(ax)

    def test_several_hyperparameters_have_marks_of_their_own(self):
        rng = np.random.default_rng(0)
        y = np.arange(40) % 2
        X = rng.normal(size=(40, 3)) + y[:, None]
        nb = GaussianNB().fit(X, y)
        tuned = bnb.tune_alpha(nb, X, y, by="evidence", tune=["class_alpha", "kappa", "a"], bounds=(1e-2, 1e2))
        ax = check(plots.alpha_path(tuned))
        below = tuned.path["objective"].max() - tuned.path["objective"]
        for name, mark in zip(tuned.values, "os^", strict=True):
            np.testing.assert_allclose(marks(ax)[mark], np.stack([tuned.path[name], below], axis=1))
            assert f"{name} = " in said(ax)

    @pytest.mark.parametrize("by", ["loo", "evidence"])
    def test_a_line_joins_the_evaluations_in_order(self, two, by):
        nb, _, X, y = two
        tuned = bnb.tune_alpha(nb, X, y, by=by, bounds=(1e-3, 1e5))
        (line,) = [line for line in plots.alpha_path(tuned).lines if line.get_marker() == "None"]
        path = tuned.path.sort_values("alpha")
        np.testing.assert_allclose(line.get_xdata(), path["alpha"])
        np.testing.assert_allclose(line.get_ydata(), path["objective"].max() - path["objective"])

    def test_both_criteria_have_lines_and_stars_of_their_own(self, two):
        nb, _, X, y = two
        tuned = {f"{LONG} {by}": bnb.tune_alpha(nb, X, y, by=by, bounds=(1e-3, 1e5)) for by in ("loo", "evidence")}
        ax = check(plots.alpha_path(tuned))
        stars = [line for line in ax.lines if line.get_marker() == "*"]
        assert [line.get_xdata()[0] for line in stars] == [one.alpha for one in tuned.values()]
        assert stars[0].get_color() != stars[1].get_color()
        for one in tuned.values():
            assert f"alpha = {one.alpha:.4g}" in said(ax)
            assert f"{one.objective:.3f} nats at best" in told(ax)
        refused("tuned holds nothing", plots.alpha_path, {})
        refused(r"tuned\['a'\] must be", plots.alpha_path, {"a": 3}, error=TypeError)

    def test_what_is_not_finite_is_counted(self, two):
        nb, _, X, y = two
        tuned = bnb.tune_alpha(nb, X, y, by="evidence")
        path = tuned.path.assign(objective=[-np.inf, *tuned.path["objective"][1:]])
        assert "Without a mark, since not finite: 1" in said(check(plots.alpha_path(replace(tuned, path=path))))
        refused("not finite at any", plots.alpha_path, replace(tuned, path=path.assign(objective=-np.inf)))


def told(ax) -> str:
    """The header in one line."""
    return said(ax).replace("\n", " ")


def fake_loo(pointwise, weight=None, label=None) -> bnb.selection.LeaveOneOut:
    n = len(pointwise)
    weight = np.ones(n) if weight is None else np.asarray(weight, float)
    label = np.zeros(n, int) if label is None else np.asarray(label)
    pointwise = np.asarray(pointwise, float)
    return bnb.selection.LeaveOneOut(pointwise, 10 * pointwise, np.zeros((n, 2)), weight, label, np.array([0, 1]))


class TestPointwiseLoo:
    @pytest.mark.parametrize("n", [2, 20, 200, 20_000])
    @pytest.mark.parametrize("kind", ["label", "row"])
    def test_nothing_overlaps(self, n, kind):
        rng = np.random.default_rng(n)
        first, second = (fake_loo(-rng.gamma(1.0, size=n)) for _ in range(2))
        check(plots.pointwise_loo(first, second, kind=kind, names=(f"{LONG} 1", f"{LONG} 2")))

    @pytest.mark.parametrize("kind", ["label", "row"])
    def test_the_area_is_the_difference_and_its_error_is_paired(self, two, kind):
        one, other, X, y = two
        weight = np.arange(len(y)) % 3
        one, other = (
            bnb.loo(nb.__class__(**nb.get_params(deep=False)).fit(X, y, weight), X, y, weight) for nb in (one, other)
        )
        ax = check(plots.pointwise_loo(one, other, kind=kind))
        d = one.pointwise - other.pointwise if kind == "label" else one.row_pointwise - other.row_pointwise
        total = weight @ d
        error = np.sqrt(np.repeat(d, weight).var() * weight.sum())
        area = [np.diff(p.get_data().edges) @ p.get_data().values for p in ax.patches]
        # Rows that differ hardly are left out, and their part is told.
        left_out = re.search(
            r"Left out at the dotted line: (\S+) rows, each less than (\S+) nats, together\s(\S+)", told(ax)
        )
        rest = np.zeros(len(d), bool) if left_out is None else np.abs(d) < 1.02 * float(left_out[2])
        if left_out is not None:
            assert weight[rest].sum() == float(left_out[1])
            assert weight @ np.where(rest, d, 0) == pytest.approx(float(left_out[3]), rel=0.06)
        assert sum(area) == pytest.approx(total - weight @ np.where(rest, d, 0), rel=1e-9)
        assert area[0] == pytest.approx(weight @ np.maximum(np.where(rest, 0, d), 0), rel=1e-9)
        assert weight @ np.abs(np.where(rest, d, 0)) <= 0.02 * (weight @ np.abs(d))
        assert f"{total:+.2f} ± {error:.2f} nats" in said(ax)
        assert ("the standard error misleads" in said(ax)) == (abs(total) < 4)

    def test_the_axes_are_not_empty_where_few_rows_differ(self):
        d = np.concatenate([[5.0, 4.0, 3.0, -6.0, -2.0], np.full(600, 1e-4), np.full(600, -2e-5)])
        order = np.random.default_rng(0).permutation(len(d))
        ax = check(plots.pointwise_loo(fake_loo(d[order] - 9), fake_loo(np.full(len(d), -9.0))))
        text = told(ax)
        assert "Left out at the dotted line: 1200 rows, each less than 2 nats, together +0.048" in text
        assert "first better: 603 rows" in text
        heights = [p.get_data().values for p in ax.patches]
        np.testing.assert_allclose(heights[0] + heights[1], [5, 4, 3, -2, -6])
        assert ax.get_xlim()[1] == 5

    def test_rows_are_named_by_the_model_that_predicts_them_better(self):
        first, second = fake_loo([-1.0, -9.0, -3.0, -2.0, -5.0]), fake_loo([-4.0, -1.0, -3.5, -2.0, -1.0])
        text = said(check(plots.pointwise_loo(first, second, names=("naive", "averaged"))))
        assert "naive better: 2 rows, most 0, 2" in text
        assert "averaged better: 2 rows, most 1, 4" in text
        assert "-8.50 ±" in text
        assert "misleads" not in text

    def test_below_four_nats_the_error_misleads(self):
        assert "misleads" in said(plots.pointwise_loo(fake_loo([-1.0, -2.0]), fake_loo([-3.0, -3.9])))
        assert "misleads" not in said(plots.pointwise_loo(fake_loo([-1.0, -2.0]), fake_loo([-3.0, -4.1])))

    def test_there_is_no_total_where_a_row_was_impossible(self):
        text = said(check(plots.pointwise_loo(fake_loo([-1.0, -np.inf, -2.0]), fake_loo([-3.0, -3.0, -1.0]))))
        assert "No total: 1 " in text
        assert "±" not in text

    def test_other_rows_are_refused(self):
        first = fake_loo([-1.0, -2.0, -3.0])
        refused("different rows: 3 and 2 of them", plots.pointwise_loo, first, fake_loo([-1.0, -2.0]))
        with pytest.raises(ValueError, match="labels differ from row 1 on"):
            plots.pointwise_loo(first, fake_loo([-1.0, -2.0, -3.0], label=[0, 1, 0]))
        with pytest.raises(ValueError, match="weights differ from row 2 on"):
            plots.pointwise_loo(first, fake_loo([-1.0, -2.0, -3.0], weight=[1, 1, 2]))
        other = replace(first, classes=np.array(["no", "yes"]))
        refused("classes", plots.pointwise_loo, first, other)
        refused("kind='both'", plots.pointwise_loo, first, first, kind="both")
        refused("two different names", plots.pointwise_loo, first, first, names=("a", "a"))


class TestPrequentialFigure:
    def test_differences_and_their_end(self, two):
        one, other, X, y = two
        first, second = bnb.prequential(one, X, y), bnb.prequential(other, X, y)
        ax = check(plots.prequential(first, second, names=("naive Bayes", f"{LONG} averaged")))
        line, end = ax.lines[0].get_xydata(), ax.lines[1].get_xydata()
        np.testing.assert_array_equal(line[:, 0], first.sizes)
        np.testing.assert_allclose(line[:, 1], first.log_evidence - second.log_evidence)
        factor = bnb.bayes_factor(one, other).log
        np.testing.assert_allclose(end, [[len(y), factor]], rtol=0, atol=1e-9 * abs(one.log_evidence_))
        winner = "naive Bayes" if factor > 0 else "an expression"
        assert f"log Bayes factor: {abs(factor):.2f} nats for {winner}" in said(ax)

    @pytest.mark.parametrize("n", [2, 20, 200])
    def test_priors_from_the_data_are_told(self, n):
        rng = np.random.default_rng(n)
        X, y = rng.normal(size=(n, 2)), np.arange(n) % 2
        first, second = (bnb.prequential(GaussianNB(prior=p).fit(X, y), X, y) for p in ("pooled", "within"))
        assert "prior derived from these data" in said(check(plots.prequential(first, second)))

    def test_what_cannot_be_compared_is_refused(self, two):
        one, other, X, y = two
        first, second = bnb.prequential(one, X, y), bnb.prequential(other, X, y)
        order = np.argsort(y, kind="stable")
        refused("labels differ from row", plots.prequential, first, bnb.prequential(other, X.iloc[order], y[order]))
        refused("same `points`", plots.prequential, first, bnb.prequential(other, X, y, points=7))
        with pytest.raises(ValueError, match="different encodings are not comparable"):
            plots.prequential(first, bnb.prequential(CategoricalNB().fit(X, y), X, y))
        improper = BernoulliNB(alpha=0.0).fit(X, y)
        refused("evidence is zero", plots.prequential, first, bnb.prequential(improper, X, y))
        refused("two different names", plots.prequential, first, second, names=("a", "b", "c"))
