"""Missing cells on arcs are summed out, against the joint table in NumPy."""

import itertools

import numpy as np
import pytest
from scipy import stats

import bayesnb as bnb
from tests.estimators.networks import brute_of, table
from tests.strategies import thorough

X, Y = table(60, 0)
HOLES = np.where(np.random.default_rng(1).random(X.shape) < 0.3, None, X)
HOLES[0] = None
MAKE = {
    "tan": bnb.TAN(),
    "spode": bnb.SPODE(1),
    "network": bnb.NetworkNB({1: [0, 2], 3: [1, 0]}),
    "chain": bnb.NetworkNB({1: 0, 2: 1, 3: 2}),
}


@pytest.fixture(scope="module", params=thorough(list(MAKE), ["network"]))
def nb(request):
    return MAKE[request.param].fit(HOLES, Y)


def joint_table(nb, alpha, class_alpha=1.0):
    """(C, levels of each column) p(class, row) with α added to the counts, by loops; 0/0 is left out: 0."""
    brute = brute_of(nb)
    counts = brute.count(HOLES, Y, np.ones(60))
    n = np.array([counts.get((c,), 0.0) + class_alpha for c in brute.classes])
    found = np.ones((len(n), *map(len, brute.levels))) * (n / n.sum()).reshape(-1, *[1] * len(brute.levels))
    for at in np.ndindex(*found.shape):
        row = [own[i] for own, i in zip(brute.levels, at[1:], strict=True)]
        for j, own in enumerate(brute.levels):
            *given, value = (row[k] for k in brute.node(j))
            cells = {v: counts.get((brute.classes[at[0]], j, (*given, v)), 0.0) + alpha for v in own}
            found[at] *= cells[value] / sum(cells.values()) if sum(cells.values()) else 0.0
    return found


def summed(nb, joint, rows):
    """(N, C) of the table, what is missing summed over."""
    levels = brute_of(nb).levels
    at = [[slice(None) if v is None else own.index(v) for v, own in zip(row, levels, strict=True)] for row in rows]
    return np.array([joint[(slice(None), *one)].reshape(len(joint), -1).sum(axis=1) for one in at])


def test_all_readings_are_sums_of_the_joint_table(nb):
    for estimate, alpha in (("predictive", 1.0), ("mean", 1.0), ("mle", 0.0)):
        joint = summed(nb, joint_table(nb, alpha, alpha), HOLES)
        found = np.exp(nb.predict_joint_log_proba(HOLES, estimate=estimate))
        np.testing.assert_allclose(found, joint, rtol=1e-12, atol=1e-15)


@pytest.mark.slow("compiles kernels of its own")
def test_given_parameters_the_row_is_summed_too():
    nb = MAKE["network"].fit(HOLES, Y)
    drawn, brute = bnb.posterior_draws(nb, 3), brute_of(nb)
    joint = np.empty((3, 2, *map(len, brute.levels)))
    tables, start = [], 0
    for j, own in enumerate(brute.levels):
        shape = [len(brute.levels[p]) for p in brute.parents.get(j, ())] + [len(own)]
        tables.append(drawn["theta"][..., start : start + np.prod(shape)].reshape(3, 2, *shape))
        start += np.prod(shape)
    for at in np.ndindex(*joint.shape[2:]):
        cells = [tables[j][(..., *(at[k] for k in brute.node(j)))] for j in range(4)]
        joint[(..., *at)] = drawn["class_prob"] * np.prod(cells, axis=0)
    for s in range(3):
        one = {name: values[s : s + 1] for name, values in drawn.items()}
        expected = summed(nb, joint[s], HOLES[:16])
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(nb.predict_proba(HOLES[:16], draws=one), expected, rtol=1e-11)


@pytest.mark.slow("compiles kernels of its own")
def test_no_moments_in_closed_form(nb):
    rows = np.array([["u", "v", "u", "w"], ["u", "v", None, "w"], [None, None, "u", "w"]], dtype=object)
    with pytest.raises(
        NotImplementedError, match=r"missing cell in a column with a parent or a child.*draws=posterior_draws"
    ):
        bnb.log_odds_moments(nb, rows)


def test_a_network_that_is_too_wide_is_refused():
    wide = np.random.default_rng(0).integers(0, 18, (60, 7)).astype(object)
    holes = wide.copy()
    holes[5, :6] = None
    nb = bnb.NetworkNB({6: [0], 5: [0, 1], 4: [1, 2, 5], 3: [2, 4, 6]}).fit(wide, Y)
    with pytest.raises(
        ValueError, match=r"missing cells with observed descendants \(first: row 5\).*numbers for each row"
    ):
        nb.predict(holes)


# -- uncertainty -------------------------------------------------------------------------------------


def drawn_proba(nb, row, given, size, rng):
    """(size, C) P(class | row, θ): θ given the data, or the data and the row, each completion of it a component."""
    brute = brute_of(nb)
    completions = list(
        itertools.product(*([v] if v is not None else own for v, own in zip(row, brute.levels, strict=True)))
    )

    def of(counts, n):
        score = np.log(rng.dirichlet([counts.get((c,), 0.0) + 1 for c in brute.classes], n))
        for i, c in enumerate(brute.classes):
            theta = {
                (j, u): rng.dirichlet([counts.get((c, j, (*u, v)), 0.0) + 1 for v in own], n)
                for j, own in enumerate(brute.levels)
                for u in itertools.product(*(brute.levels[p] for p in brute.parents.get(j, ())))
            }
            each = [
                np.prod(
                    [
                        theta[j, tuple(full[p] for p in brute.parents.get(j, ()))][:, own.index(full[j])]
                        for j, own in enumerate(brute.levels)
                    ],
                    axis=0,
                )
                for full in completions
            ]
            score[:, i] += np.log(np.sum(each, axis=0))
        joint = np.exp(score - score.max(axis=1, keepdims=True))
        return joint / joint.sum(axis=1, keepdims=True)

    if given == "data":
        return of(brute.count(HOLES, Y, np.ones(60)), size)
    joint = joint_table(nb, 1.0)
    at = [[brute.levels[j].index(v) for j, v in enumerate(full)] for full in completions]
    weight = np.array([[joint[(i, *one)] for one in at] for i in range(2)])
    parts = []
    for i, m in np.ndindex(*weight.shape):
        more = np.vstack([HOLES, np.array([completions[m]], dtype=object)])
        counts = brute.count(more, np.append(Y, brute.classes[i]), np.ones(61))
        parts.append(of(counts, round(size * weight[i, m] / weight.sum())))
    return np.concatenate(parts)


@pytest.mark.slow("simulates many data sets or draws")
@pytest.mark.parametrize("given", ["row", "data"])
def test_intervals_and_entropies_are_those_of_draws(nb, given):
    """Draws of all completions of a row; slow, as kernels are compiled for each network and many draws are taken."""
    rng = np.random.default_rng(5)
    rows = np.array([[None, "u", "v", None], [None, "v", None, "w"], ["u", None, None, "w"]], dtype=object)
    # The cubic of "moments", for rows whose missing cells nothing depends on, is an approximation.
    for method, most in (("moments", 0.02), ("draws", 0.01)):
        lower, upper = bnb.predict_interval(nb, rows, given=given, method=method, draws=10_000, seed=3)
        split = bnb.decompose_uncertainty(nb, rows, given=given, method=method, draws=10_000, seed=3)
        decided = bnb.decide(nb, rows, [[0, 1], [1, 0]], given=given, method=method, draws=10_000, seed=3)
        for i, row in enumerate(rows):
            drawn = drawn_proba(nb, row, given, 20_000, rng)
            np.testing.assert_allclose([lower[i, 1], upper[i, 1]], np.quantile(drawn[:, 1], [0.05, 0.95]), atol=0.02)
            assert split["aleatoric"][i] == pytest.approx(stats.entropy(drawn, axis=1).mean(), abs=most)
            assert split["total"][i] == pytest.approx(stats.entropy(drawn.mean(axis=0)), abs=most)
            top = nb.predict_proba(rows)[i].argmax()
            assert decided.p_optimal[i] == pytest.approx((drawn.argmax(axis=1) == top).mean(), abs=0.02)


def test_a_class_without_a_row_that_has_the_parent_is_told():
    """Nothing but the prior is known of the child in such a class."""
    rows = [["done", "high"], ["done", "low"], [None, "low"], [None, "low"], [None, "high"]]
    labels = ["ill", "ill", "well", "well", "well"]
    nb = bnb.NetworkNB({1: 0})
    with pytest.warns(
        UserWarning,
        match=r"no row of the class has values of both the column and all of its parents.*\[\('well', '1'\)\]",
    ):
        nb.fit(rows, labels)
    joint = nb.predict_joint_log_proba([[None, "low"], [None, "high"]])
    assert np.ptp(np.diff(joint, axis=1)) <= 1e-12
    # Batches may bring it later, and then there is nothing to tell.
    nb = bnb.NetworkNB({1: 0}).partial_fit(rows, labels, classes=["ill", "well"])
    nb.partial_fit([["done", "low"]] * 5, ["well"] * 5)
    together = bnb.NetworkNB({1: 0}).fit([*rows, *[["done", "low"]] * 5], [*labels, *["well"] * 5])
    np.testing.assert_array_equal(nb.statistics_.blocks[0].count, together.statistics_.blocks[0].count)
