"""`pyrag ask`: one question live, or many from stdin."""
