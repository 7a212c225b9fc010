"""Recipes for training the networks that ship with pyrag."""
