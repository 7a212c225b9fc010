"""Folders of vectors searched with FAISS."""
