"""Readers of single formats: text out of Markdown, HTML, PDF, Word and office documents."""
