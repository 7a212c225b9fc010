"""Questions over all documents: how many, which of them, something for each, the highest and the lowest."""
