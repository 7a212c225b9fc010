"""Experience library: insights by kind of question, with their utilities, and their import and export."""
