"""Estimates of what a program will cost, before it runs."""
