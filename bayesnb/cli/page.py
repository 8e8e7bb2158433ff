"""What came out, as one page that can be mailed: tables and figures, nothing to load from elsewhere."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

from bayesnb.cli.analysis import Analysis
from bayesnb.cli.job import Outcome
from bayesnb.cli.report import GUIDE

if TYPE_CHECKING:
    import pandas as pd

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.35rem; margin-top: 3rem; border-top: 2px solid #ddd; padding-top: 1rem; }
h3 { font-size: 1.05rem; margin-bottom: .3rem; } p { max-width: 46rem; } .means { color: #555; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .85rem; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #e5e5e5; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } thead th { border-bottom: 2px solid #999; }
img { max-width: 100%; height: auto; margin: .5rem 0; } .note { color: #8a4b00; }
"""

_MEANS = {
    "scores": "Held-out rows speak about the model itself. Differences are against maximum likelihood on the same "
    "rows; their standard errors say nothing of how another training set would have turned out.",
    "reliability": "Stated confidence against observed accuracy, on held-out rows: on the diagonal a model that "
    "says 80% is right 80% of the time. Naive Bayes counts dependent features twice, and so tends to say too much.",
    "parameters": "Where maximum likelihood and the posterior mean differ most, in posterior standard deviations: "
    "the prior speaks where the data say little. An interval says what the rows leave unknown about a parameter "
    "if naive Bayes holds.",
    "rows": "Held-out rows whose class probabilities depend most on parameters that the data leave unknown "
    "(epistemic, nats). The interval is of P(prediction | row) as the parameters vary over their posterior, if "
    "naive Bayes holds; p_top is the posterior probability, under the model, that this class is the most probable "
    "one. Neither is the probability that the label is right.",
    "pairs": "Naive Bayes takes features for independent given the class. The log Bayes factor of dependence "
    "against independence (nats; above 5 is strong) says where they are not, and p how often naive Bayes would "
    "produce so much mutual information. Where pairs stand here, stated confidence is not to be trusted.",
}


def page(outcomes: Iterable[tuple[Outcome, Analysis]], prob: float) -> str:
    """A self-contained HTML page."""
    body = "\n".join(_section(outcome, analysis, prob) for outcome, analysis in outcomes)
    guide = "\n".join(f"<p>{escape(text)}</p>" for text in GUIDE)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>bayesnb compare</title>'
        f"<style>{_STYLE}</style></head><body>\n<h1>Naive Bayes: maximum likelihood beside the Bayesian estimates</h1>"
        f"\n{body}\n<h2>How to read this</h2>\n{guide}\n</body></html>\n"
    )


def _section(outcome: Outcome, analysis: Analysis, prob: float) -> str:
    data = outcome.data
    kinds = ", ".join(f"{list(data.kinds.values()).count(k)} {k}" for k in dict.fromkeys(data.kinds.values()))
    parts = [
        f"<h2>{escape(data.name)}</h2>",
        f"<p>{type(outcome.nb).__name__} fitted to {len(data.y):,} rows, columns: {kinds}; classes "
        f"{escape(', '.join(map(str, outcome.nb.classes_)))}; {escape(data.about)}.</p>",
        *(f'<p class="note">{escape(note)}</p>' for note in (*outcome.notes, *analysis.notes)),
        _heading(f"Scores ({outcome.held_out})", "scores"),
        _table(outcome.comparison.reset_index()),
    ]
    titles = {
        "reliability": "Stated confidence and observed accuracy",
        "parameters": f"Parameters that the prior moved most, {100 * prob:g}% intervals",
        "rows": f"The rows that are most uncertain, {100 * prob:g}% intervals",
        "pairs": "Pairs of features that break independence",
    }
    for name, title in titles.items():
        if name in analysis.tables or name in analysis.figures:
            parts.append(_heading(title, name))
        if name in analysis.figures:
            parts.append(_image(analysis.figures[name], title))
        if name in analysis.tables:
            parts.append(_table(analysis.tables[name].head(12)))
    return "\n".join(parts)


def _heading(title: str, name: str) -> str:
    return f'<h3>{escape(title)}</h3>\n<p class="means">{escape(_MEANS[name])}</p>'


def _table(table: pd.DataFrame) -> str:
    html = table.to_html(index=False, border=0, na_rep="–", float_format=lambda v: f"{v:,.4g}", escape=True)
    return f'<div class="wide">{html}</div>'


def _image(figure: Any, title: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
    return f'<img alt="{escape(title)}" src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'
