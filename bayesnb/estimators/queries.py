"""Conditional probabilities of variables of a network."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb import scoring
from bayesnb._util.arguments import require_mapping, shown
from bayesnb.encoding import Levels, NodeColumns
from bayesnb.fitted import Fitted, fill_empty_tables
from bayesnb.uncertainty import CLASS

if TYPE_CHECKING:
    import pandas as pd


def query(fitted: Fitted, variables: Any, given: Mapping[Any, Any] | None) -> pd.Series:
    """Compute P(variables | given) of a network; see `NetworkNB.query` for arguments and errors."""
    import pandas as pd

    from bayesnb.networks.variable_elimination import conditional

    encoding = fitted.encoding
    columns = next((block.network for block in encoding.blocks if block.network is not None), None)
    if CLASS in encoding.blank(fitted.name).names:
        raise ValueError(f"query: a column is called {CLASS!r} as the class is; rename it.")
    levels: dict[str, list[Hashable]] = {CLASS: list(encoding.classes.values)}
    if columns is not None:
        nodes = sorted(child for child, *_ in columns.nodes)
        levels |= {columns.base.names[j]: columns.base.level_names(j) for j in nodes}
    is_single = isinstance(variables, str) or not isinstance(variables, Iterable)
    asked = [_find_variable(v, levels, columns) for v in ([variables] if is_single else variables)]
    if not asked or len(set(asked)) < len(asked):
        raise ValueError(f"variables={shown(variables)} must name one variable or more, each once.")
    given = {} if given is None else given
    require_mapping("given", given, "{'wind': 'strong'}")
    evidence: dict[Hashable, int] = {}
    for name, value in given.items():
        variable = _find_variable(name, levels, columns)
        if variable in asked:
            raise ValueError(f"given: {shown(variable)} is asked for as well.")
        evidence[variable] = int(Levels(tuple(levels[variable])).index([value])[0])
        if evidence[variable] < 0:
            raise ValueError(
                f"given: {shown(value)} is no value of {shown(variable)}, which has {levels[variable][:12]}."
            )
    probability = conditional(_factors(fitted), asked, evidence)
    index = pd.MultiIndex.from_product([levels[v] for v in asked], names=asked)
    return pd.Series(probability.ravel(), index.get_level_values(0) if len(asked) == 1 else index, name="P")


def _find_variable(name: Any, levels: Mapping[str, Any], columns: NodeColumns | None) -> str:
    if isinstance(name, Hashable) and name in levels:
        return str(name)
    if isinstance(name, int | np.integer) and columns is not None:
        name_by_index = dict(zip(columns.index, columns.names, strict=True))
        if int(name) in name_by_index:
            return name_by_index[int(name)]
    raise ValueError(f"query: there is no categorical variable {shown(name)}; there are {list(levels)[:12]}.")


def _factors(fitted: Fitted) -> list[tuple[tuple[Hashable, ...], np.ndarray]]:
    """Return p(class), and p(column | class, parents), at their posterior means."""
    factors: list[tuple[tuple[Hashable, ...], np.ndarray]] = [((CLASS,), np.exp(fitted.class_log_prior))]
    for columns, family in zip(fitted.encoding.blocks, fitted.posterior.blocks, strict=True):
        if (network := columns.network) is not None:
            # A value of the parents that a class never had has probability 0 in the class, whatever its table.
            theta = np.exp(scoring.plug_in(fill_empty_tables(network, family, "mean")).log_theta)
            names = network.base.names
            for (child, *parents), table in zip(network.nodes, network.tables(theta), strict=True):
                # Context tables have a missing parent as their last value; a query sums it out.
                table = table[(slice(None), *(slice(n) for n in network.base.sizes()[parents]))]
                factors.append(((CLASS, *(names[p] for p in parents), names[child]), table))
    return factors


__all__ = ["query"]
