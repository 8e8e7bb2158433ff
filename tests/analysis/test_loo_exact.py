"""Leave-one-out with tiny priors or large weights, against rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest

import bayesnb as bnb
from tests.strategies import thorough

RNG = np.random.default_rng(0)
N = 18
LABEL = np.repeat([0, 1, 2], [9, 6, 3])
LEVELS = np.vstack([RNG.choice(3, (N - 3, 4), p=[0.7, 0.2, 0.1]), np.repeat([[0], [1], [2]], 4, axis=1)])
WORDS = RNG.poisson(0.5, (N, 4))
ROWS = {"categorical": LEVELS, "bernoulli": (WORDS > 0).astype(int), "multinomial": WORDS}


def groups(kind: str) -> list[np.ndarray]:
    """For each simplex its (N, L) counts of levels."""
    X = ROWS[kind]
    if kind == "multinomial":
        return [X]
    return [np.eye(X.max() + 1 if kind == "categorical" else 2, dtype=int)[column] for column in X.T]


def rising(a: Fraction, n: int) -> Fraction:
    return math.prod((a + k for k in range(n)), start=Fraction(1))


def log(p: Fraction) -> float:
    """Logarithm of a rational number beyond the range of floats, from its binary exponent."""
    shift = p.numerator.bit_length() - p.denominator.bit_length()
    return math.log(p * Fraction(2) ** -shift) + shift * math.log(2)


def left_out(kind: str, alpha: float, class_alpha: float, weight: list[Fraction], plug_in: bool) -> np.ndarray:
    """(N, C) log P(class | x_i, the others), of sums of the other rows."""
    a, found = Fraction(alpha), []
    for i in range(len(LABEL)):
        joint = []
        for c in range(3):
            of_class = [j for j in range(len(LABEL)) if LABEL[j] == c and j != i]
            value = Fraction(class_alpha) + sum(weight[j] for j in of_class)
            for count in groups(kind):
                n = [sum((weight[j] * int(count[j, v]) for j in of_class), Fraction(0)) for v in range(count.shape[1])]
                total, x = sum(n) + a * len(n), count[i].tolist()
                if plug_in:
                    value *= math.prod(((m + a) / total) ** k for m, k in zip(n, x, strict=True))
                else:
                    value *= math.prod(rising(m + a, k) for m, k in zip(n, x, strict=True)) / rising(total, sum(x))
            joint.append(value)
        found.append([log(value / sum(joint)) for value in joint])
    return np.array(found)


def make(kind: str, **options: float) -> bnb.CategoricalNB | bnb.BernoulliNB | bnb.MultinomialNB:
    estimators = {"categorical": bnb.CategoricalNB, "bernoulli": bnb.BernoulliNB, "multinomial": bnb.MultinomialNB}
    return estimators[kind](**options)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("kind", thorough(ROWS, ("categorical", "multinomial")))
@pytest.mark.parametrize("estimate", thorough(["predictive", "mean"], ("predictive",)))
def test_under_a_tiny_prior(kind, estimate):
    """α + 1 - 1 is not α in floating point: scores of -41 were -inf."""
    nb = make(kind, alpha=1e-18, class_alpha=1e-18, estimate=estimate).fit(ROWS[kind], LABEL)
    expected = left_out(kind, 1e-18, 1e-18, [Fraction(1)] * N, estimate == "mean")
    found = bnb.loo(nb, ROWS[kind], LABEL)
    np.testing.assert_allclose(found.log_proba, expected, rtol=1e-12, atol=1e-12)
    assert found.pointwise.min() < -38


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("kind", thorough(ROWS, ("categorical", "multinomial")))
def test_under_large_weights(kind):
    """Nine digits of a sum of 1e9 are not lost with the row that makes it up."""
    weight = np.resize([1e9, 3e9, 2.0, 1e9, 7e8, 2e9], N)
    nb = make(kind, alpha=0.3, class_alpha=0.7).fit(ROWS[kind], LABEL, weight)
    expected = left_out(kind, 0.3, 0.7, [Fraction(w) for w in weight], False)
    found = bnb.loo(nb, ROWS[kind], LABEL, weight)
    np.testing.assert_allclose(found.log_proba, expected, rtol=1e-12, atol=1e-12)


def test_alpha_is_tuned_by_the_same_scores():
    """A search that begins where the prior is lost: the objective there is finite, and right."""
    nb = bnb.CategoricalNB(alpha=1e-18).fit(LEVELS, LABEL)
    with pytest.warns(UserWarning, match="at an end of bounds="):
        path = bnb.tune_alpha(nb, LEVELS, LABEL, bounds=(1e-18, 0.01)).path
    start = path[np.isclose(path["alpha"], 1e-18, rtol=1e-9, atol=0)]["objective"].iloc[0]
    expected = left_out("categorical", 1e-18, 1.0, [Fraction(1)] * N, False)
    assert start == pytest.approx(expected[np.arange(N), LABEL].sum(), rel=1e-9)
