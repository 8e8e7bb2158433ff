"""Predictions one can believe: what exact leave-one-out makes of class probabilities."""
