# The middle of the script of doctor-soak --busy, behind the head of advise-programs: a window at rest, then a program after the
# other begins, and at last all are set to work.
echo 1 > /proc/sys/kernel/numa_balancing
# Beside a dozen busy programs on emulated CPUs doctor would take minutes for what it reads.
NW="nice -n -10 $NW"
document idle $NW doctor --window 10s --json
# The page of nginx's program is in its folder.
ln -s nginx/page page

# The console is what is left of a guest whose time is over.
progress() {
    say "$1 after $SECONDS s"
    echo "doctor-soak: $1" > /dev/kmsg
}
cgroup=/sys/fs/cgroup
echo +cpu > $cgroup/cgroup.subtree_control
mkdir $cgroup/work
# Starts a program in a process of its own.
begin_one() {
    mkdir -p $WORK/$1
    (
        cd $WORK/$1 || exit 1
        echo $BASHPID > $cgroup/work/cgroup.procs
        NAME=$1
        program_$1
    ) &
    NAMES="$NAMES $1"
}
# Waits until programs are ready, each until the time of all is over.
until_ready() {
    end=$((SECONDS + $1))
    shift
    for name in "$@"; do
        until [ -e $WORK/$name/is-ready ] || [ $SECONDS -gt $end ]; do sleep 1; done
        progress "started $name"
    done
}
# Servers begin one after the other, because they are idle until there is work. What computes begins at once with the rest.
server() {
    begin_one $1
    until_ready 240 $1
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
    until_ready 300 $NAMES
    # All programs have the time of one and a half of the four CPUs, as in a container: one thread of the host emulates
    # all of them, and doctor would wait for its turn for minutes.
    echo 150000 100000 > $cgroup/work/cpu.max
    touch $WORK/work
    sleep 20
    at=1
    while [ $at -le $1 ]; do
        document busy-$at $NW doctor --window 10s --json
        progress "window $at"
        at=$((at + 1))
    done
    for name in $NAMES; do
        if [ -e $WORK/$name/is-ready ]; then say "working $name"; else say "missing $name"; fi
    done
    ps -eo pid,psr,rss,time,comm --sort=-rss | head -n 40
    kill $(jobs -p) 2> /dev/null
}
