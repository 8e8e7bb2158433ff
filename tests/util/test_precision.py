"""Results are float64 and identical for every configuration of JAX, which stays unchanged."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from bayesnb import BernoulliNB, CategoricalNB, GaussianNB, MixedNB, MultinomialNB, NegativeBinomialNB, PoissonNB
from tests.strategies import thorough

RNG = np.random.default_rng(0)
N = 60
Y = RNG.integers(0, 3, N)
WEIGHT = RNG.random(N) + 0.5
COUNTS = RNG.poisson(1.2, (N, 4)).astype(float)
REALS = np.where(RNG.random((N, 4)) < 0.1, np.nan, 1e8 + RNG.normal(size=(N, 4)))
FRAME = pd.DataFrame({"s": RNG.choice(["a", "b"], N), "x": REALS[:, 0], "n": COUNTS[:, 0], "w": COUNTS[:, 1]})
CASES = {
    "categorical": (lambda: CategoricalNB(), COUNTS[:, :3].clip(0, 3).astype(int)),
    "bernoulli": (lambda: BernoulliNB(), COUNTS),
    "sparse bernoulli": (lambda: BernoulliNB(), sp.csr_array(COUNTS)),
    "multinomial": (lambda: MultinomialNB(), COUNTS),
    "sparse multinomial": (lambda: MultinomialNB(), sp.csr_array(COUNTS)),
    "gaussian": (lambda: GaussianNB(), REALS),
    "poisson": (lambda: PoissonNB(class_prior=[0.2, 0.3, 0.5]), COUNTS),
    "negative binomial": (lambda: NegativeBinomialNB(), COUNTS),
    "mixed": (lambda: MixedNB(poisson="n", multinomial=["w"]), FRAME),
}
every_kind = pytest.mark.parametrize("kind", thorough(CASES, ("categorical",)))
ATTRIBUTES = ("class_log_prior_", "class_count_", "feature_log_prob_", "feature_count_", "theta_", "var_", "rate_")


def head(X, n):
    return X.iloc[:n] if hasattr(X, "iloc") else X[:n]


def everything(kind):
    """Every number that a user sees of one fit."""
    make, X = CASES[kind]
    nb = make().fit(X, Y, WEIGHT).partial_fit(X, Y).forget(head(X, 20), Y[:20], WEIGHT[:20]).decay(0.9)
    return {
        "proba": nb.predict_proba(X),
        "log_proba": nb.predict_log_proba(X, class_prior=[0.5, 0.25, 0.25]),
        "mean": nb.predict_joint_log_proba(X, estimate="mean"),
        "mle": nb.predict_joint_log_proba(X, estimate="mle"),
        "labels": nb.predict(X),
        "evidence": np.float64(nb.log_evidence_),
        "statistics": jax.tree.leaves(nb.statistics_),
        "prior": jax.tree.leaves(nb.prior_),
        "posterior": jax.tree.leaves(nb.posterior_),
        "attributes": [getattr(nb, name) for name in ATTRIBUTES if hasattr(nb, name)],
    }


def arrays(tree) -> list:
    return jax.tree.leaves(tree)


def assert_same_bits(a, b):
    for mine, theirs in zip(arrays(a), arrays(b), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


@pytest.fixture
def configure():
    """Set JAX's options for a test as a user does, and set them back."""
    names = ("jax_enable_x64", "jax_numpy_dtype_promotion", "jax_default_matmul_precision", "jax_debug_nans")
    was = {name: getattr(jax.config, name) for name in names}

    def update(**options):
        for name, value in options.items():
            jax.config.update(name, value)

    yield update
    update(**was)


@every_kind
def test_everything_is_numpy_in_float64(kind):
    for leaf in arrays(everything(kind)):
        assert isinstance(leaf, np.ndarray | np.generic), type(leaf)
        if leaf.dtype.kind == "f":
            assert leaf.dtype == np.float64


def test_the_class_probabilities_that_a_model_keeps_cannot_be_overwritten():
    for class_prior in (None, [0.2, 0.3, 0.5]):
        nb = PoissonNB(class_prior=class_prior).fit(COUNTS, Y)
        with pytest.raises(ValueError, match="read-only"):
            nb.class_log_prior_[0] = 0.0


@every_kind
def test_the_same_bits_with_x64_off_on_and_scoped(kind, configure):
    configure(jax_enable_x64=False)
    off = everything(kind)
    configure(jax_enable_x64=True)
    on = everything(kind)
    assert_same_bits(off, on)
    with jax.enable_x64(False):
        assert_same_bits(off, everything(kind))
    configure(jax_enable_x64=False)
    with jax.enable_x64(True):
        assert_same_bits(off, everything(kind))


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("x64", [False, True])
@every_kind
def test_the_configuration_is_the_users_afterwards(kind, x64, configure):
    configure(jax_enable_x64=x64)
    everything(kind)
    assert jax.config.jax_enable_x64 is x64
    assert jnp.ones(2).dtype == (np.float64 if x64 else np.float32)


@pytest.mark.parametrize("x64", [False, True])
def test_the_configuration_is_the_users_after_an_error_too(x64, configure):
    configure(jax_enable_x64=x64)
    X, y = REALS[:, :2], Y % 2
    nb = GaussianNB().fit(X, y)
    for attempt in (
        lambda: GaussianNB().fit(1e200 * COUNTS[:, :2], y),  # squares overflow, in the kernel
        lambda: nb.forget(X, y, np.full(N, 2.0)),
        lambda: nb.predict(REALS),
        lambda: nb.predict(X, estimate="no such estimate"),
    ):
        with pytest.raises(ValueError, match=r".+"):
            attempt()
        assert jax.config.jax_enable_x64 is x64
        assert jnp.ones(2).dtype == (np.float64 if x64 else np.float32)


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("kind", ["categorical", "sparse multinomial", "mixed"])
def test_a_user_of_strict_promotion_gets_the_same_numbers(kind, configure):
    expected = everything(kind)
    configure(jax_numpy_dtype_promotion="strict")
    assert_same_bits(everything(kind), expected)
    assert jax.config.jax_numpy_dtype_promotion == "strict"


@every_kind
def test_all_fitted_state_is_numpy(kind):
    make, X = CASES[kind]
    nb = make().fit(X, Y)

    def look(value, depth=0):
        assert not isinstance(value, jax.Array)
        if depth < 6 and hasattr(value, "__dict__"):
            for inner in vars(value).values():
                look(inner, depth + 1)
        if isinstance(value, tuple | list):
            for inner in value:
                look(inner, depth + 1)

    look(nb)


def test_an_evidence_of_a_hundred_million_rows_is_right_to_the_ninth_digit():
    """In float32 the first digit would be wrong."""
    from scipy.special import betaln

    n, k = 10**8, 31_415_926
    nb = BernoulliNB(class_prior=[1.0]).fit([[0], [1]], [0, 0], sample_weight=[n - k, k])
    np.testing.assert_allclose(nb.log_evidence_, betaln(k + 1, n - k + 1), rtol=1e-12)


def test_moments_far_from_zero_keep_their_digits():
    x = np.array([4.0, 7.0, 13.0, 16.0]) + 1e9
    nb = GaussianNB(estimate="mle").fit(np.tile(x[:, None], (2, 2)), np.repeat([0, 1], 4))
    assert (nb.statistics_.blocks[0].m2 == 90.0).all()
    assert (nb.statistics_.blocks[0].mean == 1e9 + 10).all()
