"""Recipes that train what ships with pyrag."""
