"""``python -m brwsim``."""

from brwsim.cli.main import main

main(prog_name="brwsim")
