"""`pyrag bench`: options, runs, workers and views."""
