"""Stages of training, one after the other."""
