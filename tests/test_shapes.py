"""What is annotated with a shape has it, wherever the slow tests go: see `conftest.py`."""

from __future__ import annotations

import typing

import jax.numpy as jnp
import pytest
from jaxtyping import AbstractArray

from bayesnb.families import OF_NUMBERS, Dirichlet, LevelCounts
from bayesnb.scoring import decision


@pytest.mark.slow("shapes are checked beside the slow tests")
def test_a_shape_that_is_not_as_annotated_is_told():
    with pytest.raises(TypeError, match="parameter 'weight'"):
        LevelCounts(jnp.zeros((2, 3))).observe(jnp.ones((4, 3)), jnp.zeros(4, int), jnp.ones(5))
    with pytest.raises(TypeError, match="parameter 'scores'"):
        decision(jnp.zeros(3))


def test_every_family_says_the_shapes_of_its_densities():
    for family in (Dirichlet, *OF_NUMBERS):
        returned = typing.get_type_hints(family.log_evidence)["return"]
        assert issubclass(returned, AbstractArray)
        returned = typing.get_type_hints(family.likelihood.log_prob)["return"]
        assert returned.dim_str == "N C"
