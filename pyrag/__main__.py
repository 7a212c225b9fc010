"""Entry point of `python -m pyrag`, which is the same as the command `pyrag`."""

from pyrag.cli.main import main

if __name__ == "__main__":
    main()
