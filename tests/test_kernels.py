"""Every fit ends in the compiled update, for few shapes; its failure leaves the estimator as it was."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

import bayesnb as bnb
from bayesnb import kernels
from tests.data import path_of
from tests.estimators.cases import CASES

NUMBERS, LEVELS, COUNTS = (CASES[name].X for name in ("GaussianNB", "CategoricalNB", "PoissonNB"))
Y = CASES["GaussianNB"].y
TRACED = "/jax/core/compile/jaxpr_trace_duration"
COMPILED = "/jax/core/compile/backend_compile_duration"


@contextmanager
def listening(event: str) -> Iterator[list[str]]:
    """List, filled during the block, with the names of the functions that JAX traces or compiles."""
    names: list[str] = []

    def listen(key: str, _: float, **details: Any) -> None:
        if key == event and names is not closed:
            names.append(details["fun_name"])

    closed: list[str] | None = None
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield names
    finally:
        closed = names


def fit_batches(nb: Any) -> Any:
    return nb.partial_fit(LEVELS[:30], Y[:30], np.unique(Y)).partial_fit(LEVELS[30:], Y[30:])


def saved(tmp_path: Any) -> Any:
    bnb.save(bnb.CategoricalNB().fit(LEVELS, Y), tmp_path / "model.safetensors")
    kernels.conjugate_update.clear_cache()
    return bnb.load(tmp_path / "model.safetensors")


def fit_counts() -> Any:
    rows = [(label, None, None, None, n, None, None) for label, n in (("ripe", 3), ("raw", 2))]
    rows += [("ripe", "colour", "str", "dark", 3, None, None), ("raw", "colour", "str", "light", 2, None, None)]
    return bnb.from_counts(bnb.CategoricalNB(), rows)


def fit_with_dask() -> Any:
    array = pytest.importorskip("dask.array")
    X, y = (array.from_array(values, chunks=len(Y) // 2) for values in (NUMBERS, Y))
    return bnb.distributed.fit(bnb.GaussianNB(), X, y)


FITS: dict[str, Callable[[], Any]] = {
    **{name: lambda case=case: case.make().fit(case.X, case.y) for name, case in CASES.items()},
    "BinnedNB": lambda: bnb.BinnedNB().fit(NUMBERS, Y),
    "FeatureAveragedNB": lambda: bnb.FeatureAveragedNB().fit(NUMBERS, Y),
    "FeatureAveragedNB, levels": lambda: bnb.FeatureAveragedNB(bnb.CategoricalNB()).fit(LEVELS, Y),
    "TAN": lambda: bnb.TAN().fit(LEVELS, Y),
    "SPODE": lambda: bnb.SPODE().fit(LEVELS, Y),
    "KDB": lambda: bnb.KDB().fit(LEVELS, Y),
    "NetworkNB": lambda: bnb.NetworkNB({1: 0}).fit(LEVELS, Y),
    "TreeAveragedNB": lambda: bnb.TreeAveragedNB().fit(LEVELS, Y),
    "WeightedNB": lambda: bnb.WeightedNB(bnb.CategoricalNB()).fit(LEVELS, Y),
    "partial_fit": lambda: fit_batches(bnb.CategoricalNB()),
    "forget": lambda: CASES["CategoricalNB"].fit().forget(LEVELS[:9], Y[:9]),
    "decay": lambda: CASES["CategoricalNB"].fit().decay(0.5),
    "fit_stream": lambda: bnb.fit_stream(bnb.GaussianNB(), [(NUMBERS, Y)] * 2, progress=False),
    "from_counts": fit_counts,
    "distributed.fit": fit_with_dask,
}


@pytest.mark.slow("compiles the update anew", but=["CategoricalNB", "GaussianNB", "partial_fit", "fit_stream"])
@pytest.mark.parametrize("name", FITS)
def test_a_fit_runs_the_compiled_update_and_compiles_it_once(name):
    kernels.conjugate_update.clear_cache()
    with listening(TRACED) as first:
        FITS[name]()
    assert "conjugate_update" in first
    with listening(COMPILED) as second:
        FITS[name]()
    assert not [function for function in second if "conjugate_update" in function]


def test_loading_runs_the_compiled_update(tmp_path):
    with listening(TRACED) as traced:
        saved(tmp_path)
    assert "conjugate_update" in traced


def test_ten_folds_share_two_updates():
    """Rare levels are missing in some folds, so that all folds have other numbers of levels."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {name: np.minimum(rng.geometric(0.3, 400), n).astype(str) for name, n in zip("abc", (5, 9, 40), strict=True)}
    )
    kernels.conjugate_update.clear_cache()
    with listening(COMPILED) as compiled:
        cross_val_score(bnb.CategoricalNB(), X, rng.integers(0, 2, 400), cv=10)
    assert sum("conjugate_update" in function for function in compiled) <= 2


@pytest.mark.slow("reads 32,560 rows")
def test_ten_folds_of_adult_share_two_updates():
    frame = pd.read_csv(path_of("adult-train.csv"))
    X, y = frame.iloc[:, :-1].select_dtypes(exclude="number"), frame.iloc[:, -1]
    kernels.conjugate_update.clear_cache()
    with listening(COMPILED) as compiled:
        cross_val_score(bnb.CategoricalNB(), X, y, cv=10)
    assert sum("conjugate_update" in function for function in compiled) <= 2
    assert max(map(compiled.count, compiled)) <= 2


@pytest.mark.slow("fits a thousand batches", but="200")
@pytest.mark.parametrize("n", [200, 1000])
def test_levels_that_grow_row_by_row_seldom_compile(n):
    nb = bnb.CategoricalNB()
    kernels.conjugate_update.clear_cache()
    with listening(COMPILED) as compiled:
        for i in range(n):
            nb.partial_fit([[f"level {i}"]], [i % 2], [0, 1])
    assert len(compiled) <= 12
    assert nb.posterior_.blocks[0].concentration.shape == (2, n)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (8, 128), (9, 129), (17, 1000)])
def test_padding_is_cut_off(shape):
    rng = np.random.default_rng(0)
    prior = bnb.NaiveBayes.multinomial(*shape, alpha=rng.gamma(1.0, size=shape))
    statistics = bnb.Statistics(rng.random(shape[0]), (bnb.families.LevelCounts(rng.random(shape)),), 0.0)
    posterior = kernels.update(prior, statistics)
    levels = posterior.blocks[0]
    np.testing.assert_array_equal(levels.concentration, prior.blocks[0].concentration + statistics.blocks[0].count)
    np.testing.assert_array_equal(posterior.class_prior.concentration, 1.0 + statistics.class_count[None])
    assert levels.num_groups == 1
    assert levels.group.shape == shape[1:]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("method", ["fit", "partial_fit", "forget", "decay"])
def test_a_failure_in_the_update_leaves_the_estimator_as_it_was(method, failure, monkeypatch):
    nb = CASES["CategoricalNB"].fit()
    before = dict(vars(nb))

    def fail(*_: Any) -> Any:
        raise failure

    monkeypatch.setattr(kernels, "conjugate_update", fail)
    with pytest.raises(failure):
        getattr(nb, method)(*((0.5,) if method == "decay" else (LEVELS[:9], Y[:9])))
    assert vars(nb) == before
