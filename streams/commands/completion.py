from typing import Annotated

import click

from streams.commands.options import Arg, Given, command

SHELLS = ("bash", "zsh", "fish")


class Options(Given):
    shell: Annotated[str, Arg("SHELL", f"One of {', '.join(SHELLS)}.", choices=SHELLS)]


@command("completion", "neardup completion bash > ~/.local/share/bash-completion/completions/neardup")
def completion(options: Options) -> None:
    """Print a script that lets a shell complete commands, options and their values.

    For zsh, `eval "$(neardup completion zsh)"` in ~/.zshrc; for fish, write it to
    ~/.config/fish/completions/neardup.fish.
    """
    from click.shell_completion import get_completion_class

    from streams.commands.app import app

    found = get_completion_class(options.shell)
    assert found is not None
    click.echo(found(app, {}, "neardup", "_NEARDUP_COMPLETE").source())
