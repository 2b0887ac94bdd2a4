# The middle of the script of doctor-soak --busy, behind the head of advise-programs: a window at rest, then a program after the
# other begins, and at last all are set to work.
echo 1 > /proc/sys/kernel/numa_balancing
document idle $NW doctor --window 10s --json
# The page of nginx's program is in its folder.
ln -s nginx/page page

# Starts a program in a process of its own, and waits until it is ready.
with() {
    mkdir -p $WORK/$1
    (
        cd $WORK/$1 || exit 1
        NAME=$1
        program_$1
    ) &
    tries=0
    until [ -e $WORK/$1/is-ready ]; do
        tries=$((tries + 1))
        [ $tries -gt 600 ] && { say "slow $1"; return; }
        sleep 1
    done
    NAMES="$NAMES $1"
}
# The part of a program that all have: it stays, and works when told.
at_work() {
    start
    ready
    touch is-ready
    until [ -e $WORK/work ]; do sleep 1; done
    load > /dev/null 2>&1 &
    while kill -0 $PID 2> /dev/null; do sleep 1; done
    rm -f is-ready
    # A program of one run begins again.
    start
    touch is-ready
    wait
}
examine() {
    touch $WORK/work
    sleep 20
    at=1
    while [ $at -le $1 ]; do
        document busy-$at $NW doctor --window 10s --json
        at=$((at + 1))
    done
    for name in $NAMES; do
        if [ -e $WORK/$name/is-ready ]; then say "working $name"; else say "missing $name"; fi
    done
    ps -eo pid,psr,rss,time,comm --sort=-rss | head -n 40
    kill $(jobs -p) 2> /dev/null
}
