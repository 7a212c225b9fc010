"""pyrag inside other frameworks: one thin module for each, imported by whoever has that framework installed."""
