"""``brwsim profile``."""

from __future__ import annotations

from pathlib import Path

import click

from brwsim.cli.options import PATH, json_option, print_data


@click.command
@click.argument("files", type=PATH, nargs=-1, required=True)
@click.option(
    "--vocab-size",
    "--vocab",
    "vocab_size",
    type=int,
    metavar="N",
    help="The model's vocabulary size; bounds what top-k lists miss.",
)
@click.option("--dependence", is_flag=True, help="Also test the positions for independence; takes seconds.")
@json_option
def profile(files: tuple[Path, ...], vocab_size: int | None, dependence: bool, as_json: bool) -> None:
    """Measure mu and mu2 of real model output.

    FILES are what serving stacks return (OpenAI or vLLM JSON and JSONL with logprobs), or arrays of
    log-probabilities (.npy, .npz, .h5), contexts x tokens. Mass beyond the listed tokens is not guessed:
    mu and mu2 are given as the least and the greatest value it allows.

    Files of acceptance lengths (JSON or JSONL with lists under acc_len or the like) give the mean length of
    each drafter.
    """
    from brwsim.traces.profile import profile as profile_files

    print_data(profile_files(files, vocab_size, dependence), as_json)
