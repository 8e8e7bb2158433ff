"""Seeds are integers, keys of JAX, or generators of NumPy; estimators have scikit-learn's `random_state`."""

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier

import bayesnb as bnb
from tests.raises import refused

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, 80)
X = RNG.normal(Y[:, None], 1.0, (80, 3))
NB = bnb.GaussianNB().fit(X, Y)


def draws(seed):
    return bnb.posterior_draws(NB, draws=5, seed=seed)["mu"]


@pytest.mark.parametrize("number", [0, 42])
def test_a_key_of_jax_is_the_seed_that_it_was_made_of(number):
    for key in (jax.random.key(number), jax.random.PRNGKey(number), np.asarray(jax.random.PRNGKey(number))):
        np.testing.assert_array_equal(draws(key), draws(number))
    first, second = jax.random.split(jax.random.key(number))
    assert (draws(first) != draws(second)).all()


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_gives_each_call_another_seed(make):
    generator, again = make(3), make(3)
    first, second = draws(generator), draws(generator)
    assert (first != second).all()
    np.testing.assert_array_equal(draws(again), first)


@pytest.mark.parametrize("seed", [None, -1, 1.5, "7", True, np.arange(2), 2**63])
def test_other_values_are_refused(seed):
    refused("seed=", bnb.posterior_draws, NB, draws=5, seed=seed)


@pytest.mark.parametrize("nb", [bnb.WeightedNB(bnb.GaussianNB()), bnb.NaiveBayesMixture(2, n_init=1, max_iter=2)])
def test_random_state_takes_the_place_of_seed(nb):
    def fitted(**parameters):
        return clone(nb).set_params(**parameters).fit(X, Y).predict_proba(X)

    np.testing.assert_array_equal(fitted(random_state=5), fitted(seed=5))
    np.testing.assert_array_equal(fitted(random_state=None), fitted(seed=0))
    assert (fitted(random_state=5) != fitted(random_state=6)).any()
    refused("random_state=-1", fitted, random_state=-1)


def test_members_of_a_bag_have_seeds_of_their_own():
    bag = BaggingClassifier(bnb.WeightedNB(bnb.GaussianNB()), n_estimators=3, random_state=0).fit(X, Y)
    assert len({member.random_state for member in bag.estimators_}) == 3
