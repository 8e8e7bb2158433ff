"""Fitting Dask blocks equals fitting all rows; predictions of blocks are lazy."""

import os
import signal
import sys
import time
from itertools import pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import bayesnb as bnb
from bayesnb.distributed import fit
from tests.raises import refused
from tests.strategies import CLASSES, KINDS, assert_leaves, problems, thorough, variants
from tests.test_streaming import FRAME, LABELS, LEVELS, RNG, N, same

X, Y = da.from_array(LEVELS, chunks=(60, 3)), da.from_array(LABELS, chunks=47)
REAL = RNG.normal(size=(N, 4))
FEATURES = ["a", "b", "c"]


def frame(npartitions=6):
    return dd.from_pandas(FRAME, npartitions=npartitions)


def same_bits(a, b) -> None:
    same(a, b)
    assert_leaves(a.statistics_, b.statistics_)


# -- fitting -------------------------------------------------------------------------------------


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("kind", thorough(KINDS))
@settings(max_examples=6)
@given(data=st.data())
def test_it_is_fit_on_all_rows(kind, data):
    problem = data.draw(problems(kind))
    weight = problem.weight * data.draw(st.lists(st.booleans(), min_size=len(problem), max_size=len(problem)))
    weight[0] = 1.0
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(problem)), max_size=5))), len(problem)]
    chunks = tuple(np.diff(cuts).tolist())  # some of no rows, some of no weight
    with dask.config.set(scheduler=data.draw(st.sampled_from(["threads", "synchronous"]))):
        if hasattr(problem.X, "iloc") or sp.issparse(problem.X):
            pieces = [problem.take(np.arange(a, b)) for a, b in pairwise(cuts)]
            weights = np.split(weight, cuts[1:-1])
            parts = [dask.delayed((p.X, p.y, w), traverse=False) for p, w in zip(pieces, weights, strict=True)]
            nb = fit(clone(problem.nb), parts, classes=CLASSES)
        else:
            arrays = da.from_array(problem.X, (chunks, 2)), da.from_array(problem.y, 3), da.from_array(weight, 5)
            nb = fit(clone(problem.nb), *arrays, classes=CLASSES)
    same(nb, problem.fit(weight=weight))


@pytest.mark.slow("compiles kernels of its own")
def test_dataframes():
    numbered = FRAME.assign(i=np.arange(N))
    df, some = dd.from_pandas(numbered, npartitions=6), numbered.query("i < 150 or i > 300")
    df = df.query("i < 150 or i > 300")  # one partition is left without rows
    assert 0 in df.map_partitions(len).compute().tolist()
    nb = bnb.MixedNB(categorical=["b"])
    expected = clone(nb).fit(some[FEATURES], some["y"], some["w"])
    same(fit(nb, df[FEATURES], df["y"], df["w"]), expected)
    assert nb.feature_names_in_.tolist() == FEATURES
    labels, weights = df["y"].astype(object).to_dask_array(), df["w"].to_dask_array()
    same(fit(clone(nb), df[FEATURES], labels, weights), expected)
    numbers = df[["b", "c"]].to_dask_array()
    same(fit(bnb.GaussianNB(), numbers, df["y"]), bnb.GaussianNB().fit(some[["b", "c"]].to_numpy(), some["y"]))


def test_declared_categories():
    pandas = FRAME[["a", "y"]].astype({"a": pd.CategoricalDtype(list("klmnop"))})
    df = dd.from_pandas(pandas, npartitions=10)
    nb = fit(bnb.CategoricalNB(), df[["a"]], df["y"])
    same_bits(nb, bnb.CategoricalNB().fit(pandas[["a"]], pandas["y"]))
    assert "p" in nb.encoding_.blocks[0].levels[0].values
    with pytest.raises(ValueError, match=r"categories of column 'a' are not known.*X\.categorize"):
        fit(nb, df[["a"]].assign(a=df["a"].cat.as_unknown()), df["y"])


@pytest.mark.slow("compiles kernels of its own")
def test_every_block_is_read_once():
    reads = []

    def read(i):
        reads.append(i)
        return FRAME.iloc[50 * i : 50 * i + 50]

    with dask.config.set(scheduler="threads"):
        df = dd.from_map(read, range(10), meta=FRAME.iloc[:0])
        nb = fit(bnb.MixedNB(numbers="gaussian"), df[["b", "c"]], df["y"], df["w"])
        assert sorted(reads) == list(range(10))
        reads.clear()
        blocks = [dask.delayed(read)(i) for i in range(10)]
        columns = [[dask.delayed(lambda rows, c=c: rows[c].to_numpy())(b) for b in blocks] for c in (["b", "c"], "y")]
        values = da.concatenate([da.from_delayed(b, (50, 2), float) for b in columns[0]])
        labels = da.concatenate([da.from_delayed(b, (50,), object) for b in columns[1]])
        same(fit(bnb.GaussianNB(), values, labels), bnb.GaussianNB().fit(FRAME[["b", "c"]].to_numpy(), FRAME["y"]))
        assert sorted(reads) == list(range(10))
    same(nb, bnb.MixedNB(numbers="gaussian").fit(FRAME[["b", "c"]], FRAME["y"], FRAME["w"]))


@pytest.mark.slow("compiles kernels of its own")
def test_the_first_rows_decide_the_columns():
    whole, fractions = REAL[:300].round(), REAL[300:]
    for parts in ([whole, fractions], [fractions, whole]):
        values = np.concatenate(parts)
        sizes = (100, len(parts[0]) - 100, N - len(parts[0]))
        weight = np.repeat([0.0, 1.0, 1.0], sizes)
        arrays = [da.from_array(a, (sizes, *([-1] * (a.ndim - 1)))) for a in (values, LABELS, weight)]
        nb = fit(bnb.NetworkNB(handle_unknown="error"), *arrays)
        counted = [(values[a : a + 50], LABELS[a : a + 50]) for a in range(100, N, 50)]
        same(nb, bnb.fit_stream(bnb.NetworkNB(), counted, classes=np.unique(LABELS), progress=False))


@pytest.mark.slow("compiles kernels of its own")
def test_the_first_block_says_where_cells_end_and_which_density_a_column_has():
    parts = [(REAL[a : a + 100], LABELS[a : a + 100]) for a in range(0, N, 100)]
    arrays = [da.from_array(a, (100, *([-1] * (a.ndim - 1)))) for a in (REAL, LABELS)]
    for nb in (bnb.BinnedNB(cells=8), bnb.MixedNB(cells=8)):
        found = fit(nb, *arrays)
        streamed = bnb.fit_stream(type(nb)(cells=8), parts, classes=np.unique(LABELS), progress=False)
        same(found, streamed)
        assert all(np.array_equal(found.edges_[name], edges) for name, edges in streamed.edges_.items())


def test_what_cannot_be_fitted(monkeypatch):
    nb = bnb.MultinomialNB().fit(LEVELS, LABELS)
    before = dict(vars(nb))
    negative, unlabelled = LEVELS.copy(), LABELS.astype(float)
    negative[130, 2], unlabelled[70] = -1, np.nan
    unknown = X[X[:, 0] >= 0]
    cases = [
        ((da.from_array(negative, (60, 4)), Y), ValueError, "Block 2: Negative values.*-1 at row 10, column '2'"),
        ((X, da.from_array(unlabelled, 60)), ValueError, "Block 1: Input y contains NaN: the label of row 10"),
        ((X, Y, da.from_array(np.full(N, -1.0), 60)), ValueError, "Block 0: Negative values.*sample_weight"),
        ((X, Y, da.zeros(N)), ValueError, "sample_weight is zero for every row"),
        ((unknown, Y), ValueError, "X has 9 blocks of rows, and y has 11"),
        ((frame()[FEATURES], frame(3)["y"]), ValueError, "X has 6 blocks of rows, and y has 3"),
        ((dask.delayed(LEVELS), Y), TypeError, "X is a dask.delayed"),
        ((X[:0], Y[:0]), ValueError, "X has no rows"),
        ((X,), ValueError, "requires y"),
        ((X[:, 0], Y), ValueError, "X must have 2 dimensions"),
        ((LEVELS, LABELS), TypeError, "X is a numpy.ndarray.*from_array"),
        ((X, LABELS), TypeError, "y is a numpy.ndarray"),
        (([(LEVELS, LABELS)],), TypeError, "delayed batches"),
        (
            ([dask.delayed((LEVELS, LABELS)), dask.delayed((LEVELS[:, :2], LABELS))],),
            ValueError,
            "Block 1: X has 2 features, but MultinomialNB is expecting 4",
        ),
    ]
    for arguments, error, message in cases:
        refused(message, fit, nb, *arguments, error=error)
        assert vars(nb) == before
    nb.set_params(alpha=-1.0)
    refused("alpha", fit, nb, X, Y)
    assert vars(nb) == before | {"alpha": -1.0}
    for other in (bnb.TAN(), bnb.NaiveBayesMixture()):
        refused(r"distributed\.fit needs partial_fit", fit, other, X, Y, error=TypeError)
    monkeypatch.setitem(sys.modules, "dask", None)
    refused(r"pip install 'bayesnb\[dask\]'", fit, bnb.CategoricalNB(), X, Y, error=ImportError)


# -- on processes --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 2, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as local:
        yield local


@pytest.mark.slow("starts processes that import JAX")
@pytest.mark.parametrize("fatal", thorough([0, 13, 19], quick=[13]))
def test_a_killed_worker_changes_nothing(fatal, cluster, tmp_path):
    from distributed import Client

    def batches(fatal):
        def read(i, labels=LABELS, levels=LEVELS, real=REAL):
            if i == fatal:
                try:
                    (tmp_path / f"killed {fatal}").touch(exist_ok=False)
                except FileExistsError:
                    pass
                else:
                    os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.02)
            part = slice(25 * i, 25 * i + 25)
            return pd.DataFrame({"a": levels[part, 0].astype(str), "b": real[part, 1]}), labels[part]

        return [dask.delayed(read)(i) for i in range(20)]

    whole = pd.DataFrame({"a": LEVELS[:, 0].astype(str), "b": REAL[:, 1]})
    expected = bnb.MixedNB(numbers="gaussian").fit(whole, LABELS)
    with Client(cluster):
        unkilled = fit(bnb.MixedNB(numbers="gaussian"), batches(None))
        same(unkilled, expected)
        lazy = unkilled.predict(dd.from_pandas(whole, npartitions=3))
        np.testing.assert_array_equal(lazy.compute(), expected.predict(whole))
        with pytest.raises(ValueError, match="Block 1: Input y contains NaN"):
            fit(unkilled, [dask.delayed((REAL, LABELS)), dask.delayed((REAL, np.full(N, np.nan)))])
        killed = fit(bnb.MixedNB(numbers="gaussian"), batches(fatal))
        assert (tmp_path / f"killed {fatal}").exists()
    same_bits(killed, unkilled)
    with dask.config.set(scheduler="synchronous"):
        same_bits(fit(bnb.MixedNB(numbers="gaussian"), batches(None)), unkilled)


# -- predicting ----------------------------------------------------------------------------------

METHODS = ("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba")


class Computed(Exception):
    pass


def fail(rows):
    if len(rows):
        raise Computed
    return rows


@variants("nb", [bnb.CategoricalNB(), bnb.AODE(), bnb.MixedNB(categorical=["a", "b"])])
def test_predictions_are_lazy(nb):
    mixed = isinstance(nb, bnb.MixedNB)
    rows, labels = (FRAME[FEATURES], FRAME["y"]) if mixed else (LEVELS, LABELS)
    nb.fit(rows, labels)
    blocks = frame()[FEATURES] if mixed else X
    failing = blocks.map_partitions(fail, meta=blocks._meta) if mixed else blocks.map_blocks(fail, meta=blocks._meta)
    for name in METHODS:
        predict = getattr(nb, name)
        expected, lazy = np.concatenate([predict(rows[i : i + 60]) for i in range(0, N, 60)]), predict(blocks)
        assert isinstance(lazy, da.Array)
        assert lazy.dtype == expected.dtype
        assert lazy.ndim == expected.ndim
        if not mixed:
            assert lazy.chunks[0] == X.chunks[0]
            assert lazy.shape == expected.shape
        found = lazy.compute()
        if name == "predict":
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-12)
        waiting = predict(failing)
        with pytest.raises(Computed):
            waiting.compute()
    assert nb.score(blocks, frame()["y"] if mixed else Y) == np.mean(nb.predict(blocks).compute() == labels)


@pytest.mark.slow("compiles kernels of its own")
def test_wrong_columns_are_refused_at_once():
    nb = bnb.GaussianNB().fit(FRAME[["b", "c"]], FRAME["y"])
    df = frame()
    for columns, message in ((["c", "b"], "same order"), (["b", "w"], "feature names"), (["b"], "feature names")):
        refused(message, nb.predict, df[columns])
    nb.fit(LEVELS, LABELS)
    for columns, error, message in ((X[:, :2], ValueError, "2 features"), (X[0], ValueError, "two-dimensional")):
        refused(message, nb.predict_proba, columns, error=error)
    refused("dask array or a dask DataFrame", nb.predict, dask.delayed(LEVELS), error=TypeError)
    refused("not fitted", bnb.GaussianNB().predict, X, error=AttributeError)
