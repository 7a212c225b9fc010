"""HERA's agents and coach without a language model."""
