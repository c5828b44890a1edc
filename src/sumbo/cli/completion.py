"""Completion scripts for shells, made from the parser, so that they cannot fall behind it."""

import argparse


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The script for bash, zsh or fish."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](_commands(parser))


Commands = dict[str, tuple[str, list[tuple[str, str]]]]  # name: summary, [(option, help)]


def _commands(parser: argparse.ArgumentParser) -> Commands:
    subparsers = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    summaries = {action.dest: action.help or "" for action in subparsers._choices_actions}
    found: Commands = {}
    for name, command in subparsers.choices.items():
        options = [(o, a.help or "") for a in command._actions for o in a.option_strings if o.startswith("-")]
        found[name] = (summaries[name], options)
    return found


def _bash(commands: Commands) -> str:
    cases = "\n".join(
        f'        {name}) words="{" ".join(option for option, _ in options)}" ;;'
        for name, (_, options) in commands.items()
    )
    return f"""# bash completion for sumbo
_sumbo() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" words=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "{" ".join(commands)} --help --version" -- "$current")
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    if [ "${{COMP_WORDS[1]}}" = completion ]; then words="$words bash zsh fish"; fi
    if [[ "$current" == -* || "${{COMP_WORDS[1]}}" == completion ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    elif [ "$COMP_CWORD" -eq 2 ]; then
        mapfile -t COMPREPLY < <(compgen -f -X '!*.toml' -- "$current"; compgen -d -- "$current")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
}}
complete -o filenames -F _sumbo sumbo
"""


def _zsh(commands: Commands) -> str:
    names = " ".join(_quoted(f"{name}:{summary}") for name, (summary, _) in commands.items())
    cases = "\n".join(
        f"        {name}) options=({' '.join(_quoted(f'{o}[{h}]'.replace(':', ' ')) for o, h in options)}) ;;"
        for name, (_, options) in commands.items()
    )
    return f"""#compdef sumbo
_sumbo() {{
    local -a names options
    names=({names})
    if (( CURRENT == 2 )); then
        _describe command names
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
{cases}
    esac
    if [[ $command == completion ]]; then
        _arguments $options '1:shell:(bash zsh fish)'
    else
        _arguments $options '1:study:_files -g "*.toml"' '*:file:_files'
    fi
}}
if [[ $funcstack[1] == _sumbo ]]; then _sumbo "$@"; else compdef _sumbo sumbo; fi
"""


def _fish(commands: Commands) -> str:
    lines = ["# fish completion for sumbo", "complete -c sumbo -f"]
    for name, (summary, options) in commands.items():
        lines.append(f"complete -c sumbo -n __fish_use_subcommand -a {name} -d {_quoted(summary)}")
        here = f"complete -c sumbo -n '__fish_seen_subcommand_from {name}'"
        for option, text in options:
            flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            lines.append(f"{here} {flag} -d {_quoted(text)}")
        lines.append(f"{here} -a 'bash zsh fish'" if name == "completion" else f"{here} -F")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "") + "'"
