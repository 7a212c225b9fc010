"""The papers' tables and figures as lists of pyrag's own commands: described, planned, run, reported."""
