"""Readers of single formats: Markdown, HTML, PDF, Word and office documents."""
