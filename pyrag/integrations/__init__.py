"""Adapters for other frameworks: a small module for each, to be imported if that framework is installed."""
