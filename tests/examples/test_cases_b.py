"""The cases of missing tests and of a daily filter: what their functions say, against laws and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesnb as bnb
from examples import daily_filter, medical_tests
from examples.medical_tests import CLASSES, LOSS, TESTS, WORLDS, simulate

pytestmark = pytest.mark.slow("examples run as pages, too")

INDEPENDENT, SEVERITY = WORLDS["independent, by lot"], WORLDS["severity, by lot"]


@pytest.fixture(scope="module")
def clinic():
    learned, patients = simulate(800, INDEPENDENT, seed=0), simulate(800, INDEPENDENT, seed=1)
    return bnb.MixedNB(numbers="gaussian").fit(learned.seen, learned.y), learned, patients


class TestMedicalTests:
    def test_cells_given_the_disease_are_distributed_alike_in_all_worlds(self):
        n = 4000
        found = {name: simulate(n, world, seed=3) for name, world in WORLDS.items()}
        for disease in CLASSES:
            of_world = [patients.whole[patients.y == disease] for patients in found.values()]
            numbers = of_world[0].select_dtypes("number").columns
            for other in of_world[1:]:
                spread = of_world[0][numbers].std() * np.sqrt(1 / len(other) + 1 / len(of_world[0]))
                assert (abs(other[numbers].mean() - of_world[0][numbers].mean()) < 4 * spread).all()
                for cell in set(other.columns) - set(numbers):
                    shares = [own[cell].value_counts(normalize=True) for own in (of_world[0], other)]
                    assert abs(shares[0] - shares[1]).max() < 4 * np.sqrt(0.5 / min(len(other), len(of_world[0])))

    def test_what_is_seen_is_part_of_the_whole(self):
        patients = simulate(200, WORLDS["severity, doctors"], seed=0)
        assert patients.seen[TESTS].isna().any().all()
        pd.testing.assert_frame_equal(patients.seen.fillna(patients.whole), patients.whole)

    def test_promises_are_kept_where_the_model_holds(self, clinic):
        nb, _, patients = clinic
        chosen = medical_tests.recommended(nb, patients.seen)
        found = medical_tests.told(nb, patients.seen, patients, chosen)
        for name in ("entropy", "log loss"):
            difference = found[name] - found["promised"]
            assert abs(difference.mean()) < 4 * difference.sem()

    def test_a_recommended_test_promises_the_most(self, clinic):
        nb, _, patients = clinic
        best = medical_tests.recommended(nb, patients.seen)
        drawn = medical_tests.at_random(nb, patients.seen, np.random.default_rng(0))
        assert list(best["row"]) == list(drawn["row"])
        assert (best["value"] >= drawn["value"]).all()
        assert (best["value"] > drawn["value"]).any()

    def test_only_what_was_asked_is_answered(self, clinic):
        nb, _, patients = clinic
        chosen = medical_tests.recommended(nb, patients.seen)
        after = medical_tests.answered(patients.seen, patients.whole, chosen)
        more = after[TESTS].notna().sum(axis=1) - patients.seen[TESTS].notna().sum(axis=1)
        assert list(more[more > 0].index) == list(chosen["row"])
        assert more.max() == 1
        pd.testing.assert_frame_equal(after.fillna(patients.whole), patients.whole)

    def test_worth_is_what_decide_expects_to_save(self, clinic):
        nb, learned, patients = clinic
        X = patients.seen.assign(antigen=None).iloc[:30]
        found = medical_tests.worth(nb, X, "antigen", learned.seen)
        proba, levels = nb.predict_proba(X), ["negative", "positive"]
        table = bnb.parameter_table(nb)
        table = table[table["feature"] == "antigen"].pivot(index="class", columns="level", values="mean")
        share = proba @ table.loc[list(nb.classes_), levels].to_numpy()
        risks = [bnb.decide(nb, X.assign(antigen=level), LOSS, draws=10).risk for level in levels]
        expected = bnb.decide(nb, X, LOSS, draws=10).risk - (share * np.transpose(risks)).sum(axis=1)
        np.testing.assert_allclose(found, expected, atol=1e-9)
        assert found.min() > -1e-12

    def test_an_answer_that_changes_no_action_is_worth_nothing(self, clinic):
        nb, learned, patients = clinic
        one_action = LOSS.loc[["admit"]]
        for test in TESTS:
            X = patients.seen.assign(**{test: np.nan if test == "log crp" else None}).iloc[:20]
            found = medical_tests.worth(nb, X, test, learned.seen, one_action)
            # Of numbers the nodes stand for all but the tails.
            np.testing.assert_allclose(found, 0.0, atol=0.01 if test == "log crp" else 1e-9)

    def test_columns_of_orders_say_what_was_ordered(self):
        X = simulate(50, INDEPENDENT, seed=0).seen
        found = medical_tests.with_orders(X)
        assert list(found.columns) == [*X.columns, *(f"{test} ordered" for test in TESTS)]
        assert (found["xray ordered"] == X["xray"].notna()).all()

    def test_doctors_orders_move_the_stated_shares_and_columns_of_orders_mend_them(self):
        found = medical_tests.shares(["independent, doctors"]).loc["independent, doctors"]
        off = found.drop("observed").sub(found.loc["observed"]).abs()[["X-ray", "no X-ray"]]
        assert (off.loc["and orders"] < off.loc["cells alone"]).all()
        assert found.loc["cells alone", "no X-ray"] > found.loc["observed", "no X-ray"]
        assert found.loc["and orders", "log loss"] < found.loc["cells alone", "log loss"]

    def test_entropy_keeps_the_promise_and_the_log_loss_does_not_where_cells_depend_on_each_other(self):
        learned, patients = simulate(800, SEVERITY, seed=0), simulate(800, SEVERITY, seed=1)
        nb = bnb.MixedNB(numbers="gaussian").fit(learned.seen, learned.y)
        found = medical_tests.told(nb, patients.seen, patients, medical_tests.recommended(nb, patients.seen))
        entropy, loss = found["entropy"] - found["promised"], found["log loss"] - found["promised"]
        assert abs(entropy.mean()) < 4 * entropy.sem()
        assert loss.mean() < -2 * loss.sem()


@pytest.fixture(scope="module")
def days():
    return list(daily_filter.simulate(days=12, messages=30, seed=0))


class TestDailyFilter:
    def test_a_seed_gives_the_same_days(self, days):
        again = list(daily_filter.simulate(days=12, messages=30, seed=0))
        assert [day.texts for day in days] == [day.texts for day in again]
        assert all((a.labels == b.labels).all() for a, b in zip(days, again, strict=True))

    def test_fading_day_by_day_is_a_weighted_fit(self, days):
        factor = 0.8
        texts = [text for day in days for text in day.texts]
        labels = np.concatenate([day.labels for day in days])
        weight = np.concatenate([np.full(len(d.texts), factor ** (len(days) - 1 - t)) for t, d in enumerate(days)])
        whole = bnb.MultinomialNB(alpha=daily_filter.ALPHA)
        whole.fit(daily_filter.WORDS.transform(texts), labels, sample_weight=weight)
        np.testing.assert_allclose(
            daily_filter.counted(days, factor).predict_log_proba(days[0].counts),
            whole.predict_log_proba(days[0].counts),
            atol=1e-9,
        )

    def test_prequential_scores_are_of_fits_to_the_days_before(self, days):
        found = daily_filter.prequential(days[:4], 1.0)
        for t in (1, 2, 3):
            log_proba = daily_filter.counted(days[:t], 1.0).predict_log_proba(days[t].counts)
            truth = (days[t].labels == "spam").astype(int)
            assert found.at[t, "log loss"] == pytest.approx(-log_proba[np.arange(len(truth)), truth].mean())

    def test_the_leader_has_seen_only_the_days_before(self):
        losses = pd.DataFrame({1.0: [1.0, 1.0, 9.0], 0.9: [2.0, 0.5, 0.0], 0.5: [9.0, 0.0, 0.0]}, index=[1, 2, 3])
        assert daily_filter.leader(losses).to_dict() == {1: 1.0, 2: 1.0, 3: 1.0}
        losses.loc[4] = 0.0
        assert daily_filter.leader(losses)[4] == 0.9
        assert daily_filter.followed(losses).to_dict() == {1: 1.0, 2: 1.0, 3: 9.0, 4: 0.0}

    def test_a_mistake_that_is_put_right_leaves_no_trace(self, days):
        found = daily_filter.put_right(days, 0.9, wrong_on=5, found_on=8)
        assert found["before"] > 0.01
        assert found["after"] < 1e-9

    def test_a_filter_of_files_is_the_filter(self, days, tmp_path):
        read = daily_filter.evenings(days, 0.9, tmp_path / "filter.safetensors")
        own = daily_filter.counted(days, 0.9)
        assert (read.predict_log_proba(days[0].counts) == own.predict_log_proba(days[0].counts)).all()

    def test_the_table_has_a_line_a_factor(self, days):
        runs = {f: daily_filter.prequential(days, f, shares=True) for f in (1.0, 0.5)}
        found = daily_filter.table(runs, first=6)
        assert list(found.index) == [1.0, 0.5]
        assert found.at[0.5, "half-life"] == pytest.approx(1.0)
        assert found.at[1.0, "later days"] == pytest.approx(runs[1.0].loc[6:, "log loss"].mean())
        run = runs[1.0]
        assert ((run["lower"] <= run["estimated"]) & (run["estimated"] <= run["upper"])).all()
