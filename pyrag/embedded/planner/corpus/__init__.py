"""Questions over all documents: how many there are, which ones match, an item for each, the highest and the lowest."""
