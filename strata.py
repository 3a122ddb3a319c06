"""`python -m strata`: the command, run by this interpreter."""

from strata_cli.main import main

if __name__ == "__main__":
    main()
