"""Structures: which features depend on which, and the probabilities of some given others."""
