"""Folders of vectors that are searched with FAISS."""
