"""Checks whether an answer has the form, the unit and the extent that its question asks for."""
