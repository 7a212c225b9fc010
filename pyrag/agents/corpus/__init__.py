"""Overview of a corpus, which planners use to write programs over all documents."""
