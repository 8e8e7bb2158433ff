"""Draws by NUTS, Gibbs sampling and tempering, and the model as a NumPyro program."""

from lazy_loader import attach

__getattr__, __dir__, __all__ = attach(__name__, ["diagnostic_tests", "latent", "nuts", "source"])
