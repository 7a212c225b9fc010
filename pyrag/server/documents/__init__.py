"""Documents sent to served index folders over HTTP."""
