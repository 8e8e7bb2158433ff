"""Functions that may take two seconds show a progress bar that reaches its total."""

import io
from threading import Event

import numpy as np
import pytest

import bayesnb as bnb
from bayesnb._util.terminal import progress

RNG = np.random.default_rng(0)
Y = np.repeat([0, 1, 2], 12)
X = RNG.integers(0, 3, (36, 3))
X[:, 0] = np.where(RNG.random(36) < 0.7, Y, X[:, 0])
MISSING = np.where(RNG.random((5, 3)) < 0.5, None, X[:5].astype(object))
MANY = np.tile(X, (200, 1))
SEVERAL_BLOCKS = np.tile(X, (20_000, 1))


def nb():
    return bnb.CategoricalNB().fit(X, Y)


CALLS = {
    "permutations": lambda: bnb.permutation_null(lambda y: float(y[0]), Y, permutations=5),
    "evidence": lambda: bnb.prequential(nb(), X, Y, points=3),
    "tune_alpha": lambda: bnb.tune_alpha(nb(), X, Y),
    "learning curve": lambda: bnb.learning_curve(bnb.CategoricalNB(), X, Y, [3, 5], repeats=2),
    "estimates": lambda: bnb.compare_estimates(bnb.CategoricalNB(), X, Y, repeats=2),
    "Pairs of features": lambda: bnb.check_independence(nb(), X, Y, draws=5),
    "EM: iterations": lambda: bnb.NaiveBayesMixture(2, estimator=bnb.CategoricalNB(), n_init=2).fit(X),
    "AODE": lambda: bnb.AODE().fit(X, Y).predict(X),
    "halves of networks": lambda: bnb.KDB(k="auto").fit(X, Y),
    "weights": lambda: bnb.WeightedNB().fit(X, Y),
    "conformal": lambda: bnb.conformal(nb(), X, Y).p_values(X),
    "Gibbs sampling": lambda: bnb.estimate_prevalence(nb(), X, draws=50, given="scores"),
    "draws of the parameters": lambda: bnb.estimate_prevalence(nb(), X, draws=50),
    "value of information": lambda: bnb.value_of_information(nb(), MISSING),
    "counting": lambda: bnb.CategoricalNB().fit(MANY, np.tile(Y, 200)),
    "scoring": lambda: nb().predict(SEVERAL_BLOCKS),
}


@pytest.fixture
def bars(monkeypatch):
    """The bars that are made: title, total, and the steps that each was told of."""
    import tqdm

    made = []

    class Recorded(tqdm.tqdm):
        def __init__(self, **options):
            made.append([options["desc"], options["total"], 0])
            assert options["delay"] == 1
            assert options["disable"] is None, "only on a terminal"
            super().__init__(**options, file=io.StringIO())
            self.record = made[-1]

        def update(self, n=1):
            self.record[2] += n
            return super().update(n)

    monkeypatch.setattr(tqdm, "tqdm", Recorded)
    return made


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.filterwarnings("ignore:.*(converged|draws are worth|not weighted|optimum)")
@pytest.mark.parametrize("title", CALLS)
def test_a_bar_ends_at_its_total(bars, title):
    CALLS[title]()
    own = [bar for bar in bars if bar[0] == title]
    assert own, bars
    assert all(total is None or done == total for _, total, done in bars), bars
    assert all(done > 0 for *_, done in own)


def test_a_call_on_few_rows_makes_none(bars):
    model = nb()
    model.predict_proba(X)
    bnb.loo(model, X, Y)
    assert bars == []


@pytest.mark.slow("a second view of what quick tests see")
def test_where_none_is_wanted_there_is_none_inside_either(bars):
    bnb.learning_curve(bnb.AODE(), X, Y, [3, 5], repeats=2, progress=None)
    bnb.compare_estimates(bnb.CategoricalNB(), X, Y, MANY, np.tile(Y, 200), progress=None)
    assert bars == []
    nb().predict(SEVERAL_BLOCKS)
    assert len(bars) == 1, "and after it there is one again"


class Terminal(io.StringIO):
    """A terminal that notes that a bar was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if "NUTS" in text:
            self.written.set()
        return super().write(text)


def test_a_bar_is_shown_before_its_first_step_ends_and_removed(monkeypatch):
    """A step may take long, as the compilation of a sampler does."""
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    with progress("NUTS", 10):
        assert terminal.written.wait(60)
    assert "0/10" in terminal.getvalue()
    *_, last, end = terminal.getvalue().split("\r")
    assert last.strip() == end == "", "nothing is left on the line"
