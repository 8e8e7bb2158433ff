"""Counts do not depend on block size, sparse format, dtype or memory layout."""

import logging
import warnings

import jax
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.special
import sklearn.naive_bayes
from hypothesis import given
from hypothesis import strategies as st

from bayesnb import BernoulliNB, CategoricalNB, GaussianNB, MixedNB, MultinomialNB, PoissonNB
from bayesnb.encoding import encoded_rows
from bayesnb.families import arrays
from bayesnb.fitted import scoring
from tests.strategies import assert_leaves, thorough, variants

RNG = np.random.default_rng(0)
N, F, C = 300, 5, 3
Y = RNG.integers(0, C, N)
COUNTS = RNG.poisson(1.0, (N, F))
REALS = RNG.normal(3.0, 2.0, (N, F))
WEIGHT = RNG.integers(1, 4, N).astype(float)
SMALL_PIECES = 16 * F  # cells; the fewest rows of a block are 16


def by_class(values: np.ndarray, y: np.ndarray = Y, weight: np.ndarray | None = None) -> np.ndarray:
    """(C, …) weighted sums over the rows of each class, in exact integers or long doubles."""
    weight = np.ones(len(y)) if weight is None else weight
    return np.stack([np.tensordot(weight * (y == c), values.astype(float), axes=1) for c in range(y.max() + 1)])


def leaves(nb) -> list[np.ndarray]:
    return jax.tree.leaves(nb.statistics_)


def assert_same_statistics(a, b, rtol=0.0):
    assert_leaves(a.statistics_, b.statistics_, rtol)


# -- what is counted -----------------------------------------------------------------------------------


def test_counts_are_those_of_numpy():
    nb = MultinomialNB().fit(COUNTS, Y, WEIGHT)
    np.testing.assert_array_equal(nb.feature_count_, by_class(COUNTS, weight=WEIGHT))
    nb = BernoulliNB().fit(COUNTS, Y, WEIGHT)
    np.testing.assert_array_equal(nb.feature_count_, by_class(COUNTS > 0, weight=WEIGHT))
    np.testing.assert_array_equal(nb.class_count_, by_class(np.ones(N), weight=WEIGHT))
    nb = CategoricalNB().fit(COUNTS, Y, WEIGHT)
    for j, (levels, count) in enumerate(zip(nb.categories_, nb.category_count_, strict=True)):
        assert list(levels) == sorted(set(COUNTS[:, j]))
        np.testing.assert_array_equal(count, by_class(COUNTS[:, [j]] == levels, weight=WEIGHT))
    nb = PoissonNB().fit(COUNTS, Y, WEIGHT)
    np.testing.assert_array_equal(nb.feature_count_, by_class(COUNTS, weight=WEIGHT))
    moments = GaussianNB().fit(REALS, Y, WEIGHT).statistics_.blocks[0]
    mean = by_class(REALS, weight=WEIGHT) / by_class(np.ones((N, F)), weight=WEIGHT)
    np.testing.assert_allclose(moments.mean, mean, rtol=1e-13)
    np.testing.assert_allclose(moments.m2, by_class((REALS - mean[Y]) ** 2, weight=WEIGHT), rtol=1e-13)


@pytest.mark.slow("other variants compile kernels of their own", but="BernoulliNB")
@pytest.mark.parametrize("make", [BernoulliNB, MultinomialNB])
def test_dense_and_every_sparse_format_are_the_same_data(make):
    dense = make().fit(COUNTS, Y, WEIGHT)
    with np.errstate(divide="ignore"):
        expected = {e: dense.predict_joint_log_proba(COUNTS, estimate=e) for e in ("mle", "mean", "predictive")}
    matrices = (sp.csr_matrix, sp.csc_matrix, sp.coo_matrix)
    for convert in (*matrices, sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_array, sp.dok_array, sp.bsr_array):
        X = convert(COUNTS)
        nb = make().fit(X, Y, WEIGHT)
        assert_same_statistics(nb, dense, rtol=1e-14)
        for estimate, scores in expected.items():
            actual = nb.predict_joint_log_proba(X, estimate=estimate)
            np.testing.assert_allclose(actual, scores, rtol=1e-12, atol=1e-12)


@pytest.mark.slow("other variants compile kernels of their own", but="BernoulliNB")
@pytest.mark.parametrize("make", [BernoulliNB, MultinomialNB])
def test_unsorted_and_duplicate_entries_and_stored_zeros_are_added_up(make):
    data = np.tile([2.0, 1.0, 3.0, 0.0, 1.0, 1.0, 2.0], N // 3)
    indices = np.tile([3, 0, 3, 1, 2, 2, 4], N // 3)
    indptr = np.append(np.cumsum(np.tile([4, 0, 3], N // 3)), 0)[np.arange(-1, N)]
    X = sp.csr_array((data, indices, indptr), shape=(N, F))
    kept = [X.data.copy(), X.indices.copy(), X.indptr.copy()]
    a, b = make().fit(X, Y), make().fit(X.toarray(), Y)
    for original, now in zip(kept, (X.data, X.indices, X.indptr), strict=True):
        np.testing.assert_array_equal(original, now)
    assert_same_statistics(a, b, rtol=1e-14)
    np.testing.assert_allclose(a.predict_joint_log_proba(X), b.predict_joint_log_proba(X.toarray()), rtol=1e-12)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("make", [BernoulliNB, MultinomialNB])
@given(seed=st.integers(0, 2**32 - 1))
def test_sparse_and_dense_agree_under_fractional_weights_in_every_estimate(make, seed):
    """Absences are what is left of a class: rounding may not leave less than nothing."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (12, 4)) * rng.integers(0, 2, 4)
    X[:, 0] = 1
    y, weight = np.arange(12) % 2, rng.random(12) + 0.01
    a, b = make(alpha=0.0).fit(sp.csr_array(X), y, weight), make(alpha=0.0).fit(X, y, weight)
    assert min(leaf.min() for leaf in leaves(a)[:2]) >= 0
    assert_same_statistics(a, b, rtol=1e-13)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for estimate in ("mle", "mean", "predictive"):
            expected = b.predict_joint_log_proba(X, estimate=estimate)
            np.testing.assert_allclose(a.predict_joint_log_proba(X, estimate=estimate), expected, rtol=1e-9, atol=1e-9)


# -- how it is stored ------------------------------------------------------------------------------------

DTYPES = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
DTYPES = [*DTYPES, "bool", "float16", "float32", "float64", "longdouble"]
ESTIMATORS = [BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB, PoissonNB]
every_estimator = pytest.mark.parametrize("make", ESTIMATORS)


@pytest.mark.slow("other variants compile kernels of their own", but="int8-CategoricalNB")
@every_estimator
@pytest.mark.parametrize("dtype", thorough(DTYPES, ("int8", "uint16", "int64", "bool", "float16", "longdouble")))
def test_every_dtype_holds_the_same_numbers(make, dtype):
    X = (COUNTS > 0).astype(dtype) if dtype == "bool" else COUNTS.astype(dtype)
    a, b = make().fit(X, Y), make().fit(X.astype(float), Y)
    assert_same_statistics(a, b, rtol=1e-14)
    expected = b.predict_joint_log_proba(X.astype(float))
    np.testing.assert_allclose(a.predict_joint_log_proba(X), expected, rtol=0, atol=1e-10)


def layouts(X: np.ndarray, folder):
    """The same array in other memory layouts."""
    memmap = np.memmap(folder / "X", dtype=X.dtype, mode="w+", shape=X.shape)
    memmap[:] = X
    memmap.flush()
    wide = np.empty((2 * len(X), 3 * X.shape[1]), X.dtype)
    wide[::2, ::3] = X
    read_only = X.copy()
    read_only.flags.writeable = False
    shifted = np.empty(X.nbytes + 1, np.uint8)[1:].view(X.dtype).reshape(X.shape)
    shifted[:] = X
    return {
        "Fortran order": np.asfortranarray(X),
        "negative strides": np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
        "every second row": wide[::2, ::3],
        "broadcast": np.broadcast_to(X[:1], X.shape) if (X[:1] == X).all() else X,
        "read-only": read_only,
        "memmap": np.memmap(folder / "X", dtype=X.dtype, mode="r", shape=X.shape),
        "not aligned": shifted,
        "big-endian": X.astype(X.dtype.newbyteorder(">")),
        "list": X.tolist(),
    }


@pytest.mark.slow("other variants compile kernels of their own")
@every_estimator
@pytest.mark.parametrize("dtype", thorough(["int32", "float64", "float32"], ["float32"]))
def test_the_layout_in_memory_does_not_matter_and_nothing_is_written_to_it(make, dtype, tmp_path):
    X = COUNTS.astype(dtype)
    reference = make().fit(X, Y)
    expected = reference.predict_proba(X)
    for name, other in layouts(X, tmp_path).items():
        nb = make().fit(other, Y)
        assert_same_statistics(nb, reference, rtol=1e-14)
        np.testing.assert_allclose(nb.predict_proba(other), expected, rtol=1e-12, err_msg=name)
        np.testing.assert_array_equal(other, X)


@pytest.mark.slow("other variants compile kernels of their own", but="CategoricalNB")
@every_estimator
def test_a_result_does_not_change_when_the_input_does_afterwards(make):
    """Kernels read their arguments later than they are called: all must be read when `fit` returns."""
    X = np.tile(COUNTS.astype(float), (200, 1))
    y = np.tile(Y, 200)
    expected = [leaf.copy() for leaf in leaves(make().fit(X.copy(), y))]
    for _ in range(3):
        buffer = X.copy()
        nb = make().fit(buffer, y)
        buffer[:] = 1e6
        for mine, theirs in zip(leaves(nb), expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.slow("compiles kernels of its own")
def test_fit_does_not_copy_a_large_array():
    import tracemalloc

    X = RNG.normal(size=(200_000, 20))  # 32 MB
    y = RNG.integers(0, 2, len(X))
    nb = GaussianNB().fit(X[:100_000], y[:100_000])
    nb.predict(X)
    tracemalloc.start()
    nb.fit(X, y)
    nb.predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 2


# -- large numbers -----------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("make", [MultinomialNB, PoissonNB, GaussianNB, BernoulliNB])
@pytest.mark.parametrize("big", [10**12, 2**53, 2**62, 2**63 - 1])
def test_huge_counts_add_up_and_score(make, big):
    X = np.array([[big, 1, 0], [big, big, 2], [3, 0, big]])
    y = [0, 0, 1]
    a, b = make().fit(X, y), make().fit(X.astype(float), y)
    assert_same_statistics(a, b, rtol=1e-14)
    if make in (MultinomialNB, PoissonNB):
        np.testing.assert_allclose(a.feature_count_, [[2.0 * big, big + 1.0, 2], [3, 0, big]], rtol=1e-15)
    for estimate in ("mean", "predictive"):
        scores = a.predict_joint_log_proba(X, estimate=estimate)
        assert np.isfinite(scores).all()
        np.testing.assert_allclose(scores, b.predict_joint_log_proba(X.astype(float), estimate=estimate), rtol=1e-12)
    assert np.isfinite(a.log_evidence_)


@variants("dtype", ["int64", "uint64"])
def test_integers_near_the_ends_of_their_type_are_levels_like_others(dtype):
    info = np.iinfo(dtype)
    column = np.array([info.max, info.max - 1, info.min, info.min + 1, info.max, 5], dtype)[:, None]
    nb = CategoricalNB().fit(column, [0, 0, 0, 1, 1, 1])
    assert [int(v) for v in nb.categories_[0]] == sorted({int(v) for v in column[:, 0]})
    np.testing.assert_array_equal(nb.category_count_[0].sum(axis=0), [1, 1, 1, 1, 2][: len(nb.categories_[0])])
    near = np.full((6, 1), info.max, dtype) - np.arange(6, dtype=dtype)[:, None]
    nb = CategoricalNB().fit(near, [0, 0, 0, 1, 1, 1])
    assert [int(v) for v in nb.categories_[0]] == [int(info.max) - i for i in range(5, -1, -1)]
    np.testing.assert_array_equal(nb.predict(near), [0, 0, 0, 1, 1, 1])


def test_a_million_small_weights_are_not_lost():
    """A float32 count would stop growing at 2²⁴."""
    nb = BernoulliNB().fit(np.ones((1, 1)), [0], [2.0**25]).partial_fit(np.ones((1, 1)), [0], sample_weight=[1.0])
    assert nb.class_count_[0] == 2**25 + 1
    assert nb.feature_count_[0, 0] == 2**25 + 1


# -- blocks ------------------------------------------------------------------------------------------

CUTTABLE = {
    "categorical": (CategoricalNB(), COUNTS),
    "bernoulli": (BernoulliNB(), COUNTS),
    "sparse bernoulli": (BernoulliNB(), sp.csr_array(COUNTS)),
    "multinomial": (MultinomialNB(), COUNTS),
    "sparse multinomial": (MultinomialNB(), sp.csr_array(COUNTS)),
    "gaussian": (GaussianNB(), np.where(RNG.random((N, F)) < 0.1, np.nan, REALS)),
    "poisson": (PoissonNB(), np.where(RNG.random((N, F)) < 0.1, np.nan, COUNTS)),
    "mixed": (MixedNB(poisson=[0], multinomial=[1, 2], categorical=[3]), COUNTS),
}


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("kind", thorough(CUTTABLE, ("categorical", "sparse multinomial", "mixed")))
def test_the_size_of_pieces_does_not_matter(kind, monkeypatch):
    make, X = CUTTABLE[kind]
    whole = make.fit(X, Y, WEIGHT)
    statistics = [leaf.copy() for leaf in leaves(whole)]
    estimates = ("mean", "predictive")
    expected = {e: whole.predict_joint_log_proba(X, estimate=e) for e in estimates}
    decisions = whole.predict(X)
    monkeypatch.setattr(encoded_rows, "CELLS", SMALL_PIECES)
    monkeypatch.setattr(encoded_rows, "ENTRIES", SMALL_PIECES)
    monkeypatch.setattr(encoded_rows, "SUMMED_ENTRIES", SMALL_PIECES)
    pieces = list(encoded_rows.row_pieces(whole.encoding_.rows(whole.fitted_.table(X)), N))
    assert len(pieces) > 3
    again = make.fit(X, Y, WEIGHT)
    for mine, theirs in zip(leaves(again), statistics, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
    for estimate in estimates:
        np.testing.assert_allclose(
            again.predict_joint_log_proba(X, estimate=estimate), expected[estimate], rtol=1e-11, atol=1e-11
        )
    np.testing.assert_array_equal(again.predict(X), decisions)


@pytest.mark.parametrize("make", [BernoulliNB, MultinomialNB])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_the_order_of_sparse_rows_does_not_matter(make, dtype, monkeypatch):
    monkeypatch.setattr(encoded_rows, "ENTRIES", SMALL_PIECES)
    monkeypatch.setattr(encoded_rows, "SUMMED_ENTRIES", SMALL_PIECES)
    cells = np.where(np.arange(N)[:, None] % 7 == 0, 0, COUNTS)  # every seventh row is empty
    for order in (np.arange(N), np.argsort(Y), RNG.permutation(N)):
        X = sp.csr_array(cells[order].astype(dtype))
        X.indptr, X.indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
        nb = make().fit(X, Y[order], WEIGHT[order])
        counted = cells > 0 if make is BernoulliNB else cells
        np.testing.assert_array_equal(nb.feature_count_, by_class(counted, weight=WEIGHT))
        np.testing.assert_array_equal(nb.class_count_, by_class(np.ones(N), weight=WEIGHT))
        each = scipy.special.gammaln(cells.sum(axis=1) + 1) - scipy.special.gammaln(cells + 1).sum(axis=1)
        log_base = 0.0 if make is BernoulliNB else WEIGHT @ each
        np.testing.assert_allclose(nb.statistics_.log_base, log_base, rtol=1e-12)


@st.composite
def sparse_tables(draw):
    """Sparse rows (N, 4) whose entries are unsorted, repeated or 0, and labels and weights of the rows."""
    n, n_entries = draw(st.integers(2, 30)), draw(st.integers(1, 60))
    dtype = np.dtype(draw(st.sampled_from(["bool", "int8", "uint16", "int64", "float32", "float64"])))
    values = {
        "b": st.booleans(),
        "i": st.integers(0, 127),
        "u": st.integers(0, 9),
        "f": st.floats(0, 5000, width=32) | st.sampled_from([0, 1, 1, 1, 2, 4095, 4096]),
    }
    data = np.array(draw(st.lists(values[dtype.kind], min_size=n_entries, max_size=n_entries)), dtype)
    column = np.array(draw(st.lists(st.integers(0, 3), min_size=n_entries, max_size=n_entries)))
    cuts = sorted(draw(st.lists(st.integers(0, n_entries), min_size=n - 1, max_size=n - 1)))
    y = np.append([0, 1], draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2)))
    weights = st.sampled_from([0.0, 1.0, 3.0]) | st.floats(0.01, 100)
    weight = draw(st.just(np.ones(n)) | st.lists(weights, min_size=n, max_size=n).map(np.array))
    weight[:2] = np.maximum(weight[:2], 1)
    return sp.csr_array((data, column, np.array([0, *cuts, n_entries])), (n, 4)), y.astype(int), weight


@given(table=sparse_tables(), small=st.booleans())
def test_sparse_counts_are_those_of_scikit_learn_and_of_dense_rows(table, small):
    X, y, weight = table
    entry_row = np.repeat(np.arange(len(y)), np.diff(X.indptr))
    dense = np.zeros(X.shape)
    np.add.at(dense, (entry_row, X.indices), X.data.astype(float))
    dense = np.minimum(dense, 1) if X.dtype == bool else dense
    rtol = 0 if (weight == 1).all() and (dense == np.round(dense)).all() else 1e-12
    with pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(encoded_rows, "ENTRIES", 6)
            patch.setattr(encoded_rows, "SUMMED_ENTRIES", 6)
        nb = MultinomialNB().fit(X.copy(), y, weight)
        present = BernoulliNB().fit(X.copy(), y, weight)
    np.testing.assert_allclose(nb.feature_count_, by_class(dense, y, weight), rtol)
    peer = sklearn.naive_bayes.MultinomialNB().fit(dense, y, weight)
    np.testing.assert_allclose(nb.feature_count_, peer.feature_count_, rtol=1e-12)
    each = scipy.special.gammaln(dense.sum(axis=1) + 1) - scipy.special.gammaln(dense + 1).sum(axis=1)
    np.testing.assert_allclose(nb.statistics_.log_base, weight @ each, rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(present.feature_count_, by_class(dense > 0, y, weight), rtol)
    peer = sklearn.naive_bayes.BernoulliNB().fit(dense, y, weight)
    np.testing.assert_allclose(present.feature_count_, peer.feature_count_, rtol=1e-12)


def test_sums_of_counts_beyond_the_integers_of_float32_are_exact():
    count = np.tile([[4095, 1], [4093, 0], [1, 4095]], (3000, 1))
    for y in (np.zeros(len(count), int), np.arange(len(count)) % 2):
        np.testing.assert_array_equal(MultinomialNB().fit(sp.csr_array(count), y).feature_count_, by_class(count, y))


def test_rows_beyond_sixteen_bits_have_multinomial_coefficients_of_their_own():
    rows = encoded_rows.WordRows(sp.csr_array(np.tile([[2, 1], [1, 0], [0, 4]], (2**15, 1))))
    expected = np.tile(np.log([3.0, 1.0, 1.0]), 2**15)
    np.testing.assert_allclose(scoring.log_base((rows,), len(expected)), expected, atol=1e-12)


def test_pieces_cover_all_rows_once_and_pad_with_nothing():
    nb = GaussianNB().fit(REALS, Y)
    rows = nb.encoding_.rows(nb.fitted_.table(REALS))
    seen, weights = [], []
    for piece, x, (weight,) in encoded_rows.row_pieces(rows, N, WEIGHT):
        (cells,) = jax.tree.leaves(x)
        assert len(cells) == len(weight) >= piece.stop - piece.start
        np.testing.assert_array_equal(cells[: piece.stop - piece.start], REALS[piece])
        assert not weight[piece.stop - piece.start :].any()
        seen += range(piece.start, piece.stop)
        weights.append(weight.sum())
    assert seen == list(range(N))
    assert sum(weights) == WEIGHT.sum()


# -- compilations --------------------------------------------------------------------------------------


class Compilations(logging.Handler):
    """Counts all that XLA compiles, single operations too."""

    def __enter__(self):
        self.names = []
        self.loggers = [logging.getLogger(name) for name in ("jax._src.interpreters.pxla", "jax._src.dispatch")]
        self.was = [(logger.level, logger.propagate) for logger in self.loggers]
        for logger in self.loggers:
            logger.addHandler(self)
            logger.setLevel(logging.DEBUG)
            logger.propagate = False
        return self

    def emit(self, record):
        message = record.getMessage()
        if message.startswith("Compiling "):
            self.names.append(message.split()[1])

    def __exit__(self, *exc):
        for logger, (level, propagate) in zip(self.loggers, self.was, strict=True):
            logger.removeHandler(self)
            logger.setLevel(level)
            logger.propagate = propagate


def test_the_count_of_compilations_works():
    with Compilations() as compiled:
        jax.jit(lambda x: x + 41.5)(np.arange(17.0))
    assert len(compiled.names) == 1


# 40 sizes of batches, the first of them large enough to have all levels; blocks have 16, 64 or 256 rows.
SIZES = [200, 1, 2, 3, 5, 7, 11, 15, 16, 17, 20, 31, 33, 40, 47, 63, 64, 65, 70, 80, 90, 99, 100, 110, 120, 127, 128]
SIZES += [129, 140, 150, 160, 171, 180, 190, 210, 220, 230, 240, 255, 256]


def work(nb, X, y):
    nb.partial_fit(X, y, classes=range(C))
    nb.predict(X)
    nb.predict_proba(X)
    nb.forget(X[: len(y) // 2 + 1], y[: len(y) // 2 + 1])
    return nb.log_evidence_


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize(
    ("make", "convert", "extra"),
    [
        # small batches have fewer levels
        (CategoricalNB, lambda X: X.astype(np.int8), 4),
        pytest.param(BernoulliNB, lambda X: X.astype(float), 0, marks=pytest.mark.slow),
        pytest.param(GaussianNB, lambda X: X.astype(float), 0, marks=pytest.mark.slow),
        pytest.param(PoissonNB, lambda X: X.astype(float), 0, marks=pytest.mark.slow),
        # sparse: entries and distinct pairs are padded too
        pytest.param(BernoulliNB, sp.csr_array, 4, marks=pytest.mark.slow),
        (MultinomialNB, sp.csr_array, 12),
    ],
)
def test_forty_sizes_of_batches_compile_a_few_kernels(make, convert, extra, monkeypatch):
    """Counting, tables, decisions and probabilities for three sizes of blocks; and the evidence."""
    rng = np.random.default_rng(5)
    assert len(set(SIZES)) == 40
    monkeypatch.setattr(arrays, "FEW", -1)
    nb = make()
    with Compilations() as compiled:
        for n in SIZES:
            work(nb, convert(rng.poisson(1.0, (n, 7)).clip(0, 4)), rng.integers(0, C, n))
    assert len(compiled.names) <= 4 * 3 + 3 + extra, compiled.names
    assert sum("_add_rows" in name for name in compiled.names) <= 3 + extra
    assert sum("_score" in name for name in compiled.names) <= 2 * (3 + extra)
