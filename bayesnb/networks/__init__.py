"""Structures of networks: learning from counts, and exact inference."""
