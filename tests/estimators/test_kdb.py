"""KDB against Sahami's algorithm in loops, the least held-out loss, and refits; bad input."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.metrics import mutual_info_score

import bayesnb as bnb
from bayesnb.estimators import structures
from bayesnb.fitted import counting
from bayesnb.networks import class_information, k_dependence, mutual_information
from bayesnb.weights.halves import random_halves
from tests.estimators.cases import state
from tests.estimators.contexts import Contexts
from tests.estimators.networks import CLASSES, DECLARED, HOLES, SIZES, X, Y, log_proba, table
from tests.raises import refused
from tests.strategies import counted, variants

WEIGHT = np.random.default_rng(1).choice([0.5, 1.0, 2.0], 40)


def contexts(parents):
    """The network of these columns, {column: parents}, among four."""
    return Contexts([tuple(own) for own in DECLARED], parents, [1.0] * 4, [1.0, 1.0], CLASSES[:2])


def nodes(nb):
    """Positions of the columns of a network, in their order, each with those of its parents."""
    names = [own if isinstance(own, tuple) else (own,) if own else () for own in map(nb.parents_.get, nb.order_)]
    return {int(name): tuple(map(int, own)) for name, own in zip(nb.order_, names, strict=True)}


# -- arcs --------------------------------------------------------------------------------------------


def sahami(relevance, dependence, values, k, most):
    """The columns by relevance; of each the k before it of most dependence, one by one, if its table has room."""
    order = sorted(range(len(values)), key=lambda j: (-relevance[j], j))
    found = []
    for i, j in enumerate(order):
        parents, cells = [], values[j]
        for p in sorted(order[:i], key=lambda p: (-dependence[j][p], order.index(p))):
            if len(parents) < k and cells * values[p] <= most:
                parents.append(p)
                cells *= values[p]
        found.append((j, *parents))
    return tuple(found)


@given(
    relevance=arrays(float, 6, elements=st.integers(0, 4).map(float)),
    dependence=arrays(float, (6, 6), elements=st.integers(0, 4).map(float)),
    values=arrays(int, 6, elements=st.integers(2, 6)),
    k=st.integers(0, 6),
    most=st.integers(2, 200),
)
def test_arcs_are_those_of_the_book_whatever_ties_and_room_there_are(relevance, dependence, values, k, most):
    found = k_dependence(relevance, dependence, values, k, most)
    assert found == sahami(relevance, dependence, values.tolist(), k, most)


def test_information_is_that_of_weighted_frequencies():
    nb = bnb.AODE(categories=DECLARED).fit(HOLES, Y, 2 * WEIGHT)
    _, counts = nb.pair_counts()
    times = np.repeat(np.arange(40), (2 * WEIGHT).astype(int))  # rows as often as they weigh
    rows, label = HOLES[times], Y[times]
    found, pairs = class_information(counts, np.array(SIZES)), mutual_information(counts, np.array(SIZES))
    for j in range(4):
        own = np.array([value is not None for value in rows[:, j]])
        assert found[j] == pytest.approx(mutual_info_score(rows[own, j].tolist(), label[own]), abs=1e-12)
    for i, j in itertools.combinations(range(4), 2):
        both = np.array([a is not None and b is not None for a, b in rows[:, [i, j]]])
        share = [both & (label == c) for c in CLASSES[:2]]
        expected = [at.sum() * mutual_info_score(rows[at, i].tolist(), rows[at, j].tolist()) for at in share]
        assert pairs[i, j] == pytest.approx(sum(expected) / both.sum(), abs=1e-12)
    np.testing.assert_allclose(class_information(np.zeros((2, 10, 10)), np.array(SIZES)), 0.0)


def test_a_parent_is_passed_over_where_a_table_would_be_too_large(monkeypatch):
    monkeypatch.setattr(structures, "_MOST_CELLS", 12)  # with a missing parent as a value: (3 + 1)(2 + 1) = 12
    nb = bnb.KDB(3, None, categories=DECLARED).fit(X, Y)
    for j, parents in nodes(nb).items():
        assert np.prod([SIZES[j] + 1, *(SIZES[p] + 1 for p in parents)]) <= 12 or not parents
    assert nb.k_ == 1


either = pytest.mark.parametrize("rows", [X, HOLES], ids=["complete", "missing"])


def gain(x, y, n_values):
    """N I(x; y) of the rows that have x, less half its degrees of freedom."""
    own = [i for i, v in enumerate(x) if v is not None]
    return len(own) * mutual_info_score([x[i] for i in own], [y[i] for i in own]) - (n_values - 1) / 2


def by_the_book(rows, labels, k):
    """Sahami's algorithm, in loops."""
    columns, found = rows.T, {}
    order = sorted(range(len(columns)), key=lambda j: -gain(columns[j], labels, SIZES[j]))
    for rank, j in enumerate(order):

        def dependence(p, j=j):
            total = 0.0
            for c in CLASSES[:2]:
                both = [i for i in np.flatnonzero(labels == c) if rows[i, j] is not None and rows[i, p] is not None]
                total += len(both) * mutual_info_score(rows[both, j].tolist(), rows[both, p].tolist())
            return total - 2 * (SIZES[j] - 1) * (SIZES[p] - 1) / 2

        found[str(j)] = tuple(str(p) for p in sorted(order[:rank], key=lambda p: -dependence(p))[:k])
    return found


@variants("k", [1, 2, 4])
@either
def test_arcs_are_those_of_the_book(k, rows):
    expected = by_the_book(rows, Y, k)
    nb = bnb.KDB(k, None, categories=DECLARED).fit(rows, Y)
    assert list(nb.order_) == list(expected)
    one = {name: own if len(own) > 1 else own[0] if own else None for name, own in expected.items()}
    assert nb.parents_ == one
    for pairs in (bnb.AODE(), bnb.AODE(tables="context"), bnb.TreeAveragedNB()):
        assert bnb.KDB.parents_from(pairs.set_params(categories=DECLARED).fit(rows, Y), k) == expected


@pytest.mark.slow("a second view of what quick tests see")
def test_dependence_that_naive_bayes_cannot_see_is_found():
    rows = np.random.default_rng(0).integers(0, 2, (200, 4))
    label = rows[:, 0] ^ rows[:, 2]
    nb = bnb.KDB().fit(rows, label)
    assert nb.score(rows, label) == 1.0
    assert set(nb.order_) >= {"0", "2"}
    assert bnb.WeightedNB(bnb.KDB()).fit(rows, label).score(rows, label) == 1.0


def test_free_texts_have_no_arcs():
    """A column of more than 1,000 levels is last in the order, and no parent."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (2_400, 2)).astype(object)
    X = pd.DataFrame({"text": [f"{i % 1_200}" + "a" for i in range(2_400)], "a": x[:, 0], "b": x[:, 1]})
    y = (x[:, 0] ^ x[:, 1]).astype(int)
    for nb in (bnb.KDB(2, None), bnb.TAN()):
        nb.fit(X, y)
        assert nb.parents_["text"] is None
        assert "text" not in (nb.parents_["a"], nb.parents_["b"])
        assert len(nb.categories_[0]) == 1_200
        assert nb.score(X, y) == 1.0
    assert bnb.KDB(2, None).fit(X, y).order_[-1] == "text"
    assert bnb.KDB(2, 2).fit(X, y).order_ == bnb.KDB(2, None).fit(X[["a", "b"]], y).order_
    refused("more than 1,000 levels", bnb.TAN(root="text").fit, X, y)


# -- how many ----------------------------------------------------------------------------------------


def brute_losses(rows, labels, weight, most):
    """(K, F) loss of the rows of one half, of networks of up to so many parents and columns that the other has."""
    found, label = np.zeros((most + 1, 4)), np.searchsorted(CLASSES[:2], labels)
    for half in random_halves(label, 3, seed=0):
        for own, scored in ((half, ~half), (~half, half)):
            network = nodes(bnb.KDB(2, None, categories=DECLARED).fit(rows, labels, weight * own))
            for k in range(most + 1):
                brute = contexts({j: parents[:k] for j, parents in network.items()})
                tables = brute.tables(rows, labels, weight * own)
                for i in np.flatnonzero(scored):
                    cells = [[brute.log_cell(tables, c, rows[i], j) for j in network] for c in CLASSES[:2]]
                    joint = brute.log_class(tables)[:, None] + np.cumsum(cells, axis=1)
                    found[k] -= weight[i] * log_proba(joint.T)[:, label[i]]
    return found


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_k_and_columns_have_the_least_loss_of_the_other_half(seed, monkeypatch):
    monkeypatch.setattr(structures, "_MOST_PARENTS", 2)
    monkeypatch.setattr(structures, "_CHUNK", 2 * 4 * 7)  # seven rows at a time
    rng = np.random.default_rng(seed)
    rows, labels = table(24, seed + 10)
    rows[rng.random(rows.shape) < 0.1] = None
    weight = rng.choice([0.5, 1.0, 2.0], 24)
    network = nodes(bnb.KDB(2, None, categories=DECLARED).fit(rows, labels, weight))
    losses = brute_losses(rows, labels, weight, 2)

    def check(nb, part, first=0):
        nb.set_params(categories=DECLARED).fit(rows, labels, weight)
        # The fewest parents within .001 nats a row of the least loss; then the number of columns.
        least = part.min(axis=1)
        k = int(np.argmax(least <= least.min() + 1e-3 * 3 * weight.sum()))
        n = 1 + int(np.argmin(part[k])) if part.shape[1] == 4 else (part.shape[1] and nb.max_features) or 4
        assert {j: own[: k + first] for j, own in list(network.items())[:n]} == nodes(nb)

    check(bnb.KDB(), losses)
    check(bnb.KDB(max_features=None), losses[:, -1:])
    check(bnb.KDB(max_features=3), losses[:, 2:3])
    check(bnb.KDB(1), losses[1:2], first=1)
    check(bnb.KDB(0), losses[:1])


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize(("options", "n"), [({"class_alpha": 0.0}, 1), ({"class_prior": [0.0, 0.5, 0.5]}, 4)], ids=str)
def test_labels_that_are_impossible_in_every_network_do_not_choose(options, n):
    rows = np.random.default_rng(0).integers(0, 2, (120, 3))
    label = np.array(CLASSES)[1 + (rows[:, 0] ^ rows[:, 1])]
    label[:n] = "ash"
    nb = bnb.KDB(**options).fit(rows, label)
    assert nb.k_ >= 1
    assert nb.score(rows[n:], label[n:]) == 1.0


# -- rows --------------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_further_rows_are_counted_for_the_network_that_there_is():
    rows, labels = table(48, 4, n_classes=3)
    rows[:16][rows[:16] == "w"] = "v"
    labels[:32][labels[:32] == "oak"] = "elm"
    rows[5, 2], rows[40, 0] = None, "z"
    nb, first = bnb.KDB(2, 3), slice(0, 16)
    with pytest.raises(AttributeError) as error:
        nb.partial_fit(rows[first], labels[first])
    assert "KDB learns the network from the rows passed to fit" in f"{error.value} {error.value.__cause__}"
    network = nb.fit(rows[first], labels[first]).parents_
    kept = sorted(map(int, nb.order_))
    blank = bnb.NetworkNB({kept.index(j): [kept.index(p) for p in own] for j, own in nodes(nb).items()})
    blank.set_params(tables="context")
    for a, b in itertools.pairwise((16, 32, 48)):
        nb.partial_fit(rows[a:b], labels[a:b], classes=np.unique(labels[a:b]))
    assert nb.parents_ == network
    whole = clone(blank).fit(rows[:, kept], labels)
    np.testing.assert_allclose(nb.predict_proba(rows), whole.predict_proba(rows[:, kept]), rtol=1e-11)
    nb.forget(rows[32:], labels[32:])
    less = clone(blank).partial_fit(rows[:32, kept], labels[:32], CLASSES)
    np.testing.assert_allclose(nb.predict_proba(rows[:32]), less.predict_proba(rows[:32, kept]), rtol=1e-11)
    other = bnb.KDB(1, 3).fit(rows[first], labels[first])
    refused("structure", counting.merge, counted(nb), counted(other))
    refused("needs partial_fit", bnb.fit_stream, bnb.KDB(), [(rows, labels)], progress=False, error=TypeError)


# -- columns -----------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_numbers_are_bins_and_gaussian_columns_are_never_left_out():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "r": rng.normal(size=40) + 3 * (Y == "ash")})
    nb = bnb.KDB(2, None).fit(frame, Y)
    cut = frame.assign(r=np.searchsorted(nb.edges_["r"], frame["r"], side="left").astype(str))
    cells = [str(i) for i in range(len(nb.edges_["r"]) + 1)]
    other = bnb.KDB(2, None, categories=[["u", "v"], ["u", "v", "w"], cells]).fit(cut, Y)
    assert nb.parents_ == other.parents_
    joint = other.predict_joint_log_proba(cut) + bnb.MixedNB().fit(frame[["r"]], Y).predict_joint_log_proba(
        frame[["r"]]
    )
    alone = bnb.CategoricalNB(alpha=1 / len(cells), categories=[cells]).fit(cut[["r"]], Y)
    joint -= alone.predict_joint_log_proba(cut[["r"]])
    np.testing.assert_allclose(nb.predict_joint_log_proba(frame), joint, rtol=0, atol=1e-10)
    beside, levels = bnb.KDB(1, 1, numbers="gaussian").fit(frame, Y), bnb.KDB(1, 1).fit(frame[["a", "b"]], Y)
    assert beside.parents_ == {**levels.parents_, "r": None}


# -- citizens ----------------------------------------------------------------------------------------


BAD = {
    "negative k": ({"k": -1}, "k=-1"),
    "k in words": ({"k": "many"}, "k='many'"),
    "no columns": ({"max_features": 0}, "max_features=0"),
    "columns in words": ({"max_features": "all"}, "max_features='all'"),
    "no prior": ({"alpha": 0.0}, "alpha contains 0"),
    "prior of levels": ({"alpha": np.ones((2, 10))}, "total concentration of all levels of a column in each context"),
    "numbers": ({"numbers": "cut"}, "numbers='cut'"),
}


@variants(("options", "match"), BAD.values(), ids=BAD)
def test_bad_hyperparameters_are_refused_before_and_after_fit(options, match):
    blank = bnb.KDB(**options)
    refused(match, blank.fit, X, Y)
    assert not hasattr(blank, "classes_")
    refused(match, bnb.WeightedNB(blank).fit, X, Y)
    nb = bnb.KDB(2, 3).fit(X, Y)
    before = state(nb)
    refused(match, nb.set_params(**options).fit, HOLES, Y)
    assert state(nb.set_params(**{name: getattr(bnb.KDB(2, 3), name) for name in options})) == before


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.filterwarnings("ignore:KDB:UserWarning")
@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (np.full((40, 3), "u", object), Y),
        (np.full((40, 3), None), Y),
        (X[:, :1], Y),
        (X, np.append(Y[:-1], "alone")),
        (X, np.full(40, "only")),
        (X[:1], Y[:1]),
        (X[:2], np.array(["ash", "elm"])),
    ],
    ids=["constant", "missing", "one column", "a class of one row", "one class", "one row", "a row a class"],
)
def test_next_to_nothing_is_fitted(rows, labels):
    nb = bnb.KDB().fit(rows, labels)
    found = nb.predict_proba(rows)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert 1 <= len(nb.order_) <= rows.shape[1]
    if (rows == rows[:1]).all() and len(set(labels)) == 2 and len(rows) > 2:
        np.testing.assert_allclose(found, 0.5)
        assert nb.k_ == 0
    weighted = bnb.WeightedNB(bnb.KDB()).fit(rows, labels)
    np.testing.assert_allclose(weighted.predict_proba(rows).sum(axis=1), 1.0, rtol=1e-12)


def test_parts_of_rows_have_the_densities_of_numbers_that_all_rows_leave_out():
    """A network of all columns, and, of one column, the same whether or not the fit to all rows has chosen it."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    x = rng.normal(size=(200, 4)) * [1.0, 1.0, 9.0, 1.0] + np.outer(y, [2.0, 0.0, 0.0, 0.0])
    nb = bnb.KDB().fit(x, y)
    assert len(nb.order_) < 4
    every = bnb.KDB(nb.k_, max_features=None).fit(x, y)
    np.testing.assert_allclose(nb.fit_parts(x, y)(np.ones(200)).predict_proba(x), every.predict_proba(x))
    weight = np.where((x[:, 1] > 0) == (y > 0), 1.0, 0.0)
    (best,) = bnb.KDB(0, max_features=1).fit(x, y).fit_parts(x, y)(weight).order_
    assert best == "1"


def test_no_column_has_parents_where_pairs_do_not_fit_into_memory(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (80, 20)), rng.integers(0, 2, 80)
    X[:, 1] = X[:, 0]
    expected = bnb.WeightedNB(bnb.KDB(k=0, max_features=None)).fit(X, y)
    monkeypatch.setattr("bayesnb._util.arrays.MOST_COUNTS", 2 * 60 * 60 - 1)
    with pytest.warns(
        UserWarning, match="k='auto' is 0, so that no column has parents. Counts of the pairs of 60 levels"
    ):
        nb = bnb.WeightedNB(bnb.KDB(max_features=None)).fit(X, y)
    np.testing.assert_allclose(nb.predict_proba(X), expected.predict_proba(X), rtol=1e-12)
    assert nb.estimator_.k_ == 0
    for wanted in (bnb.KDB(k=1), bnb.KDB(k=0, max_features=3), bnb.TAN()):
        refused("Counts of the pairs of 60 levels in 2 classes would take", wanted.fit, X, y)
