"""Searches of other systems as retrievers: MCP servers and web search engines."""
