"""Overview of a corpus, by which planners write programs over all documents."""
