"""Adapters for other frameworks: a thin module for each, to be imported if that framework is installed."""
