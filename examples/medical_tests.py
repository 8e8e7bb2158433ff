"""Choosing the next test: expected information, actual information, and value in money.

    python examples/medical_tests.py [--out DIR]

A table of patients has routine measurements and three tests; most patients lack at least one test.
`value_of_information` ranks the missing tests. The patients are simulated, so every withheld result is known and each
recommendation can be checked. The process differs from the fitted model, except in one of the worlds. Nothing here is
medical knowledge.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import entr, expit, logsumexp, softmax

import bayesnb as bnb

CLASSES = np.array(["cold", "flu", "pneumonia"])
SHARES, TESTS, TRAINING, FRESH = (0.5, 0.3, 0.2), ["antigen", "log crp", "xray"], 1000, 2000
SEVERITY, NODES = 0.8, 41
FALLS = ["promised", "entropy", "log loss"]
PRICES = {"antigen": 0.1, "log crp": 0.05, "xray": 0.4}

INTRODUCTION = f"""\
{TRAINING} training patients, and {FRESH} new patients who each lack at least one test. One of these tests is then made,
and its withheld result is filled in. Means in nats per patient, ± standard errors.
promised: the value of information. entropy: decrease of the entropy of the class. log loss: decrease of the log loss of
the true class. If the model holds, all three agree within chance. "at random": a random missing test.
"""

CONCLUSION = "How to read this: docs/cases/medical_tests.md"

LOSS = pd.DataFrame(
    {"cold": [0.0, 1.0, 4.0], "flu": [2.0, 0.0, 4.0], "pneumonia": [20.0, 20.0, 0.0]},
    pd.Index(["send home", "antiviral", "admit"], name="action"),
)
LOSS.columns.name = "truth"


@dataclass(frozen=True)
class World:
    """Process that generates patients.

    Parameters
    ----------
    severity : float
        Correlation of each cell with a severity that all cells of a patient share, given the disease. 0 is naive Bayes.
    doctors : bool
        Whether doctors order tests by severity and suspicion, or tests are ordered at random.
    """

    severity: float
    doctors: bool


WORLDS = {
    "independent, by lot": World(0.0, False),
    "independent, doctors": World(0.0, True),
    "severity, by lot": World(SEVERITY, False),
    "severity, doctors": World(SEVERITY, True),
}


@dataclass(frozen=True, eq=False)
class Patients:
    """`seen`: the table, NaN or None for tests that were not made; `whole`: all results; `y`: the diseases."""

    seen: pd.DataFrame
    whole: pd.DataFrame
    y: np.ndarray


def simulate(n: int, world: World, seed: int) -> Patients:
    """Simulate patients of a world; all worlds share the distribution of each cell given the disease."""
    rng = np.random.default_rng(seed)
    disease = rng.choice(len(CLASSES), n, p=SHARES)
    severity = rng.normal(size=n)
    own = rng.normal(size=(6, n))
    u = world.severity * severity + np.sqrt(1.0 - world.severity**2) * own
    whole = pd.DataFrame(
        {
            "age": np.array([45.0, 46.0, 62.0])[disease] + 11.0 * rng.normal(size=n),
            "temperature": np.array([37.3, 38.5, 38.6])[disease] + 0.6 * u[0],
            "cough": levels(["none", "dry", "wet"], u[1] + np.array([-0.2, 0.2, 0.9])[disease], (-0.4, 0.7)),
            "oxygen": np.array([97.5, 97.2, 95.5])[disease] - 1.2 * u[2],
            "antigen": levels(["negative", "positive"], u[3] + np.array([-1.7, 0.8, -1.7])[disease], (0.0,)),
            "log crp": np.array([1.9, 2.6, 3.9])[disease] + 0.8 * u[4],
            "xray": levels(["clear", "unclear", "shadow"], u[5] + np.array([-1.0, -0.8, 1.0])[disease], (0.0, 0.8)),
        }
    )
    ordered = orders(rng, disease, severity) if world.doctors else rng.random((n, len(TESTS))) < 0.5
    seen = whole.copy()
    for j, test in enumerate(TESTS):
        seen.loc[~ordered[:, j], test] = np.nan if test == "log crp" else None
    return Patients(seen, whole, CLASSES[disease])


def levels(names: list[str], latent: np.ndarray, cuts: tuple[float, ...]) -> np.ndarray:
    """Return the names of the intervals between cuts."""
    return np.array(names, object)[np.searchsorted(cuts, latent)]


def orders(rng: np.random.Generator, disease: np.ndarray, severity: np.ndarray) -> np.ndarray:
    """Return whether a doctor orders each test, (n, tests): for the very ill, and for a suspected disease."""
    hunch = np.array([[-0.8, 0.8, 0.0], [-0.8, 0.0, 1.2], [-1.2, -0.6, 1.8]]).T[disease]
    return rng.random(hunch.shape) < expit(hunch + severity[:, None])


def with_orders(X: pd.DataFrame) -> pd.DataFrame:
    """Add a column for each test: whether the doctor ordered it."""
    return X.assign(**{f"{test} ordered": X[test].notna() for test in TESTS})


def recommended(nb: Any, X: pd.DataFrame) -> pd.DataFrame:
    """Return the test of greatest value for each row that lacks a test: columns row, feature, value."""
    return bnb.value_of_information(nb, X, features=TESTS).groupby("row", sort=True, as_index=False).first()


def at_random(nb: Any, X: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return a random missing test for each row that lacks a test: columns row, feature, value."""
    every = bnb.value_of_information(nb, X, features=TESTS).sample(frac=1.0, random_state=rng)
    return every.groupby("row", sort=True, as_index=False).first()


def answered(X: pd.DataFrame, whole: pd.DataFrame, chosen: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of X with the results of the chosen tests."""
    found = X.copy()
    for test, rows in chosen.groupby("feature")["row"]:
        found.loc[rows, test] = whole.loc[rows, test]
    return found


def told(nb: Any, X: pd.DataFrame, patients: Patients, chosen: pd.DataFrame) -> pd.DataFrame:
    """Return the expected and the actual information of each chosen test, one row per patient, in nats."""
    rows = chosen["row"].to_numpy()
    before, after = (nb.predict_log_proba(x.loc[rows]) for x in (X, answered(X, patients.whole, chosen)))
    truth = np.searchsorted(nb.classes_, patients.y[rows])
    each = np.arange(len(rows))
    found = {
        "promised": chosen["value"].to_numpy(),
        "entropy": entropy(before) - entropy(after),
        "log loss": after[each, truth] - before[each, truth],
        "entropy left": entropy(after),
        "log loss left": -after[each, truth],
    }
    return pd.DataFrame(found, index=rows)


def entropy(log_proba: np.ndarray) -> np.ndarray:
    """Return the entropy of each row, (N,), in nats."""
    return entr(np.exp(log_proba)).sum(axis=1)


def promises(training: int = TRAINING, fresh: int = FRESH) -> pd.DataFrame:
    """Return means of `told` in every world, standard errors, and the entropy and log loss that remain."""
    lines = {}
    for name, world in WORLDS.items():
        learned, patients = simulate(training, world, seed=0), simulate(fresh, world, seed=1)
        fitted = {model: nb.fit(learned.seen, learned.y) for model, nb in models(world).items()}
        plain, rng = fitted["naive Bayes"], np.random.default_rng(2)
        lines[name, "naive Bayes", "at random"] = line(plain, patients, at_random(plain, patients.seen, rng))
        for model, nb in fitted.items():
            lines[name, model, "recommended"] = line(nb, patients, recommended(nb, patients.seen))
    return pd.DataFrame.from_dict(lines, orient="index").rename_axis(["world", "model", "test"])


def models(world: World) -> dict[str, Any]:
    """Return naive Bayes and, for worlds in which it does not hold, possible remedies."""
    found = {"naive Bayes": bnb.MixedNB(numbers="gaussian")}
    if world.severity:
        found["weighted"] = bnb.WeightedNB(bnb.MixedNB(numbers="gaussian"))
    return found


def line(nb: Any, patients: Patients, chosen: pd.DataFrame) -> dict[str, float]:
    """Return one row of the table: means, and the standard errors of the decreases."""
    found = told(nb, patients.seen, patients, chosen)
    errors = found.iloc[:, :3].std(ddof=1) / np.sqrt(len(found))
    return found.mean().to_dict() | errors.add_prefix("± ").to_dict()


def shares(names: Sequence[str] = tuple(WORLDS), training: int = TRAINING, fresh: int = FRESH) -> pd.DataFrame:
    """Return observed and stated shares of pneumonia with and without an X-ray, for some worlds."""
    lines = {}
    for name in names:
        world = WORLDS[name]
        learned, patients = simulate(training, world, seed=0), simulate(fresh, world, seed=1)
        made, ill = patients.seen["xray"].notna().to_numpy(), patients.y == "pneumonia"
        lines[name, "observed"] = {"X-ray": ill[made].mean(), "no X-ray": ill[~made].mean()}
        for title, (nb, prepare) in ways(world).items():
            log_proba = nb.fit(prepare(learned.seen), learned.y).predict_log_proba(prepare(patients.seen))
            p = np.exp(log_proba[:, list(nb.classes_).index("pneumonia")])
            loss = -log_proba[np.arange(len(p)), np.searchsorted(nb.classes_, patients.y)].mean()
            lines[name, title] = {"X-ray": p[made].mean(), "no X-ray": p[~made].mean(), "log loss": loss}
    return pd.DataFrame.from_dict(lines, orient="index").rename_axis(["world", "pneumonia"])


def ways(world: World) -> dict[str, tuple[Any, Callable[[pd.DataFrame], pd.DataFrame]]]:
    """Return the models for a world, each with its version of the table."""
    found: dict[str, Any] = {"cells alone": (bnb.MixedNB(numbers="gaussian"), pd.DataFrame)}
    if world.doctors:
        found["and orders"] = (bnb.MixedNB(numbers="gaussian"), with_orders)
        if world.severity:
            found["and orders, weighted"] = (bnb.WeightedNB(bnb.MixedNB(numbers="gaussian")), with_orders)
    return found


def worth(nb: Any, X: pd.DataFrame, test: str, learned: pd.DataFrame, loss: pd.DataFrame = LOSS) -> np.ndarray:
    """Return the expected decrease of the risk of the best action by the result of a missing test, (N,).

    For each possible result v, p(v | row) = p(row, v) / p(row), and the risk is that of the best action given v.
    """
    joint = nb.predict_joint_log_proba(X)
    values, width = answers(learned[test])
    log_p, risks = [], []
    for value in values:
        own = nb.predict_joint_log_proba(X.assign(**{test: value}))
        log_p.append(logsumexp(own, axis=1) - logsumexp(joint, axis=1))
        risks.append(least_risk(own, nb.classes_, loss))
    p = np.exp(log_p) * width[:, None]
    return least_risk(joint, nb.classes_, loss) - (p / p.sum(axis=0) * risks).sum(axis=0)


def answers(cells: pd.Series) -> tuple[list[Any], np.ndarray]:
    """Return the possible results of a test: levels, or numbers with the widths that they represent."""
    known = cells.dropna()
    if not pd.api.types.is_numeric_dtype(known):
        found = sorted(known.unique())
        return found, np.ones(len(found))
    nodes = np.linspace(known.min() - known.std(), known.max() + known.std(), NODES)
    return nodes.tolist(), np.full(NODES, nodes[1] - nodes[0])


def least_risk(joint: np.ndarray, classes: np.ndarray, loss: pd.DataFrame) -> np.ndarray:
    """Return the expected loss of the best action, (N,), which is the risk of `decide`."""
    return (softmax(joint, axis=1) @ loss[list(classes)].to_numpy().T).min(axis=1)


def policies(world: World, training: int = TRAINING, fresh: int = FRESH) -> pd.DataFrame:
    """Return the mean cost of acting at once, and after one test, chosen in two ways."""
    learned, patients = simulate(training, world, seed=0), simulate(fresh, world, seed=1)
    nb = bnb.MixedNB(numbers="gaussian").fit(learned.seen, learned.y)
    X, price = patients.seen, pd.Series(PRICES)
    lacks = X[TESTS].isna()
    gain = pd.DataFrame({test: worth(nb, X, test, learned.seen) for test in TESTS}) - price
    gain = gain.where(lacks, -np.inf)
    pays = gain.max(axis=1) > 0
    by_cost = pd.DataFrame({"row": X.index, "feature": gain.idxmax(axis=1)})[pays]
    chosen = {
        "act at once": by_cost.iloc[:0],
        "test of greatest information": recommended(nb, X)[["row", "feature"]],
        "most profitable test, if any pays": by_cost,
    }
    return pd.DataFrame({name: cost(nb, X, patients, tests) for name, tests in chosen.items()}).T


def cost(nb: Any, X: pd.DataFrame, patients: Patients, chosen: pd.DataFrame) -> dict[str, float]:
    """Return expected and observed costs of the best actions after the chosen tests, prices included."""
    after = answered(X, patients.whole, chosen)
    decisions = bnb.decide(nb, after, LOSS, draws=100)  # draws are for P(optimal), which is not told here
    paid = chosen["feature"].map(PRICES).astype(float).sum() / len(X)
    tests = {test: int((chosen["feature"] == test).sum()) for test in TESTS}
    own = LOSS.to_numpy()[LOSS.index.get_indexer(decisions.action), LOSS.columns.get_indexer(patients.y)]
    error = own.std(ddof=1) / np.sqrt(len(own))
    expected, observed = decisions.expected_risk + paid, decisions.observed_risk(patients.y) + paid
    return tests | {"paid": paid, "expected": expected, "observed": observed, "±": error}


def draw(table: pd.DataFrame, path: Path) -> None:
    """Draw expected and actual information of naive Bayes in each world."""
    import matplotlib

    matplotlib.use("Agg")
    figure = promised_and_kept(table)
    figure.savefig(path, dpi=150)


def promised_and_kept(table: pd.DataFrame) -> Any:
    """Draw a group of bars for each world and model, for recommended tests."""
    import matplotlib.pyplot as plt

    own = table.xs("recommended", level="test").iloc[::-1]
    figure, ax = plt.subplots(figsize=(7.5, 0.55 * len(own) + 1.2), layout="constrained")
    place = np.arange(len(own))
    for i, (name, colour) in enumerate(zip(FALLS, ("#999999", "#0072B2", "#D55E00"), strict=True)):
        at = place + 0.25 * (1 - i)
        ax.barh(at, own[name], 0.25, xerr=2 * own[f"± {name}"], color=colour, label=name)
    ax.set_yticks(place, [f"{world}: {model}" for world, model in own.index])
    ax.set_xlabel("nats per patient, two standard errors")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """Format figures with their standard errors."""
    found = table.drop(columns=[f"± {name}" for name in FALLS]).map("{:.3f}".format)
    for name in FALLS:
        found[name] += table[f"± {name}"].map(" ± {:.3f}".format)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figure")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    print(INTRODUCTION)
    table = promises()
    print(shown(table).to_string())
    print(f"\nCosts per patient; one pneumonia that is not admitted makes {20 / FRESH:g}; tests cost {PRICES}\n{LOSS}")
    for name in ("independent, by lot", "severity, by lot"):
        print(f"\n{name}\n{policies(WORLDS[name]).astype(dict.fromkeys(TESTS, int)).round(3).to_string()}")
    print(CONCLUSION)
    if find_spec("matplotlib") is None:
        print("No figure: install matplotlib to draw one.")
        return
    draw(table, out / "medical_tests.png")
    print(f"Figure in {out}/")


if __name__ == "__main__":
    main()
