"""Checks that every figure must pass, and readers of what a figure shows."""

from itertools import combinations

import numpy as np
from matplotlib import collections
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

LONG = "an expression level measured by probe number"


def shown_texts(figure):
    """Texts that are drawn, tick labels outside the limits left out, with their boxes in pixels."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    hidden = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-9 * (high - low)
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if not low - slack <= tick.get_loc() <= high + slack:
                    hidden |= {id(tick.label1), id(tick.label2)}
    found = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip() and id(t) not in hidden]
    return [(t.get_text(), t.get_window_extent(renderer)) for t in found]


def check(ax):
    """Labelled, nothing over anything else, nothing cut off, the axes not squeezed."""
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    figure = ax.figure
    boxes = shown_texts(figure)
    assert len(boxes) > 4
    for name, box in boxes:
        assert min(box.x0, box.y0) >= -1, name
        assert max(box.x1 - figure.bbox.x1, box.y1 - figure.bbox.y1) <= 1, name
    for (name, a), (other, b) in combinations(boxes, 2):
        wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert wide < 1 or high < 1, (name, other)
    box = ax.get_window_extent()
    for name, inside in boxes:
        if inside.x0 > box.x0 and inside.x1 < box.x1:
            assert inside.y0 >= box.y1 - 1 or inside.y1 <= box.y0 + 1, f"{name} covers the data"
    assert min(box.width, box.height) / figure.dpi > 1
    return ax


def said(ax) -> str:
    """The header: its lines, then the labels of its marks."""
    legend = ax.get_legend()
    return "\n".join([legend.get_title().get_text(), *(t.get_text() for t in legend.get_texts())])


def segments(ax) -> np.ndarray:
    """(n, 2, 2) ends of the vertical lines."""
    found = [c for c in ax.collections if isinstance(c, collections.LineCollection)]
    return np.concatenate([np.array(c.get_segments()) for c in found])


def dots(ax) -> np.ndarray:
    return np.concatenate([np.asarray(c.get_offsets()) for c in ax.collections if type(c).__name__ == "PathCollection"])
