"""Histories of fitting, forgetting, decay and saving, in any order, against a list of rows."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sklearn.base import clone

import bayesnb as bnb
from bayesnb.fitted.counting import merge
from tests.faults.list_of_rows import Ledger, missing, probabilities
from tests.strategies import LEVELS, thorough

CLASSES = ("ash", "elm", "oak")
ALPHA = 0.7
STRANGE = "never seen"

letters = st.sampled_from(["u", "v", "w"])
present = st.sampled_from([0.0, 1.0, math.nan])
number = st.one_of(st.integers(-40, 40).map(lambda i: i / 10), st.just(math.nan))
counts = st.integers(0, 9).map(float)


@dataclass(frozen=True)
class Kind:
    """An estimator, and what its columns hold: "level", "presence", "number" or "count"."""

    make: Callable[[], Any]
    roles: tuple[str, ...]
    cells: tuple[st.SearchStrategy, ...]
    parents: dict[int, tuple[int, ...]]
    names: tuple[str, ...] | None = None
    level: type = object

    def table(self, rows: list[Any]) -> Any:
        columns = list(zip(*rows, strict=True))
        kind = {"level": self.level, "presence": float, "number": float, "count": float}
        arrays = [np.empty(len(rows), kind[role]) for role in self.roles]
        for array, column in zip(arrays, columns, strict=True):
            array[:] = column
        return (
            np.stack(arrays, axis=1) if self.names is None else pd.DataFrame(dict(zip(self.names, arrays, strict=True)))
        )


KINDS = {
    "categorical": Kind(
        lambda: bnb.CategoricalNB(alpha=ALPHA), ("level",) * 3, tuple(map(st.sampled_from, LEVELS)), {}
    ),
    "integers": Kind(
        lambda: bnb.CategoricalNB(alpha=ALPHA), ("level",) * 3, (st.sampled_from([0, 7, -3, 2]),) * 3, {}, level=int
    ),
    "bernoulli": Kind(lambda: bnb.BernoulliNB(alpha=ALPHA), ("presence",) * 3, (present,) * 3, {}),
    "gaussian": Kind(bnb.GaussianNB, ("number",) * 2, (number,) * 2, {}),
    "mixed": Kind(
        lambda: bnb.MixedNB(categorical="a", bernoulli="b", gaussian="c", poisson="d", alpha=ALPHA),
        ("level", "presence", "number", "count"),
        (st.sampled_from(LEVELS[2]), present, number, counts),
        {},
        ("a", "b", "c", "d"),
    ),
    "network": Kind(
        lambda: bnb.NetworkNB({1: 0, 2: [0, 1]}, alpha=ALPHA), ("level",) * 3, (letters,) * 3, {1: (0,), 2: (0, 1)}
    ),
}


class History(RuleBasedStateMachine):
    kind: ClassVar[Kind]
    folder: ClassVar[Any]

    # -- what may happen -------------------------------------------------------------------------

    @initialize(data=st.data())
    def begin(self, data):
        self.nb = self.kind.make()
        self.fit(data)

    @rule(data=st.data())
    def fit(self, data):
        rows = self.draw_rows(data)
        self.nb.fit(*self.arrays(rows))
        self.ledger = self.new_ledger()
        self.ledger.add(rows, {label for _, label, _ in rows})
        self.ledger.fix()
        self.largest = np.zeros(len(self.kind.roles))

    @rule(data=st.data(), declared=st.sets(st.sampled_from(CLASSES)))
    def partial_fit(self, data, declared):
        rows = self.draw_rows(data)
        declared |= {label for _, label, _ in rows} - self.ledger.classes
        X, y, weight = self.arrays(rows)
        self.nb.partial_fit(X, y, sorted(declared) or None, weight)
        self.ledger.add(rows, declared)

    @rule(data=st.data())
    def merge(self, data):
        """Merge counts of another estimator."""
        rows = self.draw_rows(data)
        other, theirs = self.kind.make().fit(*self.arrays(rows)), self.new_ledger()
        theirs.add(rows, {label for _, label, _ in rows})
        self.nb._commit(copy.copy(self.nb), merge(self.nb.fitted_.counted, other.fitted_.counted))
        self.ledger.join(theirs)

    @precondition(lambda self: self.ledger.rows)
    @rule(data=st.data())
    def forget(self, data):
        """Some of the rows, or half of the weight of some."""
        rows = self.ledger.rows
        some = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, unique=True))
        share = data.draw(st.sampled_from([1.0, 1.0, 0.5]))
        gone = [(rows[i][0], rows[i][1], rows[i][2] * share) for i in some]
        self.nb.forget(*self.arrays(gone))
        self.ledger.forget(some, share)

    @rule()
    def decay(self):
        self.nb.decay(0.5)
        self.ledger.scale(0.5)

    @rule()
    def save_and_load(self):
        path = self.folder / "model"
        bnb.save(self.nb, path)
        before, self.nb = state(self.nb), bnb.load(path)
        assert state(self.nb) == before

    @rule(data=st.data())
    def refuse(self, data):
        """Try an operation that is refused and must change nothing."""
        rows = self.draw_rows(data)
        X, y, weight = self.arrays(rows)
        bad_weight, strange = weight.copy(), y.copy()
        i = data.draw(st.integers(0, len(rows) - 1))
        bad_weight[i] = data.draw(st.sampled_from([-1.0, math.nan, math.inf]))
        strange[i] = STRANGE
        row, label, _ = rows[i]
        heavy = [(row, label, self.ledger.class_weight(label) + 1.0)]
        attempts = [
            (self.nb.fit, (X, y, bad_weight), "sample_weight"),
            (self.nb.fit, (X, y[1:], None), "inconsistent numbers of samples"),
            (self.nb.partial_fit, (X, y, CLASSES, bad_weight), "sample_weight"),
            (self.nb.partial_fit, (X, strange, None, weight), f"{STRANGE}|not among"),
            (self.nb.partial_fit, (self.narrower(X), y, CLASSES, weight), "feature"),
            (self.nb.forget, (X, strange, weight), "not among"),
            (self.nb.forget, (X, y, bad_weight), "sample_weight|not among"),
            (self.nb.forget, self.arrays(heavy), "negative|never counted|not among"),
            (self.nb.decay, (1.5,), "factor"),
        ]
        method, arguments, message = data.draw(st.sampled_from(attempts), label="attempt")
        before = state(self.nb)
        with pytest.raises(ValueError, match=message):
            method(*arguments)
        assert state(self.nb) == before

    @rule(data=st.data())
    def predict(self, data):
        """Rows of levels that were seen, in combinations that may not have been."""
        self.check_predictions([row for row, _, _ in self.draw_rows(data) if self.known(row)])

    # -- what must hold --------------------------------------------------------------------------

    @invariant()
    def statistics_are_those_of_the_list(self):
        ledger, nb = self.ledger, self.nb
        assert set(nb.classes_) == ledger.classes
        np.testing.assert_array_equal(nb.class_count_, [ledger.class_weight(c) for c in nb.classes_])
        for columns, statistics in zip(nb.encoding_.blocks, nb.statistics_.blocks, strict=True):
            if hasattr(statistics, "m2"):
                self.check_moments(columns, statistics)
            elif hasattr(statistics, "total"):
                cells = [[ledger.cells(c, j) for j in columns.index] for c in nb.classes_]
                np.testing.assert_array_equal(statistics.count, [[w.sum() for _, w in own] for own in cells])
                np.testing.assert_array_equal(statistics.total, [[v @ w for v, w in own] for own in cells])
            else:
                self.check_levels(columns, statistics)

    @invariant()
    def rows_of_the_list_have_their_probabilities(self):
        self.check_predictions([row for row, _, _ in self.ledger.rows[:4]])

    # -- helpers ---------------------------------------------------------------------------------

    def new_ledger(self) -> Ledger:
        return Ledger([set() if role == "level" else None for role in self.kind.roles])

    def draw_rows(self, data: Any) -> list[Any]:
        row = st.tuples(st.tuples(*self.kind.cells), st.sampled_from(CLASSES), st.integers(0, 3).map(float))
        several = st.lists(row, min_size=1, max_size=4).filter(lambda rows: any(w for _, _, w in rows))
        return data.draw(several, label="rows")

    def arrays(self, rows: list[Any]) -> tuple[Any, np.ndarray, np.ndarray]:
        table = self.kind.table([row for row, _, _ in rows])
        return table, np.array([y for _, y, _ in rows], object), np.array([w for _, _, w in rows])

    def narrower(self, X: Any) -> Any:
        return X.iloc[:, 1:] if hasattr(X, "iloc") else X[:, 1:]

    def known(self, row: Any) -> bool:
        pairs = zip(row, self.ledger.levels, strict=True)
        return all(levels is None or missing(value) or value in levels for value, levels in pairs)

    def check_moments(self, columns: Any, statistics: Any) -> None:
        for a, c in enumerate(self.nb.classes_):
            for b, j in enumerate(columns.index):
                n, mean, m2 = self.ledger.moments(c, j)
                # Rounding is relative to the most that was ever counted.
                self.largest[j] = max(self.largest[j], n * 16)
                assert statistics.count[a, b] == n
                assert abs(statistics.mean[a, b] - mean) <= 1e-12 * max(1.0, self.largest[j] / max(n, 0.1))
                assert abs(statistics.m2[a, b] - m2) <= 1e-12 * max(1.0, self.largest[j])

    def check_levels(self, columns: Any, statistics: Any) -> None:
        feature, names = columns.axis()
        for at, (block_feature, name) in enumerate(zip(feature, names, strict=True)):
            j = columns.index[int(block_feature)]
            if self.kind.roles[j] == "presence":
                cells = {j: float(name == "present")}
            else:
                given = getattr(name, "given", ())
                cells = {int(parent): value for parent, value in given} | {j: getattr(name, "level", name)}
            expected = [self.ledger.weight_of(c, cells) for c in self.nb.classes_]
            np.testing.assert_array_equal(statistics.count[:, at], expected)
        for own, j in enumerate(columns.index):
            levels = self.ledger.levels[j]
            if levels is not None:
                base = getattr(columns, "base", columns)
                assert set(base.levels[own].values) == levels
                assert len(base.levels[own].values) == len(levels)

    def check_predictions(self, rows: list[Any]) -> None:
        if not rows:
            return
        proba = self.nb.predict_proba(self.kind.table(rows))
        log_class = {c: math.log(self.ledger.class_weight(c) + 1.0) for c in self.ledger.classes}
        priors = [self.prior(j) for j in range(len(self.kind.roles))]
        for row, found in zip(rows, proba, strict=True):
            cells = [(j, role) for j, role in enumerate(self.kind.roles) if not missing(row[j])]
            joint = {
                c: log_class[c] + sum(self.log_cell(c, j, role, row, priors[j]) for j, role in cells) for c in log_class
            }
            expected = probabilities(joint)
            np.testing.assert_allclose(found, [expected[c] for c in self.nb.classes_], rtol=1e-8, atol=1e-10)

    def log_cell(self, label: Any, j: int, role: str, row: Any, prior: Any) -> float:
        if role == "level":
            return self.ledger.log_level(label, j, row, ALPHA, self.kind.parents.get(j, ()))
        if role == "presence":
            return self.ledger.log_presence(label, j, row, ALPHA)
        return (self.ledger.log_number if role == "number" else self.ledger.log_count)(label, j, row, prior)

    def prior(self, j: int) -> Any:
        """The default prior of a column of numbers: the mean of all rows, and the variance within the classes."""
        pairs = [(row[j], w) for row, _, w in self.ledger.rows if not missing(row[j])]
        if self.kind.roles[j] == "count":
            total, n = math.fsum(v * w for v, w in pairs), math.fsum(w for _, w in pairs)
            return 1.0, n / total if total else 1.0
        if self.kind.roles[j] != "number" or not pairs:
            return 0.0, 0.1, 1.0, 1.0
        values, weight = np.array(pairs).T
        mean = np.average(values, weights=weight)
        variance = math.fsum(self.ledger.moments(c, j)[2] for c in self.ledger.classes) / math.fsum(weight)
        return mean, 0.1, 1.0, variance if variance > (1e-12 * mean) ** 2 else 1.0


def state(nb: Any) -> Any:
    """Attributes of an estimator, as comparable values."""
    levels = [nb.encoding_.classes, *(v for b in nb.encoding_.blocks for v in getattr(b, "levels", ()))]
    names = [[(type(v).__name__, v) for v in one.values] for one in levels]
    leaves = [(leaf.shape, leaf.tobytes()) for leaf in map(np.asarray, jax.tree.leaves(nb.statistics_))]
    rest = {k: v for k, v in vars(nb).items() if k not in ("encoding_", "statistics_")}
    return names, leaves, repr(sorted(rest.items()))


def run(kind: str, folder: Any, examples: int, steps: int) -> None:
    machine = type("Machine", (History,), {"kind": KINDS[kind], "folder": folder})
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=steps))


@pytest.mark.slow("a second view of what quick tests see")
@pytest.mark.parametrize("kind", thorough(KINDS, quick=("categorical", "integers", "gaussian")))
def test_a_history_is_its_rows(kind, tmp_path):
    run(kind, tmp_path, 10, 8)


@pytest.mark.slow("large arrays, many files or long histories")
@pytest.mark.parametrize("kind", ["integers", "mixed", "network"])  # "mixed" has the columns of the others
def test_long_histories_are_their_rows(kind, tmp_path):
    run(kind, tmp_path, 200, 12)


@pytest.mark.slow("compiles kernels of its own")
def test_a_copy_is_not_what_was_copied():
    """`clone` and `copy` share nothing that a later fit would change."""
    nb = KINDS["gaussian"].make().fit([[1.0, 2.0], [3.0, 4.0]], ["ash", "elm"])
    other, before = copy.copy(nb), state(nb)
    other.partial_fit([[5.0, 6.0]], ["oak"], ["oak"])
    clone(nb).fit([[7.0, 8.0]], ["ash"])
    assert state(nb) == before
