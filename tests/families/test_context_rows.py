"""Predictive probabilities of rows by context trees, against the recursion over all prunings of full tables."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayesnb.families import ContextsOfRows
from tests.estimators.contexts import log_evidence

C = 2


@given(
    seed=st.integers(0, 2**32 - 1),
    parents=st.lists(st.integers(0, 3), min_size=1, max_size=3).map(lambda n: sorted(n, reverse=True)),
    fractions=st.booleans(),
)
def test_ratios_are_those_of_the_chain_rule_on_full_tables(seed, parents, fractions):
    """log p(q | c, contexts) is the gain in log evidence from one more row."""
    rng, n = np.random.default_rng(seed), 12
    deepest = max(parents)
    sizes, alpha = rng.integers(1, 4, len(parents)), rng.choice([0.5, 1.0, 3.0], len(parents))
    values = [rng.integers(1, 4, sum(p > d for p in parents)) for d in range(deepest)]
    level = rng.integers(-1, sizes, (n, len(parents)))
    given_ = [rng.integers(0, v, (n, len(v))) for v in values]
    label, weight = rng.integers(0, C, n), rng.choice([0.0, 0.5, 2.5] if fractions else [0.0, 1.0, 2.0], n)
    rows = rng.permutation(n)[:7]
    contexts = ContextsOfRows.from_rows(level, given_, sizes, values, alpha, label, weight, C, rows)
    found = contexts.log_dependences(np.arange(7), 3)
    assert len(found) == 3 * (deepest > 0)
    for k, ratios in enumerate(found, 1):
        assert ratios.shape == (7, C, len(values[0]))
        for j, (i, row), c in itertools.product(range(ratios.shape[2]), enumerate(rows), range(C)):
            expected = 0.0
            if level[row, j] >= 0:
                for depth, sign in ((min(k, parents[j]), 1), (0, -1)):
                    table = np.zeros((*(values[d][j] for d in range(depth)), sizes[j]))
                    cell = [(*(given_[d][r, j] for d in range(depth)), level[r, j]) for r in range(n)]
                    for r in np.flatnonzero((label == c) & (level[:, j] >= 0)):
                        table[cell[r]] += weight[r]
                    before = log_evidence(table, alpha[j])
                    table[cell[row]] += 1
                    expected += sign * (log_evidence(table, alpha[j]) - before)
            np.testing.assert_allclose(ratios[i, c, j], expected, rtol=1e-9, atol=1e-10)
