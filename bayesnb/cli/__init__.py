"""The commands behind `python -m bayesnb`."""
