# The head of the script of advise-programs in its guest. The program's own functions follow: `start` runs it behind the
# words of its arguments and sets PID, `ready` waits for it, `load` is a loop that keeps it at work, `subject` prints the
# process that matters. $HERE is the folder with what was prepared, $BAD the options of its bad placement.
NW=/run/nodewise/programs/nodewise
WORK=/tmp/advise-programs
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mkdir -p $WORK
cd $WORK || exit 1
ip link set lo up 2> /dev/null
# The kernel's balancing would move pages meanwhile.
echo 0 > /proc/sys/kernel/numa_balancing

load() { :; }
ready() { sleep 1; }
subject() { echo "$PID"; }
largest() { ps -C "$1" -o pid= --sort=-rss | head -n 1 | tr -d ' '; }
busiest() { ps -C "$1" -o pid= --sort=-times | head -n 1 | tr -d ' '; }
# Waits for a command to succeed.
until_works() {
    tries=0
    until "$@" > /dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -gt 300 ] && { say "error $* never worked"; exit 1; }
        sleep 1
    done
}
say() { echo "@@ $*"; }
document() {
    say "document $1"
    shift
    "$@" 2> errors
    echo
    say "exit $?"
    # Errors are text, and may have no line feed at the end.
    sed 's/^/| /' errors
}
begin() {
    start "$@"
    ready
    # A group of its own, which ends as a whole: a client that outlives its shell would keep the program at work.
    set -m
    load > /dev/null 2>&1 &
    LOAD=$!
    set +m
    SUBJECT=$(subject)
}
finish() {
    kill -KILL -- -$LOAD 2> /dev/null
    stop
    tries=0
    while kill -0 $PID 2> /dev/null && [ $tries -lt 20 ]; do
        tries=$((tries + 1))
        sleep 1
    done
    kill -KILL $PID 2> /dev/null
    wait $PID 2> /dev/null
}
stop() { kill $PID 2> /dev/null; }
# The remote share of the program at work. CPU time of a thread that changed nodes within a window is of no certain node:
# a shorter one follows.
measure() {
    for seconds in 8 2 2 1 1 1; do
        $NW stat $seconds 1 --json --pid "$SUBJECT" > measured
        grep -q '"local_index"' measured && break
    done
    document "$1" cat measured
}

advise() {
    begin $NW run $BAD --
    # The growth of a program in its first minute says nothing.
    sleep 62
    SUBJECT=$(subject)
    measure before
    document advice $NW advise "$SUBJECT" --window 10s --json
    document apply $NW advise "$SUBJECT" --window 5s --json --apply --journal $WORK/journal
    measure applied
    finish
}
again() {
    # Without a word it is placed by no one.
    if [ -n "$1" ]; then begin $NW run $1 --; else begin; fi
    sleep 15
    SUBJECT=$(subject)
    measure restarted
    finish
}
doctor() {
    begin
    sleep 15
    document doctor $NW doctor --window 10s --json
    finish
}
