"""The card that other sites show of a link to the site: `python docs/social_card.py` writes docs/_static/card.png."""

from pathlib import Path

import matplotlib
from matplotlib import pyplot
from pictures import posterior

NAME = "bayesnb"
ABOUT = "Naive Bayes as\nBayesian statistics:\nexact posteriors behind\nscikit-learn estimators,\non JAX"

if __name__ == "__main__":
    matplotlib.use("agg")
    figure = pyplot.figure(figsize=(12, 6.3), dpi=100)
    figure.text(0.05, 0.78, NAME, fontsize=54, fontweight="bold", color="#0072B2")
    figure.text(0.05, 0.7, ABOUT, fontsize=22, linespacing=1.4, verticalalignment="top")
    ax = figure.add_axes((0.56, 0.16, 0.4, 0.58))
    posterior(ax)
    ax.set_ylabel("")
    figure.savefig(Path(__file__).parent / "_static" / "card.png")
