"""Worker's side: the zygote, the locked process, and the execution of one program."""
