"""Retrievers that use searches of other systems: MCP servers, web search engines and frameworks."""
