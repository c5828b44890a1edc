#compdef sumbo
_sumbo() {
    local -a names options
    names=(@NAMES@)
    if (( CURRENT == 2 )); then
        _describe command names
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
@CASES@
    esac
    if [[ $command == completion ]]; then
        _arguments $options '1:shell:(bash zsh fish)'
    else
        _arguments $options '1:study:_files -g "*.toml"' '*:file:_files'
    fi
}
if [[ $funcstack[1] == _sumbo ]]; then _sumbo "$@"; else compdef _sumbo sumbo; fi
