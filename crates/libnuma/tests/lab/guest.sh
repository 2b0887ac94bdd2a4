#!/bin/sh
# Runs every line of $NODEWISE_SCRATCH/commands with Debian's library and with the one in folder $1,
# and program $2 with the latter alone.
ours=$1

# The policy and the pages of memory that memhog fills, again and again, until it is stopped.
placed() {
    # On CPU 0, for policies that take what is near.
    taskset -c 0 memhog -r100000 8m "$@" > /dev/null &
    hog=$!
    # The memory is there when its last page is.
    until grep -q 'anon=2048' /proc/$hog/numa_maps; do
        kill -0 $hog || return
    done
    grep 'anon=2048' /proc/$hog/numa_maps | tr ' ' '\n' | grep -E '^(bind|interleave|prefer|default|local|N[0-9])' |
        tr '\n' ' ' | sed 's/ $//'
    echo
    kill -9 $hog
    wait $hog 2> /dev/null || :
}

try() {
    echo "== $1 $line"
    # Numbers that vary: free memory, addresses, pages in use, and the node of the next interleaved page, which
    # depends on how often the program allocated. A word that 2.0.16 writes by mistake, and no later
    # version.
    (eval "$line"; echo "rc $?") 2>&1 | sed -E '
        s/(free: )[0-9]+/\1N/
        s/^[0-9a-f]{8,16}-[0-9a-f]{8,16}/RANGE/
        s/^(preferred node: )[0-9]+ \(interleave next\)/\1N (interleave next)/
        s/ active=[0-9]+//
        s/^(interleavenode: )[0-9]+/\1N/
        /^libnuma\.c: /d'
}

while read -r line; do
    try original
    export LD_LIBRARY_PATH="$ours"
    try ours
    unset LD_LIBRARY_PATH
done < "$NODEWISE_SCRATCH/commands"
line=$2
export LD_LIBRARY_PATH="$ours"
try alone
