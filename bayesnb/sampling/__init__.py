"""The model as NumPyro programs, and draws from them by the No-U-Turn sampler."""
