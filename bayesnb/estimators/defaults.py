"""Default hyperparameters of several classifiers."""

ALPHA = 1.0
"""Dirichlet concentration of a level; 1 is Laplace smoothing."""
CLASS_ALPHA = 1.0
"""Dirichlet concentration of a class."""
CELLS = 64
"""Largest number of cells of a column of numbers."""
DEPENDENCE_CELLS = 6
"""Largest number of cells of a column of numbers that takes part in a structure."""
INCLUSION = 0.5
"""Prior probability that a feature depends on the class."""
