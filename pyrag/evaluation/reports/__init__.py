"""Reports over runs: summaries, tables, plots, Markdown and HTML."""
