"""Primitives over the whole corpus: `documents`, `count`, `open_document`, `each`, typed `answer`, and `budget`."""
