"""HTML displays are valid, escaped, in the colours of the page, and show the attributes' values."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import bayesnb as bnb
from bayesnb._util import html
from bayesnb.estimators import predictions

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(c, 1.0, (20, 2)) for c in (0, 2)])
Y = np.repeat(["<b>", "x&y"], 20)


class Cells(HTMLParser):
    """Rows of cells of all tables, the text around them, and whether every tag that opens closes."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open, self.styles, self.text = [], [], [], ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag not in ("input", "br", "hr", "img", "meta"):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self.styles += [value or "" for name, value in attrs if name == "style"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    def row(self, head):
        """Numbers of the row that begins so; one may stand behind a sign of plus and minus."""
        (found,) = (row for row in self.rows if row[0] == head)
        return [float(cell.removeprefix("± ").removesuffix("%")) for cell in found[1:] if re.search(r"\d", cell)]


def shown(what):
    return Cells(what._repr_html_())


def close(found, *expected):
    np.testing.assert_allclose(found, expected, rtol=5e-4)


@pytest.fixture(scope="module")
def nb():
    return bnb.GaussianNB().fit(X, Y)


def test_a_table_is_escaped_and_inherits_its_colours():
    page = Cells(
        html.card("A <title>", "of & <i>", html.table([("<b>", 1, 0.123456)], ("a", "<u>", "c")), notes=["<p>"])
    )
    assert page.rows == [["a", "<u>", "c"], ["<b>", "1", "0.1235"]]
    assert "A <title>, of & <i>" in page.text
    assert page.text.endswith("<p>")
    for style in page.styles:
        assert not re.search(r"#[0-9a-f]{3}|rgb|white|black", style)
    assert html.table([]) == html.table(iter(())), "a table without rows is one"


def test_a_classifier_shows_its_diagram_and_what_was_counted(nb):
    both = nb._repr_html_()
    diagram = clone(nb)._repr_html_()
    assert "sk-container" in diagram
    assert "fitted to" not in diagram
    assert nb._repr_mimebundle_()["text/html"].count("sk-container-id") >= 1
    page = Cells(predictions.summary(nb))
    assert "fitted to 40 rows of 2 features, 2 classes" in page.text
    assert page.row("<b>") == [20.0, 50.0]
    assert ["gaussian", "2", "prior = 'within'"] in page.rows
    assert both.endswith(predictions.summary(nb))
    assert nb._repr_mimebundle_()["text/html"].endswith(predictions.summary(nb))


def test_the_text_alone_where_scikit_learn_is_told_so(nb):
    from sklearn import config_context

    with config_context(display="text"):
        assert "text/html" not in nb._repr_mimebundle_()
        assert not hasattr(nb, "_repr_html_")


LEVELS = np.array([["a", "u"], ["b", "v"], ["a", "v"], ["b", "u"]] * 5)
HALF = ["<b>", "x"] * 10


def test_a_display_never_fails(nb):
    """Values that cannot be displayed are left out, whatever was set after `fit`."""

    class Bad:
        def __repr__(self):
            raise RuntimeError("no")

    class Odd(bnb.GaussianNB):
        @property
        def no_posterior(self):
            if "fitted_" in vars(self):
                raise RuntimeError("no")

    odd = Odd().fit(X, Y)
    assert "fitted to 40 rows" in predictions.summary(odd)
    nb = bnb.GaussianNB().fit(X, Y)
    nb.prior = Bad()
    assert "fitted to 40 rows" in Cells(predictions.summary(nb)).text
    del nb.fitted_
    assert predictions.summary(nb) == ""
    assert predictions.summary(bnb.GaussianNB()) == ""
    assert predictions.summary(BaseEstimator()) == ""


@pytest.mark.slow("compiles kernels of its own")
def test_leave_one_out(nb):
    found = bnb.loo(nb, X, Y)
    page = shown(found)
    close(page.row("elpd, nats"), found.elpd, found.se)
    close(page.row("log loss of a label"), -found.elpd / 40)
    close(page.row("accuracy"), found.accuracy)
    worst = int(found.pointwise.argmin())
    (row,) = (row for row in page.rows if row[0] == str(worst))
    assert row[1] == Y[worst]
    close(float(row[2]), np.exp(found.pointwise[worst]))
    tree = bnb.TAN().fit(LEVELS, HALF)
    of_tree = bnb.loo(tree, LEVELS, HALF)
    assert of_tree.notes
    assert all(note in shown(of_tree).text for note in of_tree.notes)


@pytest.mark.slow("compiles kernels of its own")
def test_conformal_and_its_sets(nb):
    found = bnb.conformal(nb, X, Y)
    assert shown(found).row("<b>") == [40.0]
    sets = found.predict_set(X, 0.8)
    page = shown(sets)
    numbers = [sets.n_empty, sets.n_single, sets.n_several]
    assert [page.row(name)[0] for name in ("no label", "one", "several")] == numbers
    assert [page.row(c)[0] for c in sets.classes] == sets.members.sum(axis=0).tolist()
    assert "coverage 0.8" in page.text
    assert "exchangeable" in page.text


def test_a_posterior_shows_shapes_and_ranges(nb):
    model, family = nb.posterior_, nb.posterior_.blocks[0]
    page = shown(model)
    (loc,) = (row for row in page.rows if row[0].endswith(".loc"))
    assert loc[1] == "(2, 2)"
    close([float(loc[2]), float(loc[3])], family.loc.min(), family.loc.max())
    assert ["loc", "(2, 2)", *loc[2:]] in shown(family).rows
    assert len(repr(model)) < 500
    assert repr(family).startswith("NormalInverseGamma(loc=(2, 2) from ")
    assert shown(nb.statistics_).rows


def test_weights_are_told(nb):
    weighted = bnb.WeightedNB(bnb.GaussianNB()).fit(X, Y)
    page = Cells(predictions.summary(weighted))
    close(page.row("temperature"), weighted.temperature_)
    close(page.row("least"), weighted.weight_.min())
    close(page.row("expected log loss"), weighted.expected_log_loss_)


def test_decisions_that_are_never_taken_and_have_no_regret():
    found = bnb.decide(bnb.AODE().fit(LEVELS, HALF), LEVELS[:2], [[0, 1], [1, 0]], reject_cost=0.9)
    page = shown(found)
    assert ["reject", "0", "", ""] in page.rows
    assert ["expected regret", "nan"] in page.rows
