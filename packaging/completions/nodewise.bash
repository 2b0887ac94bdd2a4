# Completion of nodewise in bash. The words come from the program: verbs, options, nodes, devices, processes.
#
# Installed as /usr/share/bash-completion/completions/nodewise, or sourced.

_nodewise() {
    local kind rest word meaning IFS=$'\n'
    COMPREPLY=()
    {
        IFS=$'\t' read -r kind rest
        while IFS=$'\t' read -r word meaning; do
            COMPREPLY+=("$word")
        done
    } < <("${1/#\~/$HOME}" __complete --line "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
    case $kind in
    files)
        compopt -o filenames 2>/dev/null
        COMPREPLY+=($(compgen -f -- "$rest"))
        ;;
    directories)
        compopt -o filenames 2>/dev/null
        COMPREPLY+=($(compgen -d -- "$rest"))
        ;;
    programs)
        COMPREPLY+=($(compgen -c -- "$rest"))
        ;;
    esac
    # A policy goes on with its nodes.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[:=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

complete -F _nodewise nodewise
