"""The cases of taxonomy, record linkage and annotators: what their functions must give whatever the data."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

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


def test_words_are_those_that_a_sequence_holds():
    X = taxonomy.words([np.array([0, 1, 2, 3, 0, 1]), np.array([3, 3, 3])], k=2)
    letters = ["".join(map(str, own)) for own in ([0, 1, 2, 3, 0, 1], [3, 3, 3])]
    words = ["".join(map(str, pair)) for pair in itertools.product(range(4), repeat=2)]
    expected = [[float(word in own) for word in words] for own in letters]
    assert X.toarray().tolist() == expected


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


def test_it_is_the_classifier_of_wang_et_al_where_sequences_hold_equally_many_words():
    """(m_w + P_w) / (M + 1), and the sum of the P_w is the number of words but for the half that is added to each."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), [2, 3, 5, 9])
    X = np.zeros((len(y), 50))
    for row in X:
        row[rng.choice(50, 12, replace=False)] = 1.0
    share = (X.sum(axis=0) + 0.5) / (len(y) + 1.0)
    m = np.stack([X[y == c].sum(axis=0) for c in range(4)])
    theirs = np.log((m + share) / (np.bincount(y)[:, None] + 1.0))
    nb = taxonomy.classifier(sp.csr_matrix(X), y).fit(sp.csr_matrix(X), y)
    difference = nb.feature_log_prob_ - theirs
    spread = np.log((m.sum(axis=1) + share.sum()) / (np.bincount(y) + 1.0))
    np.testing.assert_allclose(difference, np.broadcast_to(-spread[:, None], difference.shape), atol=1e-10)
    assert np.ptp(spread) < 0.05


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


def test_shares_of_the_bootstrap_are_shares_of_the_repeats(reads, nb):
    few = reads.X_new[:5]
    shares = taxonomy.bootstrap(nb, few, repeats=8)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares * 8, np.round(shares * 8), atol=1e-9)


# -- record linkage ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("anna", "ana", True),
        ("anna", "anan", True),
        ("anna", "enna", True),
        ("anna", "annas", True),
        ("anna", "bnnb", False),
        ("anna", "ann a b", False),
        ("abcd", "badc", False),
        ("otto", "otot", True),
    ],
)
def test_near_is_one_edit(a, b, expected):
    assert record_linkage.near(a, b) is record_linkage.near(b, a) is expected


def test_fields_compare_as_they_are():
    a, b = pd.Series([1960, 1960, 1960, None], name="year"), pd.Series([1960, 1961, 1970, 1960], name="year")
    assert record_linkage.compared(a.astype(object), b.astype(object)).tolist() == ["agree", "near", "differ", None]


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


def test_distinct_rows_with_their_frequencies_are_the_rows():
    X = pd.DataFrame({"a": ["agree", None, "agree", "differ"], "b": ["near", "near", "near", None]}, dtype=object)
    rows, n = record_linkage.patterns(X)
    assert n.sum() == len(X)
    assert sorted(n) == [1, 1, 2]
    assert rows.isna().sum().sum() == 2


@pytest.fixture(scope="module")
def pairs() -> record_linkage.Pairs:
    return record_linkage.without_keys(record_linkage.simulate(0, 500)["surname"], "surname")


def test_two_classes_are_households_and_merged_fields_give_the_matches(pairs):
    wrong = record_linkage.report(pairs, 2)[2]
    mended = record_linkage.report(record_linkage.merged(pairs), 2)[2]
    assert wrong["right"] < 0.6
    assert wrong["stated"] > 0.9
    assert mended["right"] > 0.9
    assert mended["found"] > 0.9
    assert mended["log loss"] < wrong["log loss"] / 10


def test_merging_joins_what_is_seen_and_keeps_what_is_missing(pairs):
    X = record_linkage.merged(pairs).X
    assert (X["birthday"].isna() == (pairs.X["day"].isna() | pairs.X["month"].isna())).all()
    assert set(X.columns) == {*pairs.X.columns, "birthday", "address"} - {"day", "month", "street", "postcode"}


# -- annotators ----------------------------------------------------------------------------------


def test_a_vote_is_the_share_of_the_answers():
    X = pd.DataFrame([["none", "none", "mild"], [None, None, "severe"], [None] * 3], dtype=object)
    np.testing.assert_allclose(annotators.vote(X), [[2 / 3, 1 / 3, 0], [0, 0, 1], [1 / 3] * 3])


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


def test_of_copies_the_first_is_kept():
    X = annotators.simulate(0, copiers=annotators.COPIERS).X
    assert list(annotators.without_copies(X)) == list(annotators.annotators())
