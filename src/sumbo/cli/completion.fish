# fish completion for sumbo
complete -c sumbo -f
@CASES@
