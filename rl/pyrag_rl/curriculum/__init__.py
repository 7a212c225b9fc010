"""Curricula: sequences of training stages."""
