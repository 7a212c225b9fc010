"""The experience library: insights by kind of question, their utilities, and their exchange."""
