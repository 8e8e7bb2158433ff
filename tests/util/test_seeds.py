"""Seeds are integers, keys of JAX, or generators of NumPy; estimators have scikit-learn's `random_state`."""

import importlib
import inspect
import typing

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier

import bayesnb as bnb
from bayesnb._util.arguments import Seed, read_seed
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


def test_halves_of_other_seeds_choose_otherwise():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 80)
    numbers = np.column_stack(
        [rng.gamma(1.0, size=(80, 3)) * (1 + 0.4 * y[:, None]), rng.standard_normal((80, 3)) + 0.4 * y[:, None]]
    )
    levels = rng.integers(0, 2, (80, 4))
    levels[:, 1] = np.where(rng.random(80) < 0.75, levels[:, 0] ^ y, levels[:, 1])
    seeds = None, 0, 1, 2, 3
    kinds = [bnb.MixedNB(random_state=seed).fit(numbers, y).kinds_ for seed in seeds]
    networks = [bnb.KDB(random_state=seed).fit(levels, y).parents_ for seed in seeds]
    for choices in (list(map(str, kinds)), list(map(str, networks))):
        assert choices[0] == choices[1]
        assert len(set(choices)) > 1


HALVES = bnb.MixedNB, bnb.KDB, bnb.TAN, bnb.SPODE, bnb.NetworkNB, bnb.WeightedNB, bnb.NaiveBayesMixture


@pytest.mark.parametrize("make", HALVES)
def test_random_state_follows_the_rules_of_scikit_learn(make):
    nb = make({}) if make is bnb.NetworkNB else make()
    key = jax.random.key(3)
    assert nb.get_params()["random_state"] is None
    assert nb.set_params(random_state=key).get_params()["random_state"] is key
    assert read_seed(clone(nb).random_state) == 3


def test_files_hold_keys_and_refuse_generators(tmp_path):
    path = tmp_path / "model.bnb"
    for key in (jax.random.key(3), jax.random.PRNGKey(3), 3, None):
        bnb.save(bnb.MixedNB(random_state=key).fit(X, Y), path)
        read = bnb.load(path).random_state
        assert (read is None) if key is None else read_seed(read) == 3
    nb = bnb.MixedNB(random_state=np.random.default_rng(0)).fit(X, Y)
    refused("MixedNB.random_state is Generator.*cannot hold", bnb.save, nb, path, error=TypeError)


def test_the_type_of_every_public_seed_has_keys_and_generators():
    evaluation = importlib.import_module("bayesnb.evaluation")
    functions = [getattr(owner, name) for owner in (bnb, evaluation) for name in owner.__all__]
    drawing = [f for f in functions if inspect.isfunction(f) and "seed" in inspect.signature(f).parameters]
    assert len(drawing) >= 20
    assert {f.__name__ for f in drawing if typing.get_type_hints(f)["seed"] != Seed} == set()
