"""Scores of arcs and learned trees, against brute force over all trees and forests."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import mutual_info_score

import bayesnb as bnb
from bayesnb import networks as structure
from bayesnb._util import arrays as pairs
from tests.estimators.networks import Brute, problems, table
from tests.raises import refused
from tests.strategies import thorough


def pair_counts(X, y, weight, levels, classes):
    """(C, L, L) by loops; the diagonal blocks are of single levels."""
    at = {(j, v): i for i, (j, v) in enumerate((j, v) for j, own in enumerate(levels) for v in own)}
    found = np.zeros((len(classes), len(at), len(at)))
    for row, label, w in zip(X, y, weight, strict=True):
        seen = [at[j, v] for j, v in enumerate(row) if v is not None]
        for a, b in itertools.product(seen, repeat=2):
            found[classes.index(label), a, b] += w
    return found


def information(X, y, weight, i, j):
    """I(x_i; x_j | class) by its definition, over the rows that have both."""
    keep = [k for k, row in enumerate(X) if row[i] is not None and row[j] is not None]
    total = sum(weight[k] for k in keep)
    joint, first, second, of_class = {}, {}, {}, {}
    for k in keep:
        a, b, c, w = X[k][i], X[k][j], y[k], weight[k] / total
        for found, key in ((joint, (a, b, c)), (first, (a, c)), (second, (b, c)), (of_class, c)):
            found[key] = found.get(key, 0.0) + w
    return sum(p * math.log(p * of_class[c] / (first[a, c] * second[b, c])) for (a, b, c), p in joint.items())


def prepared(problem):
    """Counts as the package has them, of the rows of a problem."""
    nb = bnb.NetworkNB(categories=problem.options["categories"])
    nb.partial_fit(problem.X, problem.y, list(problem.brute.classes))
    columns, rows = nb.encoding_.blocks[0], nb.fitted_.encode(problem.X)[0][0]
    label = np.array([problem.brute.classes.index(v) for v in problem.y], np.int32)
    return columns.base, rows.base, label


@given(problems(missing=True, parents={}), st.booleans())
def test_counts_of_pairs_and_what_arcs_are_worth(problem, fractional):
    weight = problem.weight * (0.37 if fractional else 1)
    columns, rows, label = prepared(problem)
    levels, classes = problem.brute.levels, problem.brute.classes
    counts = structure.count_level_pairs(columns, rows, label, weight, 3)
    np.testing.assert_allclose(
        counts, pair_counts(problem.X, problem.y, weight, levels, classes), rtol=1e-12, atol=1e-13
    )
    found = structure.mutual_information(counts, columns.sizes())
    alpha = np.repeat(problem.brute.alpha, columns.sizes()) * np.ones((3, 1))
    factors = structure.log_bayes_factors(counts, columns.sizes(), alpha)
    np.testing.assert_allclose(found, found.T, rtol=0, atol=1e-12)
    for i, j in itertools.permutations(range(4), 2):
        assert found[i, j] == pytest.approx(information(problem.X, problem.y, weight, i, j), abs=1e-12)
        both = [row[i] is not None and row[j] is not None for row in problem.X]
        evidences = []
        for parents, values in (({j: (i,)}, len(levels[i])), ({}, 1)):
            own = [a / values if k == j else a for k, a in enumerate(problem.brute.alpha)]
            brute = Brute(levels, parents, own, problem.brute.class_alpha, classes)
            evidences.append(brute.evidence(brute.count(problem.X[both], problem.y[both], weight[both])))
        assert factors[i, j] == pytest.approx(evidences[0] - evidences[1], abs=1e-9)


def test_mutual_information_of_one_class_is_scikit_learns():
    X, y = table(60, 0)
    nb = bnb.NetworkNB().fit(X, y)
    columns, rows = nb.encoding_.blocks[0], nb.fitted_.encode(X)[0][0]
    counts = structure.count_level_pairs(columns.base, rows.base, np.zeros(60, np.int32), np.ones(60), 1)
    found = structure.mutual_information(counts, columns.base.sizes())
    for i, j in itertools.combinations(range(4), 2):
        assert found[i, j] == pytest.approx(mutual_info_score(X[:, i], X[:, j]), abs=1e-12)


# -- trees -------------------------------------------------------------------------------------------

weights = st.integers(2, 5).flatmap(
    lambda n: arrays(float, (n, n), elements=st.integers(-40, 40).map(lambda k: k / 8), fill=st.nothing())
)


def arcs_of(nodes):
    return [(parent, child) for child, *parents in nodes for parent in parents]


def is_forest(nodes, n):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(arcs_of(nodes))
    return [child for child, *_ in nodes] == list(range(n)) and nx.is_branching(graph)


@given(weights, st.data())
def test_no_tree_weighs_more(weight, data):
    n = len(weight)
    weight = np.abs(weight + weight.T)
    root = data.draw(st.integers(0, n - 1))
    nodes = structure.maximum_spanning_tree(weight, root)
    assert is_forest(nodes, n)
    assert nodes[root] == (root,)
    assert len(arcs_of(nodes)) == n - 1
    sequences = itertools.product(range(n), repeat=n - 2) if n > 2 else [()]
    trees = (nx.from_prufer_sequence(list(s)).edges if n > 2 else [(0, 1)] for s in sequences)
    best = max(sum(weight[i, j] for i, j in tree) for tree in trees)
    assert sum(weight[i, j] for i, j in arcs_of(nodes)) == pytest.approx(best, abs=1e-12)


@given(weights.filter(lambda w: len(w) <= 4))
def test_no_forest_weighs_more(weight):
    n = len(weight)
    nodes = structure.maximum_branching(weight)
    assert is_forest(nodes, n)
    best = 0.0
    for parents in itertools.product([None, *range(n)], repeat=n):
        arcs = [(p, j) for j, p in enumerate(parents) if p is not None]
        graph = nx.DiGraph(arcs)
        if not arcs or nx.is_directed_acyclic_graph(graph):
            best = max(best, sum(weight[i, j] for i, j in arcs))
    assert sum(weight[i, j] for i, j in arcs_of(nodes)) == pytest.approx(best, abs=1e-12)
    assert all(weight[i, j] > 0 for i, j in arcs_of(nodes))


def shared(alpha, parents, sizes):
    """One concentration a column: divided by its parents' number of values."""
    return [alpha / math.prod(sizes[p] for p in parents.get(j, ())) for j in range(len(sizes))]


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("seed", thorough(range(4), [0]))
def test_the_tree_by_evidence_is_the_most_probable(seed):
    """Reference: log-gammas over all forests; a priori each of three parents is a third as probable as none."""
    alpha = [1.0, 0.4, 3.0, 0.1][seed]
    X, y = table(60, seed, n_classes=2 + seed % 2)
    nb = bnb.TAN("evidence", alpha=alpha).fit(X, y)
    levels, classes = [tuple(own.tolist()) for own in nb.categories_], tuple(nb.classes_.tolist())
    sizes = [len(own) for own in levels]
    scores = {}
    for chosen in itertools.product([None, *range(4)], repeat=4):
        parents = {j: (p,) for j, p in enumerate(chosen) if p is not None}
        if any(j in own for j, own in parents.items()) or not nx.is_directed_acyclic_graph(
            nx.DiGraph([(p, j) for j, (p,) in parents.items()])
        ):
            continue
        brute = Brute(levels, parents, shared(alpha, parents, sizes), [1.0] * len(classes), classes)
        scores[chosen] = brute.evidence(brute.count(X, y, np.ones(60))) - len(parents) * math.log(3)
    found = tuple(None if p is None else int(p) for p in nb.parents_.values())
    assert scores[found] == pytest.approx(max(scores.values()), abs=1e-9)
    arcs = sum(p is not None for p in found)
    assert nb.log_evidence_ == pytest.approx(scores[found] + arcs * math.log(3), abs=1e-9)


@pytest.mark.slow("compiles kernels of its own")
def test_by_evidence_every_analysis_sees_the_prior_of_the_scores(tmp_path):
    """Reference: a network with the same concentrations for each column; also streams and files."""
    X, y = table(60, 1)
    nb = bnb.TAN("evidence", alpha=0.7).fit(X, y)
    parents = {int(j): (int(p),) for j, p in nb.parents_.items() if p is not None}
    assert parents
    told = bnb.NetworkNB(nb.parents_, alpha=shared(0.7, parents, [len(own) for own in nb.categories_])).fit(X, y)
    bnb.save(nb, tmp_path / "tan.safetensors")
    again = bnb.TAN("evidence", alpha=0.7).fit(X, y).forget(X[40:], y[40:]).partial_fit(X[40:], y[40:])
    for other in (told, bnb.load(tmp_path / "tan.safetensors"), again):
        np.testing.assert_array_equal(other.prior_.blocks[0].concentration, nb.prior_.blocks[0].concentration)
        assert other.log_evidence_ == pytest.approx(nb.log_evidence_, rel=1e-14)
    np.testing.assert_allclose(bnb.loo(told, X, y).log_proba, bnb.loo(nb, X, y).log_proba, rtol=1e-12)
    np.testing.assert_allclose(told.predict_proba(X), nb.predict_proba(X), rtol=1e-13)


@pytest.mark.slow("other variants compile kernels of their own")
@pytest.mark.parametrize("by", thorough(["loo", "evidence"], ("evidence",)))
def test_alpha_by_evidence_is_tuned_as_it_is_shared(by):
    X, y = table(60, 1)
    nb = bnb.TAN("evidence", alpha=0.7).fit(X, y)
    found = bnb.tune_alpha(nb, X, y, by=by)
    parents = {int(j): (int(p),) for j, p in nb.parents_.items() if p is not None}

    def objective(alpha):
        own = shared(alpha, parents, [len(v) for v in nb.categories_])
        told = bnb.NetworkNB(nb.parents_, alpha=own).fit(X, y)
        return told.log_evidence_ if by == "evidence" else bnb.loo(told, X, y).elpd

    assert found.objective == pytest.approx(objective(found.alpha), abs=1e-9)
    assert found.objective >= max(objective(found.alpha * factor) for factor in (0.7, 0.9, 1.1, 1.4)) - 1e-9


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.3, 2.0, 12.0]))
def test_of_one_total_an_arc_is_worth_the_same_both_ways(seed, total):
    """Likelihood equivalence of the BDeu score (Heckerman, Geiger & Chickering, 1995, theorem 8)."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 3)
    X = np.stack([rng.integers(0, size, 30) for size in sizes], axis=1)
    hot = np.concatenate([np.eye(size)[own] for size, own in zip(sizes, X.T, strict=True)], axis=1)
    counts = np.stack([hot[:20].T @ hot[:20], hot[20:].T @ hot[20:]])
    alpha = np.repeat(total / sizes, sizes)[None]
    found = structure.log_bayes_factors(counts, sizes, alpha)
    np.testing.assert_allclose(found, found.T, rtol=1e-9, atol=1e-9)


def test_the_tree_by_mutual_information_has_the_most_likelihood():
    """Friedman, Geiger & Goldszmidt (1997), theorem 4."""
    X, y = table(60, 2)
    levels, label = [tuple(sorted(set(own))) for own in X.T], (y == "elm").astype(int)

    def found(nb):
        return nb.fit(X, y).predict_joint_log_proba(X, estimate="mle")[np.arange(60), label].sum()

    def of_tree(arcs):
        brute = Brute(levels, {j: (i,) for i, j in arcs}, [0.0] * 4, [0.0] * 2, ("ash", "elm"))
        counts = brute.count(X, y, np.ones(60))
        rows = [
            (brute.prob_class(counts, c), *(brute.prob_of(counts, c, j, x) for j in range(4)))
            for x, c in zip(X, y, strict=True)
        ]
        return np.log(rows).sum()

    trees = [nx.bfs_tree(nx.from_prufer_sequence(list(s)), 0).edges for s in itertools.product(range(4), repeat=2)]
    best = max(map(of_tree, trees))
    assert found(bnb.TAN()) == pytest.approx(best, abs=1e-9)
    assert found(bnb.TAN(root=3)) == pytest.approx(best, rel=1e-12)


def test_missing_cells_and_weights_of_zero_do_not_enter():
    X, y = table(60, 4)
    X[:10, 1] = None
    for score in ("mi", "evidence"):
        nb = bnb.TAN(score).fit(X, y)
        padded = bnb.TAN(score).fit(np.vstack([X, X[::-1]]), np.append(y, y), np.repeat([1.0, 0.0], 60))
        assert padded.parents_ == nb.parents_


def test_weights_above_whole_small_numbers_are_exact():
    """Sums beyond the integers of float32, or of fractions."""
    X, y = table(40, 5)
    for weight in (np.full(40, 257.0), np.full(40, 3e7 + 1), np.linspace(0.1, 3, 40)):
        nb = bnb.AODE().fit(X, y, weight)
        expected = sum(weight[(y == "ash") & (X[:, 0] == "u") & (X[:, 1] == "v")])
        spode = nb.members_[0]
        tables = spode.encoding_.blocks[0].tables(spode.statistics_.blocks[0].count)
        assert tables[1][0, 0, 1] == pytest.approx(expected, rel=1e-14)


@pytest.mark.slow("other variants compile kernels of their own", but="TAN")
@pytest.mark.parametrize("make", [bnb.TAN, bnb.AODE])
def test_counts_that_do_not_fit_are_refused_with_their_size(make, monkeypatch):
    X, y = table(40, 0)
    monkeypatch.setattr(pairs, "MOST_COUNTS", 2 * 10 * 10 - 1)
    refused(r"pairs of 10 levels in 2 classes would take .*GB.*'1'.*3 levels", make().fit, X, y)
    monkeypatch.setattr(pairs, "MOST_COUNTS", 10**9)
    make().fit(X, y)


def test_nodes_that_do_not_fit_are_refused_with_their_size(monkeypatch):
    X, y = table(40, 0)
    monkeypatch.setattr(pairs, "MOST_COUNTS", 40)
    nb = bnb.NetworkNB({3: [0, 1, 2]})
    refused(r"43 combinations of levels in 2 classes.*'3' and its parents have 36", nb.fit, X, y)
    assert not hasattr(nb, "classes_")
