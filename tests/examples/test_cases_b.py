"""Functions of the examples on missing tests and a daily filter, against laws and calculations by hand."""

import numpy as np
import pandas as pd
import pytest

import bayesnb as bnb
from examples import daily_filter, medical_tests
from examples.medical_tests import CLASSES, LOSS, WORLDS, simulate

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

    def test_promises_are_kept_where_the_model_holds(self, clinic):
        nb, _, patients = clinic
        chosen = medical_tests.recommended(nb, patients.seen)
        found = medical_tests.told(nb, patients.seen, patients, chosen)
        for name in ("entropy", "log loss"):
            difference = found[name] - found["promised"]
            assert abs(difference.mean()) < 4 * difference.sem()

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
    def test_fading_day_by_day_is_a_weighted_fit(self, days):
        factor = 0.8
        texts = [text for day in days for text in day.texts]
        labels = np.concatenate([day.labels for day in days])
        weight = np.concatenate([np.full(len(d.texts), factor ** (len(days) - 1 - t)) for t, d in enumerate(days)])
        whole = bnb.MultinomialNB(alpha=daily_filter.ALPHA)
        whole.fit(daily_filter.WORDS.transform(texts), labels, sample_weight=weight)
        found = daily_filter.counted(days, factor).predict_log_proba(days[0].counts)
        np.testing.assert_allclose(found, whole.predict_log_proba(days[0].counts), atol=1e-9)

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
