# The head of the script of libnuma-clients: $HERE is where things are, $LIB the folder of our library.
highest=0
for node in /sys/devices/system/node/node[0-9]*; do
    number=${node##*/node}
    [ "$number" -gt $highest ] && highest=$number
done
NODES=$highest
before=$((highest > 0 ? highest - 1 : 0))
LAST=$before,$highest
export NODES LAST HERE
folder=$(mktemp -d)
cd "$folder" || exit 1

# Reads a command line, runs it with Debian's library and with ours, and compares.
try() {
    cat > line
    rm -rf t.* u.* db
    timeout 200 sh line < /dev/null > original 2>&1
    original=$?
    rm -rf t.* u.* db
    LD_DEBUG=libs LD_DEBUG_OUTPUT=$folder/loader LD_LIBRARY_PATH=$LIB timeout 200 sh line < /dev/null > ours 2>&1
    ours=$?
    # The loader says which file it took; the memory of a machine varies.
    loaded=$(cat loader.* 2> /dev/null | grep -c "calling init: $LIB/libnuma.so.1")
    rm -f loader.*
    sed -i -E 's/(free: )[0-9]+/\1N/; s/^\[[0-9.]+s\]//; s/(preferred node: )[0-9]+ \(interleave next\)/\1N (interleave next)/
        s/^(interleavenode: )[0-9]+/\1N/; /^libnuma\.c: /d' original ours
    if [ "$loaded" -eq 0 ]; then
        echo "== $1: our library was not loaded"
        echo "-- with Debian's ($original)"
        cat original
        echo "-- with ours ($ours)"
        cat ours
    elif [ $original -ne $ours ] || ! cmp -s original ours; then
        echo "== $1: different"
        diff original ours
    elif [ $ours -ne 0 ] || [ ! -s ours ]; then
        echo "== $1: same, and it fails with both ($ours)"
        head -n 3 ours
    else
        echo "== $1: same"
        head -n 12 ours
    fi
}
