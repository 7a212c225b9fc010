"""`pyrag bench`: options, the run, its workers and its views."""
