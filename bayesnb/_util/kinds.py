"""Kinds of columns of mixed tables."""

KINDS = {
    "categorical": "columns of levels",
    "gaussian": "columns of numbers",
    "binned": "columns of numbers, with densities of any shape",
    "bernoulli": "columns in which a number above 0 means present, any other absent",
    "poisson": "columns of counts, each with a rate of its own",
    "counts": "columns of overdispersed counts, each with a rate and a dispersion of its own",
    "exponential": "columns of durations, each with a rate of its own",
    "multinomial": "columns that form one vector of counts, such as words",
}
"""Description of the columns of each kind, in the order of their blocks."""
