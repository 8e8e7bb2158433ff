"""Conditional probabilities of variables of a network."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb._util.arguments import require_mapping, shown
from bayesnb.encoding import Levels
from bayesnb.estimators.mixed import as_list
from bayesnb.fitted import scoring
from bayesnb.fitted.state import Fitted, fill_empty_tables
from bayesnb.networks import Factor, conditional
from bayesnb.uncertainty import CLASS

if TYPE_CHECKING:
    import pandas as pd


def query(fitted: Fitted, variables: object, given: Mapping[Any, object] | None) -> pd.Series:
    """Compute a Series of P(variables | given) in a network; see `StructuredNB.query` for arguments and errors."""
    import pandas as pd

    fitted.require_single_model("query")
    encoding = fitted.encoding
    columns = encoding.blocks[0].network
    if CLASS in encoding.blank(fitted.name).names:
        raise ValueError(f"query: a column is called {CLASS!r}, which is the name of the class. Rename the column.")
    levels: dict[str, list[Hashable]] = {CLASS: list(encoding.classes.values)}
    names: dict[object, str] = {CLASS: CLASS}
    for child in sorted(child for child, *_ in (columns.nodes if columns else ())):
        name = columns.base.names[child]
        levels[name] = columns.base.level_names(child)
        names |= {name: name, columns.base.index[child]: name}

    def find(variable: object) -> str:
        """Return the name of the class or of a categorical column, given by name or index; else ValueError."""
        if not isinstance(variable, Hashable) or variable not in names:
            known = list(levels)[:12]
            raise ValueError(f"query: {shown(variable)} is not a categorical variable. The variables are {known}.")
        return names[variable]

    asked = [find(variable) for variable in as_list(variables)]
    if not asked or len(set(asked)) < len(asked):
        raise ValueError(f"variables={shown(variables)} must name one or more variables, each once.")
    given = {} if given is None else given
    require_mapping("given", given, "{'wind': 'strong'}")
    evidence: dict[Hashable, int] = {}
    for variable, value in ((find(name), value) for name, value in given.items()):
        evidence[variable] = int(Levels(tuple(levels[variable])).index([value])[0])
        if variable in asked or evidence[variable] < 0:
            known = f"has the levels {levels[variable][:12]}"
            wrong = "is also in variables. Leave it out of one of the two" if variable in asked else known
            raise ValueError(f"given: {shown(variable)} is {shown(value)}, but {shown(variable)} {wrong}.")
    factors: list[Factor] = [((CLASS,), np.exp(fitted.class_log_prior))]
    if columns is not None:
        # A value of the parents that a class never had has probability 0 in the class, whatever its table.
        filled = fill_empty_tables(columns, fitted.posterior.blocks[0], "mean")
        theta = np.exp(scoring.plug_in(filled).log_theta)
        for (child, *parents), table in zip(columns.nodes, columns.tables(theta), strict=True):
            # Context tables have a missing parent as their last value; a query sums it out.
            table = table[(slice(None), *(slice(n) for n in columns.base.sizes()[parents]))]
            factors.append(((CLASS, *(columns.base.names[p] for p in (*parents, child))), table))
    probability = conditional(factors, asked, evidence)  # raises if the table is too large for an index, too
    index: Any = pd.MultiIndex.from_product([levels[v] for v in asked], names=asked)
    return pd.Series(probability.ravel(), index.get_level_values(0) if len(asked) == 1 else index, name="P")
