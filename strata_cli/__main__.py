from strata_cli.main import main

main()
