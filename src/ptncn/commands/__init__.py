"""The subcommands of `ptncn`, one module each."""
