# Completion of nodewise in fish. The words come from the program: verbs, options, nodes, devices, processes.
#
# Installed as /usr/share/fish/vendor_completions.d/nodewise.fish.

function __nodewise_words
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($before[1] __complete -- $before[2..] "$current" 2>/dev/null)
    printf '%s\n' $lines[2..]
    set -l option (string match -r -- '^--[^=]*=' "$current")
    set -l rest (string replace -r -- '^--[^=]*=' '' "$current")
    switch (string split -f 1 \t -- $lines[1])
        case files
            for path in (__fish_complete_path "$rest")
                echo "$option$path"
            end
        case directories
            for path in (__fish_complete_directories "$rest" '')
                echo "$option$path"
            end
        case programs
            __fish_complete_command
    end
end

complete -c nodewise -f -a '(__nodewise_words)'
