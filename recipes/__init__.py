"""Recipes: training of the networks that pyrag ships. They run from a checkout and are not part of the wheel."""
