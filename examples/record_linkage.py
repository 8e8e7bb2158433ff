"""Record linkage of two files by the weights of Fellegi and Sunter, estimated by EM without labels.

    python examples/record_linkage.py [--out DIR]

The two files describe a town, some years apart: people moved, married, and were misspelt, and cells are missing. Pairs
that share a key are compared field by field, and a latent class model of the comparisons, `NaiveBayesMixture`, finds
the matches. The town is simulated person by person and household by household, so fields are not independent given
match or no match.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayesnb as bnb

FIELDS = ("first name", "surname", "street", "postcode", "day", "month", "year", "sex")
PASSES = {"born": ("year", "month"), "surname": ("surname",)}
KINDS = ("match", "household", "other")
HOUSEHOLDS, KEPT, POSTCODES, LABELS, CLERK = 900, 0.7, 60, 60, 0.05

INTRODUCTION = f"""\
Two files of one town, with {len(FIELDS)} fields for each person. Pairs share month and year of birth (pass "born"), or
the surname (pass "surname"). Kinds: match, one person; household, two persons of one household; other, the rest. The
truth is known because the town is simulated; EM does not see it. called: pairs with P(match) above one half. stated:
their mean P(match). right: the share of them that are matches. found: the share of matches that are called.
"""

CONCLUSION = "How to read this: docs/cases/record_linkage.md"


@dataclass(frozen=True, eq=False)
class Pairs:
    """`X` (N, F): comparison of each field of a pair, None if a cell is missing; `kind` (N,): the truth."""

    X: pd.DataFrame
    kind: np.ndarray


def names(n: int, syllables: int, rng: np.random.Generator) -> np.ndarray:
    """Return distinct pronounceable names."""
    parts = [a + b for a in "bdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "el")]
    found: dict[str, None] = {}
    while len(found) < n:
        found["".join(rng.choice(parts, syllables))] = None
    return np.array(list(found), dtype=object)


def often(n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw indices below n, the first ones far more often than the last."""
    share = 1.0 / np.arange(3, n + 3)
    return rng.choice(n, size, p=share / share.sum())


def town(rng: np.random.Generator, households: int = HOUSEHOLDS) -> pd.DataFrame:
    """Simulate persons in households, with one surname and address, two generations, twins, and changing names."""
    surnames, streets = names(500, 3, rng), names(300, 2, rng)
    size = 1 + rng.binomial(4, 0.35, households)
    house = np.repeat(np.arange(households), size)
    place = np.concatenate([np.arange(n) for n in size])
    n = len(house)
    twin = (place > 2) & (rng.random(n) < 0.1)
    parent = rng.integers(1935, 1990, households)[house] + rng.integers(-4, 5, n)
    year = np.where(place < 2, parent, parent + rng.integers(22, 35, n))
    sex = np.where(place < 2, (place + rng.integers(0, 2, households)[house]) % 2, rng.integers(0, 2, n))
    firsts = {(s, g): names(120, 2, rng) for s in (0, 1) for g in (0, 1)}
    first = [firsts[s, int(y > 1965)][i] for s, y, i in zip(sex, year, often(120, n, rng), strict=True)]
    street = often(300, households, rng)[house]
    return pd.DataFrame(
        {
            "first name": first,
            "surname": surnames[often(500, households, rng)[house]],
            "street": streets[street],
            "postcode": street * POSTCODES // 300,
            "day": as_before(rng.integers(1, 29, n), twin),
            "month": as_before(rng.integers(1, 13, n), twin),
            "year": as_before(year, twin),
            "sex": sex,
            "house": house,
        }
    ).astype(object)


def as_before(values: np.ndarray, same: np.ndarray) -> np.ndarray:
    """Replace values by those of the previous person, where they are equal: twins."""
    return np.where(same, np.roll(values, 1), values)


def years_later(people: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Move whole households, and change the surnames of some women."""
    later, houses = people.copy(), people["house"].to_numpy(dtype=int)
    moved = (rng.random(houses.max() + 1) < 0.12)[houses]
    to = rng.permutation(len(people))[houses]
    for field in ("street", "postcode"):
        later.loc[moved, field] = people[field].to_numpy()[to[moved]]
    married = (people["sex"] == 1) & (people["year"] > 1965) & (rng.random(len(people)) < 0.1)
    later.loc[married, "surname"] = rng.permutation(people["surname"])[: married.sum()]
    return later


def typed(people: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Add typing errors: some clerks are careless with a whole record, and whole dates are missing."""
    found = people.copy()
    careless = np.where(rng.random(len(people)) < 0.15, 4.0, 0.5)
    for field in ("first name", "surname", "street"):
        wrong = np.flatnonzero(rng.random(len(people)) < 0.06 * careless)
        found.iloc[wrong, found.columns.get_loc(field)] = [misspelt(found[field].iloc[i], rng) for i in wrong]
    slip = rng.random(len(people)) < 0.02 * careless
    found.loc[slip, "year"] = found.loc[slip, "year"] + rng.choice([-1, 1, 10], slip.sum())
    swapped = rng.random(len(people)) < 0.02 * careless
    found.loc[swapped, ["day", "month"]] = found.loc[swapped, ["month", "day"]].to_numpy()
    found.loc[rng.random(len(people)) < 0.08 * careless, ["day", "month"]] = None
    found.loc[rng.random(len(people)) < 0.05 * careless, ["street", "postcode"]] = None
    found.loc[rng.random(len(people)) < 0.02 * careless, "first name"] = None
    return found


def misspelt(name: str, rng: np.random.Generator) -> str:
    """Delete, double, replace or exchange letters; sometimes cut the name to its beginning."""
    at = int(rng.integers(len(name) - 1))
    before, letter, after, new = name[:at], name[at], name[at + 1 :], "aeioulnrst"[rng.integers(10)]
    ways = (before + after, before + 2 * letter + after, before + new + after, before + after[0] + letter + after[1:])
    return (*ways, name[:3])[int(rng.choice(5, p=[0.25, 0.2, 0.25, 0.15, 0.15]))]


@cache
def near(a: str, b: str) -> bool:
    """Return whether one edit (a letter more, less or replaced, two neighbours exchanged) makes the names equal."""
    if abs(len(a) - len(b)) > 1:
        return False
    i = next((i for i, (p, q) in enumerate(zip(a, b, strict=False)) if p != q), min(len(a), len(b)))
    exchanged = a[i : i + 2] == b[i : i + 2][::-1] and a[i + 2 :] == b[i + 2 :]
    return exchanged or a[i + 1 :] == b[i + 1 :] or a[i + 1 :] == b[i:] or a[i:] == b[i + 1 :]


def blocked(first: pd.DataFrame, second: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return rows "a" of the first file and "b" of the second that agree in all keys."""
    sides = [part[list(keys)].dropna().reset_index(names=name) for part, name in ((first, "a"), (second, "b"))]
    return sides[0].merge(sides[1], on=list(keys))[["a", "b"]]


def compared(a: pd.Series, b: pd.Series) -> np.ndarray:
    """Return "agree", "near", "differ", or None if a cell is missing, (N,)."""
    missing = (a.isna() | b.isna()).to_numpy()
    agree = (a == b).to_numpy()
    found = np.where(agree, "agree", "differ").astype(object)
    for i in np.flatnonzero(~agree & ~missing):
        p, q = a.iat[i], b.iat[i]
        if near(p, q) if isinstance(p, str) else a.name == "year" and abs(p - q) == 1:
            found[i] = "near"
    found[missing] = None
    return found


def simulate(seed: int = 0, households: int = HOUSEHOLDS) -> dict[str, Pairs]:
    """Simulate two files of a town, and compare all fields of their pairs in each pass."""
    rng = np.random.default_rng(seed)
    people = town(rng, households)
    first = typed(people, rng)[rng.random(len(people)) < KEPT]
    second = typed(years_later(people, rng), rng)[rng.random(len(people)) < KEPT]
    found = {}
    for name, keys in PASSES.items():
        pair = blocked(first, second, keys)
        a, b = (part.loc[pair[side]].reset_index(drop=True) for part, side in ((first, "a"), (second, "b")))
        kind = np.where(pair["a"] == pair["b"], "match", np.where(a["house"] == b["house"], "household", "other"))
        found[name] = Pairs(pd.DataFrame({field: compared(a[field], b[field]) for field in FIELDS}), kind)
    return found


def without_keys(pairs: Pairs, name: str) -> Pairs:
    """Remove the key fields, on which all pairs of a pass agree."""
    return Pairs(pairs.X.drop(columns=list(PASSES[name])), pairs.kind)


def merged(pairs: Pairs) -> Pairs:
    """Merge day with month, and street with postcode, because their errors occur together."""
    X = pairs.X.copy()
    for name, parts in (("birthday", ["day", "month"]), ("address", ["street", "postcode"])):
        missing = X[parts].isna().any(axis=1)
        joined = X[parts[0]].fillna("") + " / " + X[parts[1]].fillna("")
        X[name] = joined.mask(missing, None).astype(object)
        X = X.drop(columns=parts)
    return Pairs(X, pairs.kind)


def both(passes: dict[str, Pairs]) -> Pairs:
    """Combine the pairs of all passes; a pair in two passes occurs twice."""
    return Pairs(
        pd.concat([pairs.X for pairs in passes.values()], ignore_index=True),
        np.concatenate([pairs.kind for pairs in passes.values()]),
    )


def patterns(X: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the distinct rows and their frequencies."""
    counted = X.fillna("?").value_counts(sort=False).reset_index(name="n")
    return counted[list(X.columns)].replace({"?": None}), counted["n"].to_numpy(dtype=float)


def latent_classes(X: pd.DataFrame, k: int, seed: int = 0) -> bnb.NaiveBayesMixture:
    """Fit k latent classes of pairs by EM from five starts, with the frequencies of distinct rows."""
    rows, n = patterns(X)
    return bnb.NaiveBayesMixture(k, estimator=bnb.CategoricalNB(), n_init=5, seed=seed).fit(rows, sample_weight=n)


def agreement(nb: Any) -> pd.DataFrame:
    """Return P(agree | class), one row per field and one column per class."""
    tables = zip(nb.feature_names_in_, nb.categories_, nb.feature_log_prob_, strict=True)
    return pd.DataFrame(
        {
            name: np.exp(log[:, [set(level.split(" / ")) == {"agree"} for level in levels]].sum(axis=1))
            for name, levels, log in tables
        }
    ).T


def match_class(nb: Any) -> int:
    """Return the class in which first names agree most, as they do for one person but not for a household."""
    return int(agreement(nb).loc["first name"].idxmax())


def weights(nb: Any, pairs: Pairs, c: int) -> pd.DataFrame:
    """Return m = P(level | match), u = P(level | no match), and log2(m / u), estimated and counted in the truth."""
    share = np.exp(nb.class_log_prior_)
    others = np.arange(len(share)) != c
    match, rows = pairs.kind == "match", {}
    for field, levels, log in zip(nb.feature_names_in_, nb.categories_, nb.feature_log_prob_, strict=True):
        m, u = np.exp(log[c]), share[others] @ np.exp(log[others]) / share[others].sum()
        seen = pairs.X[field].notna().to_numpy()
        for level, m_level, u_level in zip(levels, m, u, strict=True):
            has = (pairs.X[field] == level).to_numpy()
            true_m, true_u = ((has & own).sum() / (seen & own).sum() for own in (match, ~match))
            rows[field, level] = {"m": m_level, "true m": true_m, "u": u_level, "true u": true_u}
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["field", "level"])
    with np.errstate(divide="ignore"):
        return table.assign(
            weight=np.log2(table["m"] / table["u"]), **{"true weight": np.log2(table["true m"] / table["true u"])}
        )


def weight_intervals(data: Any, pairs: Pairs, nb: Any, c: int, prob: float = 0.9) -> pd.DataFrame:
    """Return log2(m / u) if class c is the matches: posterior mean, interval, and count in the truth."""
    theta = data["posterior"]["theta"].values
    draws = np.log2(theta[:, :, c] / theta[:, :, 1 - c])
    lower, upper = np.quantile(draws, [0.5 - prob / 2, 0.5 + prob / 2], axis=(0, 1))
    true = weights(nb, pairs, c)["true weight"]
    columns = {"weight": draws.mean(axis=(0, 1)), "lower": lower, "upper": upper, "true weight": true}
    return pd.DataFrame(columns, index=true.index)


def averaged_match(data: Any, X: pd.DataFrame, c: int) -> np.ndarray:
    """Return P(match | pair, all pairs), (N,), averaged over the draws."""
    rows = pd.MultiIndex.from_frame(patterns(X)[0].fillna("?"))
    proba = pd.Series(data["constant_data"]["membership"].values[:, c], index=rows)
    return proba.loc[pd.MultiIndex.from_frame(X.fillna("?"))].to_numpy()


def least_cost(match: np.ndarray) -> pd.DataFrame:
    """Return the action of least expected cost for each pair, and its cost: wrong link 1, missed 0.5, look CLERK."""
    cost = pd.DataFrame({"link": 1.0 - match, "leave": 0.5 * match, "look": CLERK})
    return pd.DataFrame({"action": cost.idxmin(axis=1), "expected": cost.min(axis=1)})


def outcome(proba: np.ndarray, kind: np.ndarray) -> dict[str, float]:
    """Summarise the pairs with P(match) above one half: number, stated and true shares of matches, and log loss."""
    called, match = proba > 0.5, kind == "match"
    return {
        "called": called.sum(),
        "stated": proba[called].mean(),
        "right": match[called].mean(),
        "found": match[called].sum() / match.sum(),
        "log loss": -np.log(np.clip(np.where(match, proba, 1.0 - proba), 1e-15, None)).mean(),
    }


def dependence(pairs: Pairs, label: np.ndarray, top: int = 3) -> pd.DataFrame:
    """Return the pairs of fields that depend on each other most within the inferred classes."""
    found = bnb.check_independence(bnb.CategoricalNB().fit(pairs.X, label), pairs.X, label, top=top, draws=20)
    return found[["feature_1", "feature_2", "rows", "log_bayes_factor", "mutual_information"]]


def clerk(pairs: Pairs, n: int = LABELS, seed: int = 0) -> np.ndarray:
    """Choose pairs for a clerk: a third with many equal fields, a third with some, a third at random."""
    rng = np.random.default_rng(seed)
    alike = (pairs.X == "agree").sum(axis=1).to_numpy()
    strata = (np.flatnonzero(alike >= 5), np.flatnonzero((alike >= 3) & (alike < 5)), np.arange(len(alike)))
    return np.unique(np.concatenate([rng.choice(own, n // 3, replace=False) for own in strata]))


def with_labels(pairs: Pairs, few: np.ndarray) -> tuple[Any, Any]:
    """Fit CategoricalNB to the labelled pairs alone, and by EM with all others."""
    few_X, y = pairs.X.iloc[few], pairs.kind[few].astype(object)
    nb = bnb.CategoricalNB(categories={field: sorted(pairs.X[field].dropna().unique()) for field in pairs.X})
    rows, n = patterns(pairs.X.drop(index=pairs.X.index[few]))
    X = pd.concat([few_X, rows], ignore_index=True)
    labels = np.concatenate([y, np.full(len(rows), -1, dtype=object)])
    found = bnb.fit_em(nb, X, labels, sample_weight=np.concatenate([np.ones(len(y)), n]), max_iter=300)
    return nb.fit(few_X, y), found.estimator


def decisions(nb: Any, pairs: Pairs, match: Any) -> Any:
    """Decide to link, leave, or show a pair to a clerk: wrong link 1, missed link 0.5, look CLERK."""
    loss = pd.DataFrame({c: [0.0, 0.5] if c == match else [1.0, 0.0] for c in nb.classes_}, ["link", "leave"])
    return bnb.decide(nb, pairs.X, loss.rename_axis(index="action", columns="truth"), reject_cost=CLERK)


def draw(table: pd.DataFrame) -> Any:
    """Draw the weights of EM against the true weights, one dot per field and level."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.4, 5.2), layout="constrained")
    shown = table[np.isfinite(table["true weight"])]
    ends = shown[["weight", "true weight"]].to_numpy()
    ax.plot([ends.min(), ends.max()], [ends.min(), ends.max()], color="grey", linewidth=1)
    for (field, level), row in shown.iterrows():
        ax.plot(row["true weight"], row["weight"], "o", color="C0", markersize=4)
        if abs(row["true weight"] - row["weight"]) > 0.5 or level.startswith("agree"):
            ax.annotate(
                f"{field}: {level}",
                (row["true weight"], row["weight"]),
                (6, -8),
                textcoords="offset points",
                fontsize=7,
            )
    ax.set_xlabel("log2(m / u), counted in the truth")
    ax.set_ylabel("log2(m / u), by EM")
    ax.margins(x=0.35)
    ax.grid(alpha=0.3)
    return figure


def report(pairs: Pairs, k: int) -> tuple[bnb.NaiveBayesMixture, int, dict[str, float]]:
    """Fit k latent classes, choose the class of matches, and score it."""
    mixture = latent_classes(pairs.X, k)
    c, (rows, n) = match_class(mixture.estimator_), patterns(pairs.X)
    found = outcome(mixture.predict_proba(pairs.X)[:, c], pairs.kind)
    return mixture, c, {"pairs": len(pairs.X), "classes": k, **found, "BIC": mixture.bic(rows, sample_weight=n)}


def against_truth(mixture: bnb.NaiveBayesMixture, pairs: Pairs) -> pd.DataFrame:
    """Count the pairs of each kind in each class."""
    return pd.crosstab(pairs.kind, mixture.predict(pairs.X), rownames=["kind"], colnames=["class"]).reindex(KINDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figure")
    out = parser.parse_args().out
    print(INTRODUCTION)
    passes = simulate()
    pairs = without_keys(passes["surname"], "surname")
    tables = {
        "both passes": both(passes),
        "born": without_keys(passes["born"], "born"),
        "surname": pairs,
        "surname, fields merged": merged(pairs),
    }
    asked = [(name, k) for name in tables for k in (2, 3)]
    fits = {(name, k): report(tables[name], k) for name, k in asked}
    print(pd.DataFrame({key: fit[2] for key, fit in fits.items()}).T.drop(columns="classes").round(4).to_string(), "\n")
    pairs, (mixture, c, _) = tables["surname, fields merged"], fits["surname, fields merged", 2]
    table = weights(mixture.estimator_, pairs, c)
    few = clerk(passes["surname"])
    labels_alone, em = with_labels(pairs, few)
    rest = np.setdiff1d(np.arange(len(pairs.X)), few)
    others = Pairs(pairs.X.iloc[rest], pairs.kind[rest])
    print(f"{len(few)} labelled pairs:", pd.Series(pairs.kind[few]).value_counts().to_dict(), "; scores on all others")
    rows = {"no label": outcome(mixture.predict_proba(others.X)[:, c], others.kind)}
    for name, nb in (("labels alone", labels_alone), ("labels and EM", em)):
        rows[name] = outcome(nb.predict_proba(others.X)[:, list(nb.classes_).index("match")], others.kind)
    print(pd.DataFrame.from_dict(rows, orient="index").round(4).to_string(), "\n")
    done = decisions(em, others, "match")
    print(pd.crosstab(done.action, others.kind, rownames=["action"], colnames=["kind"]).to_string())
    print(f"cost per pair: expected {done.expected_risk:.5f}, observed {done.observed_risk(others.kind):.5f}")
    print(CONCLUSION)
    if find_spec("matplotlib") is None:
        return print("No figure: install matplotlib to draw one.")
    import matplotlib

    matplotlib.use("Agg")
    out.mkdir(parents=True, exist_ok=True)
    draw(table).savefig(out / "record_linkage.png", dpi=150)
    print(f"Figure in {out}/")


if __name__ == "__main__":
    main()
