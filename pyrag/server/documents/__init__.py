"""Documents sent over HTTP to served index folders."""
