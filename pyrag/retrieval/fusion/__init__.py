"""Several sources of passages, searched as one."""
