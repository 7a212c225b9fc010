"""Host's side: start workers, hand them programs, serve their calls."""
