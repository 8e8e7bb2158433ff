"""Annotated array shapes hold while the laws run: `pytest --shapes`, see `conftest.py`."""

import subprocess
import sys
import typing

import jax.numpy as jnp
import pytest
from jaxtyping import AbstractArray

from bayesnb.families import OF_NUMBERS, Dirichlet, LevelCounts
from bayesnb.fitted.scoring import most_probable


@pytest.mark.slow("starts processes that import JAX")
def test_the_laws_hold_with_shapes_that_are_as_annotated():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--shapes"]
    done = subprocess.run([*command, __file__, "tests/laws"], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-5000:]


def test_a_shape_that_is_not_as_annotated_is_told(request):
    if not request.config.option.shapes:
        pytest.skip("shapes are checked with --shapes")
    with pytest.raises(TypeError, match="parameter 'weight'"):
        LevelCounts(jnp.zeros((2, 3))).observe(jnp.ones((4, 3)), jnp.zeros(4, int), jnp.ones(5))
    with pytest.raises(TypeError, match="parameter 'scores'"):
        most_probable(jnp.zeros(3))


def test_every_family_says_the_shapes_of_its_densities():
    for family in (Dirichlet, *OF_NUMBERS):
        returned = typing.get_type_hints(family.log_evidence)["return"]
        assert issubclass(returned, AbstractArray)
        returned = typing.get_type_hints(family.likelihood.log_prob)["return"]
        assert returned.dim_str == "N C"
