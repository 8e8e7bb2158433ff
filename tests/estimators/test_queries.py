"""Queries of any variables given any others, against the joint table by brute force."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesnb as bnb
from tests.estimators.networks import CLASSES, problems, table
from tests.estimators.test_structures import fitted
from tests.raises import refused
from tests.strategies import variants

CLASS = "(class)"


def by_hand(problem, joint, asked, given):
    """P(asked | given) from the joint table, an axis for each variable that is asked."""
    names = [CLASS, *map(str, range(len(problem.brute.levels)))]
    values = [CLASSES, *problem.brute.levels]
    at = tuple(values[i].index(given[name]) if name in given else slice(None) for i, name in enumerate(names))
    sliced, left = joint[at], [name for name in names if name not in given]
    summed = sliced.sum(axis=tuple(i for i, name in enumerate(left) if name not in asked))
    kept = [name for name in left if name in asked]
    found = np.transpose(summed, [kept.index(name) for name in asked])
    return found / found.sum()


@pytest.mark.slow("compiles kernels of its own")
@settings(max_examples=10)
@given(problems(), st.data())
def test_any_variables_given_any_others(problem, data):
    nb = fitted(problem)
    joint = problem.brute.table(problem.counts())
    values = dict(zip([CLASS, *"0123"], [CLASSES, *problem.brute.levels], strict=True))
    for _ in range(4):
        names = data.draw(st.permutations(list(values)))
        n_asked = data.draw(st.integers(1, 5))
        asked, rest = names[:n_asked], names[n_asked:]
        known = {name: data.draw(st.sampled_from(values[name])) for name in rest if data.draw(st.booleans())}
        found = nb.query(asked, known)
        expected = by_hand(problem, joint, asked, known)
        np.testing.assert_allclose(found.to_numpy(), expected.ravel(), rtol=0, atol=1e-10)
        assert list(found.index.names) == list(asked)
        if len(asked) == 1:
            assert found.index.tolist() == list(values[asked[0]])
        else:
            assert found.index.tolist() == pd.MultiIndex.from_product([values[name] for name in asked]).tolist()
    for row, expected in zip(problem.X, nb.predict_proba(problem.X), strict=True):
        found = nb.query(CLASS, {str(j): value for j, value in enumerate(row)})
        np.testing.assert_allclose(found.to_numpy(), expected, rtol=0, atol=1e-10)


def test_by_name_by_index_and_of_one_name():
    X, y = table(40, 0)
    frame = pd.DataFrame(X, columns=["sky", "wind", "sea", "boat"])
    nb = bnb.TAN().fit(frame, y)
    expected = nb.query("boat", {"wind": "u"})
    for variables, known in ((["boat"], {"wind": "u"}), (3, {1: "u"}), ([np.int64(3)], {"wind": "u"})):
        pd.testing.assert_series_equal(nb.query(variables, known), expected)
    assert expected.index.name == "boat"


def test_values_keep_their_types_and_declared_and_reserved_ones_count():
    X = np.array([[1, "a"], [0.5, "a"], [1, "b"], ["x", "b"]], dtype=object)
    nb = bnb.NetworkNB({1: 0}, categories={1: ["c", "a", "b"]}, handle_unknown="level")
    nb.fit(X, [True, False, True, False])
    assert nb.query("1").index.tolist() == ["a", "b", "c", "<unknown>"]
    assert nb.query("0").index.tolist() == [0.5, 1, "x", "<unknown>"]
    assert nb.query("1", {"0": 1.0})["a"] == pytest.approx(nb.query("1", {"0": 1})["a"])
    assert nb.query(CLASS, {"1": "c"}).index.tolist() == [False, True]
    # of a reserved level no row: what the prior says, in every class
    np.testing.assert_allclose(nb.query("1", {"0": "<unknown>"}), 1 / 4)


def test_a_chain_of_many_columns_is_summed_over_exactly():
    """The joint table of 60 columns has 3^60 entries; a Markov chain by matrix products needs 9 numbers."""
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.integers(0, 2, (200, 60)), axis=1) % 3
    y = rng.integers(0, 2, 200)
    nb = bnb.NetworkNB({j: j - 1 for j in range(1, 60)}, categories=[[0, 1, 2]] * 60).fit(X, y)
    expected = np.zeros((3, 3))
    for c in (0, 1):
        own, n = X[y == c], (y == c).sum()
        joint = np.diag([((own[:, 0] == v).sum() + 1) / (n + 3) for v in range(3)])
        for j in range(1, 60):
            pairs = np.array(
                [[((own[:, j - 1] == a) & (own[:, j] == b)).sum() + 1.0 for b in range(3)] for a in range(3)]
            )
            joint = joint @ (pairs / pairs.sum(axis=1, keepdims=True))
        expected += (n + 1) / 202 * joint
    np.testing.assert_allclose(nb.query([0, 59]).to_numpy().reshape(3, 3), expected, rtol=0, atol=1e-12)
    given_last = expected[:, 2] / expected[:, 2].sum()
    np.testing.assert_allclose(nb.query(0, {59: 2}), given_last, rtol=0, atol=1e-12)


@pytest.mark.slow("compiles kernels of its own")
def test_a_table_too_large_is_refused_with_its_size():
    rng = np.random.default_rng(0)
    nb = bnb.NetworkNB().fit(rng.integers(0, 10, (30, 12)), rng.integers(0, 2, 30))
    refused(r"query: .*numbers; the limit is", nb.query, [str(j) for j in range(12)])


@variants(
    ("variables", "known", "message"),
    [
        ("4", None, "'4' is not a categorical variable"),
        (["0", "nobody"], None, "'nobody' is not a categorical variable"),
        ("0", {"nobody": "u"}, "'nobody' is not a categorical variable"),
        (17, None, "17 is not a categorical variable"),
        (["0", "0"], None, "each once"),
        (["0", 0], None, "each once"),
        ([], None, "one or more variables"),
        ("0", {"0": "u"}, "'0' is 'u', but '0' is also in variables"),
        ("0", {"1": "q"}, "'1' is 'q', but '1' has the levels"),
        ("0", {CLASS: "q"}, r"'\(class\)' is 'q', but '\(class\)' has the levels"),
        ("0", {"1": None}, "'1' is None, but '1' has the levels"),
    ],
)
def test_bad_questions(variables, known, message):
    nb = bnb.NetworkNB({1: 0}).fit(*table(30, 0))
    refused(message, nb.query, variables, known)


def test_what_cannot_be_is_no_condition():
    X, y = table(40, 0)
    X[:, 0] = X[:, 2] = np.where(y == "ash", "u", "v")
    nb = bnb.NetworkNB(bnb.TAN().fit(*table(40, 0)).parents_, alpha=0.0).fit(X, y)
    refused("probability 0", nb.query, CLASS, {"0": "u", "2": "v"})


def test_unfitted():
    refused("not fitted", bnb.NetworkNB().query, "0", error=(ValueError, AttributeError))
