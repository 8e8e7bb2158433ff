"""Functions of the examples on taxonomy, record linkage and annotators, against laws and simulations."""

import numpy as np
import pandas as pd
import pytest

import bayesnb as bnb
from examples import annotators, record_linkage, taxonomy

pytestmark = pytest.mark.slow("examples run as pages, too")

SMALL = (2, 2, 1, 2, 3)


@pytest.fixture(scope="module")
def reads() -> taxonomy.Reads:
    return taxonomy.simulate(1, SMALL)


@pytest.fixture(scope="module")
def nb(reads):
    return taxonomy.classifier(reads.X, reads.y).fit(reads.X, reads.y)


# -- taxonomy ------------------------------------------------------------------------------------


def test_confidence_up_the_tree_is_a_sum_of_class_probabilities(reads, nb):
    proba = nb.predict_proba(reads.X_new)
    before = None
    for rank in reversed(taxonomy.RANKS):
        nodes, above = taxonomy.up_the_tree(proba, nb.classes_, reads.lineage, rank)
        of_class = reads.lineage[nb.classes_, taxonomy.RANKS.index(rank)]
        expected = np.stack([proba[:, of_class == node].sum(axis=1) for node in nodes], axis=1)
        np.testing.assert_allclose(above, expected, atol=1e-12)
        np.testing.assert_allclose(above.sum(axis=1), 1.0)
        if before is not None:  # a node is at least as probable as the most probable one below it
            assert (above.max(axis=1) >= before - 1e-12).all()
        before = above.max(axis=1)


def test_unknown_genera_are_no_class_and_their_relatives_are(reads, nb):
    unknown = np.unique(reads.y_new[~reads.known])
    assert len(unknown)
    assert not np.isin(unknown, nb.classes_).any()
    assert np.isin(np.unique(reads.y_new[reads.known]), nb.classes_).all()


def test_the_tempered_confidence_of_unknown_genera_falls_at_genus_and_less_at_family(reads, nb):
    weighted = bnb.WeightedNB(nb, weights="temperature").fit(reads.X, reads.y)
    shares = {"plain": nb.predict_proba(reads.X_new), "temperature": weighted.predict_proba(reads.X_new)}
    table = taxonomy.by_rank(shares, nb.classes_, reads)
    unknown = table.loc["unknown"]
    assert 0 < weighted.temperature_ < 0.3
    assert unknown.loc["genus", "accuracy"] == 0
    assert unknown.loc["genus", "plain"] > 0.9
    assert unknown.loc["genus", "temperature"] < unknown.loc["family", "temperature"]
    assert unknown.loc["genus", "temperature"] < table.loc["known"].loc["genus", "temperature"]


# -- record linkage ------------------------------------------------------------------------------


def test_m_and_u_are_recovered_from_pairs_of_the_model():
    """Patterns drawn with fields independent given the class; classes are told to nobody."""
    rng = np.random.default_rng(0)
    n, m, u = 8000, [0.9, 0.85, 0.95, 0.8, 0.9], [0.05, 0.1, 0.02, 0.2, 0.1]
    match = rng.random(n) < 0.08
    agree = rng.random((n, 5)) < np.where(match[:, None], m, u)
    X = pd.DataFrame(np.where(agree, "agree", "differ").astype(object), columns=["first name", "b", "c", "d", "e"])
    X = X.where(rng.random(X.shape) > 0.1, None)
    kind = np.where(match, "match", "other")
    mixture, c, found = record_linkage.report(record_linkage.Pairs(X, kind), 2)
    table = record_linkage.weights(mixture.estimator_, record_linkage.Pairs(X, kind), c).xs("agree", level="level")
    np.testing.assert_allclose(table["m"], m, atol=0.05)
    np.testing.assert_allclose(table["u"], u, atol=0.02)
    np.testing.assert_allclose(mixture.weights_[c], 0.08, atol=0.01)
    assert abs(found["stated"] - found["right"]) < 0.03  # the model holds


# -- annotators ----------------------------------------------------------------------------------


def test_tables_of_confusion_are_distributions_and_found_where_the_model_holds():
    answers = annotators.simulate(0, hard=0.0, n=1500)
    mixture = annotators.dawid_skene(answers.X)
    for name, table in annotators.tables(mixture, answers.X).items():
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
        np.testing.assert_allclose(table, annotators.annotators()[name], atol=0.12)
    scores = annotators.outcome(annotators.consensus(mixture, answers.X), answers.y)
    assert abs(scores["stated"] - scores["accuracy"]) < 0.04


def test_em_beats_the_vote_and_copies_deceive_it():
    gold = np.arange(0, annotators.ITEMS, 15)
    plain = annotators.compare(annotators.simulate(0), gold)
    copied = annotators.compare(annotators.simulate(0, copiers=annotators.COPIERS), gold)
    assert plain.loc["EM", "accuracy"] > plain.loc["vote", "accuracy"]
    assert copied.loc["EM", "accuracy"] < copied.loc["vote", "accuracy"]
    assert copied.loc["EM", "stated"] > plain.loc["EM", "stated"]
    assert copied.loc["EM, copies left out", "accuracy"] > copied.loc["vote", "accuracy"]


@pytest.mark.filterwarnings("ignore:Gibbs")
def test_intervals_of_confusion_hold_the_truth_where_annotators_are_independent_and_not_where_they_copy():
    covered = {}
    for copiers in (0, annotators.COPIERS):
        answers = annotators.simulate(0, copiers=copiers)
        mixture = annotators.dawid_skene(answers.X)
        data = bnb.sample_latent(mixture, answers.X, draws=500, progress=False)
        found = annotators.skill_intervals(mixture, data, answers)
        assert ((found["lower"] < found["right"]) & (found["right"] < found["upper"])).all()
        covered[copiers] = found["cells covered"].mean()
    assert covered[0] > 0.8
    assert covered[annotators.COPIERS] < 0.4


def test_actions_of_least_cost_have_the_thresholds_of_bayes():
    done = record_linkage.least_cost(np.array([0.0, 0.09, 0.11, 0.94, 0.96, 1.0]))
    assert done["action"].tolist() == ["leave", "leave", "look", "look", "link", "link"]


def test_weights_have_intervals_that_hold_those_of_the_model():
    rng = np.random.default_rng(1)
    match = rng.random(6000) < 0.1
    agree = rng.random((6000, 5)) < np.where(match[:, None], 0.9, 0.1)
    X = pd.DataFrame(np.where(agree, "agree", "differ").astype(object), columns=["first name", "b", "c", "d", "e"])
    pairs = record_linkage.Pairs(X, np.where(match, "match", "other"))
    mixture, c, _ = record_linkage.report(pairs, 2)
    rows, n = record_linkage.patterns(X)
    data = bnb.sample_latent(mixture, rows, sample_weight=n, progress=False)
    found = record_linkage.weight_intervals(data, pairs, mixture.estimator_, c).xs("agree", level="level")
    assert ((found["lower"] < np.log2(9)) & (np.log2(9) < found["upper"])).sum() >= 4
    proba = record_linkage.averaged_match(data, X, c)
    np.testing.assert_allclose(proba, mixture.predict_proba(X)[:, c], atol=0.05)
