"""Labelled questions about invented documents, and how often the embedded engine answers them correctly."""
