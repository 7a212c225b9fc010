"""Readers for single formats: Markdown, HTML, PDF, Word and office documents."""
