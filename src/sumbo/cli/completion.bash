# bash completion for sumbo
_sumbo() {
    local current="${COMP_WORDS[COMP_CWORD]}" words=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "@NAMES@ --help --version" -- "$current")
        return
    fi
    case "${COMP_WORDS[1]}" in
@CASES@
    esac
    if [ "${COMP_WORDS[1]}" = completion ]; then words="$words bash zsh fish"; fi
    if [[ "$current" == -* || "${COMP_WORDS[1]}" == completion ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    elif [ "$COMP_CWORD" -eq 2 ]; then
        mapfile -t COMPREPLY < <(compgen -f -X '!*.toml' -- "$current"; compgen -d -- "$current")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
}
complete -o filenames -F _sumbo sumbo
