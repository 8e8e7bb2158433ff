"""Statistics of many weightings of the rows, counted at once, are those of each weighting."""

import jax
import numpy as np
import pytest

from bayesnb import NaiveBayes, Statistics, kernels

RNG = np.random.default_rng(21)
N = 60
LABEL = RNG.integers(0, 2, N)


@pytest.mark.parametrize(
    ("prior", "x"),
    [
        (NaiveBayes.categorical(2, [3, 2]), RNG.integers(-1, 3, (N, 2)).clip(-1, [2, 1])),
        (NaiveBayes.multinomial(2, 4), RNG.poisson(1.0, (N, 4)) * 1.0),
        (NaiveBayes.gaussian(2, 3), np.where(RNG.random((N, 3)) < 0.1, np.nan, 1e6 + RNG.normal(size=(N, 3)))),
        (NaiveBayes.poisson(2, 3), RNG.poisson(2.0, (N, 3)) * 1.0),
    ],
    ids=["levels", "words", "numbers", "counts"],
)
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["host", "jit"])
def test_many_weightings_are_counted_at_once(prior, x, transform):
    label, weight = LABEL, RNG.exponential(size=(3, N))
    empty = Statistics.empty(prior)
    with jax.enable_x64(True):
        together = transform(kernels.count)(empty, x, label, weight)
        twice = transform(kernels.count)(together, x[40:], label[40:], weight[:, 40:])
        for s, one in enumerate(weight):
            alone = kernels.count(empty, x, label, one)
            more = kernels.count(alone, x[40:], label[40:], one[40:])
            for every, expected in ((together, alone), (twice, more)):
                for a, b in zip(jax.tree.leaves(every), jax.tree.leaves(expected), strict=True):
                    assert (a[s] if np.ndim(a) > np.ndim(b) else a) == pytest.approx(np.asarray(b), rel=1e-9, abs=1e-9)
        mapped = jax.vmap(lambda w: kernels.count(empty, x, label, w))(weight[:, None])
        assert mapped.class_count[:, 0] == pytest.approx(np.asarray(together.class_count), rel=1e-9)


def test_weights_of_another_shape_are_refused():
    prior = NaiveBayes.categorical(2, [3])
    with pytest.raises(ValueError, match=r"\(3,\) and \(2, 4\); they must be \(N,\), and \(N,\) or \(S, N\)"):
        kernels.count(Statistics.empty(prior), np.zeros((3, 1), int), np.zeros(3, int), np.ones((2, 4)))
