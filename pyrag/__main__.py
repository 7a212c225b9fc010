"""`python -m pyrag` is the command `pyrag`."""

from pyrag.cli.main import main

if __name__ == "__main__":
    main()
