"""The model as NumPyro programs, and draws from them by the No-U-Turn sampler."""

from lazy_loader import attach

__getattr__, __dir__, __all__ = attach(__name__, ["diagnostic_tests", "latent", "nuts", "source"])
