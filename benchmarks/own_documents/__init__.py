"""Labelled questions about invented documents, and how often the embedded engine's answers to them are right."""
