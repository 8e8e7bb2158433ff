"""A row that has probability 0 under maximum likelihood.

The row is a good melon of the textbook, but with the sound 清脆 (crisp), which no good melon among the seventeen has.
Maximum likelihood gives this sound probability 0 among good melons. The probability that the melon is good is then 0,
whatever the other features are. Under a Dirichlet prior an unseen level is unlikely, not impossible.

    python examples/impossible.py [--out DIR]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import bayesnb as bnb


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figures")
    out = parser.parse_args().out

    melons = bnb.datasets.load_watermelon()
    nb = bnb.MixedNB().fit(melons.data, melons.target)
    good = list(nb.classes_).index("是")

    melon = melons.data.iloc[[0]].copy()
    print("The first melon of the table, a good one:", ", ".join(map(str, melon.iloc[0])))
    print("The same melon with 敲声 = 清脆 (no good melon has this sound, 2 of 9 bad melons have it):\n")
    melon["敲声"] = "清脆"

    for estimate, meaning in (
        ("mle", "maximum likelihood"),
        ("mean", "posterior mean plugged in (Laplace)"),
        ("predictive", "parameters integrated out"),
    ):
        p = nb.predict_proba(melon, estimate=estimate)[0, good]
        print(f"  P(good | melon), {meaning:<36} {p:.3f}")

    lower, upper = bnb.predict_interval(nb, melon, method="draws", draws=20_000)
    split = bnb.decompose_uncertainty(nb, melon, method="draws", draws=20_000).iloc[0]
    print(f"""
90% interval of P(good | melon, parameters), by draws: {lower[0, good]:.2f} to {upper[0, good]:.4f}
Entropy: {split.total:.3f} nats, of which {split.epistemic:.3f} are uncertainty about the parameters after 17 melons.
""")

    table = bnb.parameter_table(nb)
    sound = table[table["feature"] == "敲声"]
    print(
        sound[["class", "level", "count", "mle", "mean", "lower", "upper", "prior_weight"]]
        .round(3)
        .to_string(index=False)
    )
    print("""
What this means: if naive Bayes holds, and the melons are a random sample, the melon is very probably good. The interval
is about the parameters. Seventeen rows cannot show whether naive Bayes holds for melons.""")

    out.mkdir(parents=True, exist_ok=True)
    for name, ax in (
        ("shrinkage", bnb.plots.shrinkage(nb)),
        ("intervals", bnb.plots.prediction_intervals(nb, melons.data, melons.target, label="是")),
    ):
        ax.figure.savefig(out / f"impossible-{name}.png", dpi=150)
    print(f"\nFigures in {out}/")


if __name__ == "__main__":
    main()
