"""The version, for those who write it down."""

__version__ = "0.1.0"
