"""Reproduction of the papers' tables and figures with pyrag's own commands: description, plan, run and report."""
