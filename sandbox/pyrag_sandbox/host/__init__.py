"""The host's side: starts workers, gives them programs and serves their calls."""
