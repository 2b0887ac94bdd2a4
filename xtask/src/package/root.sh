# The life of the packages in a clean root of Debian. Each step is a function; the first that fails ends it.
# The first word says how programs of the root run: "native", or "emulated" by qemu-user, which answers calls about memory
# policies with ENOSYS and is slow.
set -euo pipefail
run=$1
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root
cd /debs

fail() {
    echo "  FAILED: $*" >&2
    exit 1
}

# Behind a pipe grep counts (-c): one that ends at the first match (-q) would end the program before it, too.

# apt with the local files, and nothing but its errors.
get() {
    apt-get -q -y --no-install-recommends "$@" >/tmp/apt.log 2>&1 || {
        cat /tmp/apt.log >&2
        fail "apt-get $*"
    }
}

is_installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# All files but those that any installation changes.
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /debs -o -path /var/lib/dpkg \
        -o -path /var/lib/apt -o -path /var/cache -o -path /var/log -o -path /root.sh \) -prune -o -print | LC_ALL=C sort
}

as_user() {
    setpriv --reuid=1000 --regid=1000 --clear-groups --no-new-privs env HOME=/tmp/user "$@"
}

step() {
    local started=$SECONDS
    "$@"
    echo "  ok  $(echo "$1" | tr _ ' ') ($((SECONDS - started)) s)"
}

reading_package_lists() {
    apt-get -q update >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; fail "apt-get update"; }
}

installing_from_a_file() {
    files >/tmp/files.before
    get install ./older.deb
    [ "$(dpkg-query -W -f='${Version}' nodewise)" = 0.0.1 ] || fail "the older package is not there"
}

upgrading() {
    get install ./nodewise_[0-9]*.deb
    [ "$(dpkg-query -W -f='${Version}' nodewise)" != 0.0.1 ] || fail "it was not upgraded"
    [ ! -e /usr/share/nodewise/only-in-0.0.1 ] || fail "a file of the older package is left"
    dpkg --verify nodewise | tee /tmp/verify
    [ ! -s /tmp/verify ] || fail "files differ from the package"
    dpkg --audit | tee /tmp/audit
    [ ! -s /tmp/audit ] || fail "dpkg --audit has something to say"
}

using_it_as_an_ordinary_user() {
    mkdir -p /tmp/user && chown 1000:1000 /tmp/user
    as_user nodewise show | grep -c "node" >/dev/null || fail "nodewise show"
    as_user nodewise run --cpunodebind=0 -- true || fail "nodewise run --cpunodebind"
    if [ "$run" = native ]; then
        as_user nodewise run --localalloc -- true || fail "nodewise run --localalloc"
    fi
    # Emulated, on a busy machine, one round takes seconds.
    local time=10s
    if [ "$run" = emulated ]; then time=60s; fi
    as_user nodewise tune --time $time -- true | grep -c "placement" >/dev/null || fail "nodewise tune"
    as_user nodewise show --machine "2x(4c 8G); dist=21" --json | grep -c '"nodewise.machine/1"' >/dev/null || fail "a machine file"
}

reading_its_pages() {
    get install man-db
    as_user man nodewise-tune >/tmp/page || fail "man nodewise-tune"
    grep -q -- "--placement" /tmp/page || fail "man nodewise-tune has no --placement"
    [ "$run" = native ] || return 0
    for page in /usr/share/man/man1/nodewise*.1.gz; do
        man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>/tmp/warnings >/dev/null || fail "man $page"
        [ ! -s /tmp/warnings ] || { cat /tmp/warnings; fail "$page"; }
    done
}

# What a shell offers for a line.
in_bash() {
    bash -c 'source /usr/share/bash-completion/completions/nodewise
        COMP_LINE=$1 COMP_POINT=${#1} COMP_CWORD=2
        _nodewise nodewise 2>/dev/null
        printf "%s\n" "${COMPREPLY[@]}"' bash "$1"
}

completing_in_shells() {
    [ "$(in_bash 'nodewise run --membin')" = --membind ] || fail "bash: options: $(in_bash 'nodewise run --membin')"
    in_bash 'nodewise run --membind ' | grep -cx 0 >/dev/null || fail "bash: nodes"
    in_bash 'nodewise sh' | grep -cx show >/dev/null || fail "bash: verbs"
    in_bash 'nodewise show --svg=/etc/host' | grep -cx /etc/hostname >/dev/null || fail "bash: files"
    [ "$run" = native ] || return 0
    get install fish zsh
    fish -c 'complete -C "nodewise run --membin"' | grep -c '^--membind' >/dev/null || fail "fish: options"
    fish -c 'complete -C "nodewise run --membind "' | grep -c '^0' >/dev/null || fail "fish: nodes"
    fish -c 'complete -C "nodewise show --svg=/etc/hostn"' | grep -c -- '--svg=/etc/hostname' >/dev/null || fail "fish: files"
    # zsh completes in a terminal only: one is made for it.
    zsh -f -c '
        zmodload zsh/zpty
        zpty shell zsh -f -i
        zpty -w shell "autoload -Uz compinit; compinit -u; PS1=; unsetopt zle_bracketed_paste; print READY"
        zpty -m -r shell text "*READY*READY*"
        zpty -n -w shell "nodewise run --membin"$'"'\t'"'
        sleep 1
        zpty -n -w shell "=0 --explain"
        sleep 1
        while zpty -r -t shell text; do print -rn -- $text; done
    ' >/tmp/zsh.log 2>&1 || true
    grep -q -- "--membind" /tmp/zsh.log || { cat -v /tmp/zsh.log; fail "zsh: options"; }
}

taking_the_place_of_numactl() {
    get install numactl
    cp /usr/bin/numactl /tmp/numactl.original
    get install ./nodewise-numactl_*.deb
    is_installed numactl && fail "numactl is still there"
    [ "$(readlink -f /usr/bin/numactl)" = /usr/bin/nodewise ] || fail "numactl is not nodewise"
    numactl --hardware | grep -c "node 0" >/dev/null || fail "numactl --hardware"
    numastat | grep -c numa_hit >/dev/null || fail "numastat"
    man -w numactl | grep -c man8/numactl.8 >/dev/null || fail "man numactl"
    get install numactl
    is_installed nodewise-numactl && fail "nodewise-numactl is still there"
    cmp -s /usr/bin/numactl /tmp/numactl.original || fail "the original is not back"
    get purge numactl libnuma1
}

taking_the_place_of_libnuma() {
    get install mariadb-server-core numad qemu-system-x86
    is_installed libnuma1 || fail "libnuma1 is not there"
    get install ./nodewise-libnuma1_*.deb
    is_installed libnuma1 && fail "libnuma1 is still there"
    local library
    library=$(ldd "$(command -v mariadbd)" | sed -n 's/.*libnuma.so.1 => \([^ ]*\).*/\1/p')
    dpkg -S "$(readlink -f "$library")" | grep -c nodewise-libnuma1 >/dev/null || fail "mariadbd has another library: $library"
    mariadbd --version >/dev/null || fail "mariadbd does not start"
    mkdir -p /tmp/db && chown 1000:1000 /tmp/db
    echo "select 6 * 7;" | as_user mariadbd --no-defaults --datadir=/tmp/db --bootstrap --innodb-numa-interleave=1 \
        --log-error=/tmp/db/log >/tmp/db.out 2>&1 || { cat /tmp/db.out /tmp/db/log; fail "mariadbd --bootstrap"; }
    numad -h >/dev/null 2>&1 || numad -V >/dev/null 2>&1 || fail "numad does not start"
    qemu-system-x86_64 -M none -display none -object memory-backend-ram,id=m,size=1M,host-nodes=0,policy=bind \
        -monitor stdio -S <<<quit >/tmp/qemu.out 2>&1 || { cat /tmp/qemu.out; fail "qemu-system-x86_64"; }
    get install libnuma1
    is_installed nodewise-libnuma1 && fail "nodewise-libnuma1 is still there"
    get install mariadb-server-core
}

compiling_with_it() {
    get install gcc libc6-dev pkg-config ./nodewise-libnuma1_*.deb ./nodewise-libnuma-dev_*.deb
    printf '#include <numa.h>\nint main(void) { return numa_available() < 0 || numa_max_node() < 0; }\n' >/tmp/t.c
    gcc -o /tmp/t /tmp/t.c $(pkg-config --cflags --libs numa) || fail "linking"
    /tmp/t || fail "the program"
    gcc -static -o /tmp/t /tmp/t.c $(pkg-config --static --cflags --libs numa) || fail "linking statically"
    /tmp/t || fail "the static program"
}

removing_and_purging() {
    mkdir -p /var/lib/nodewise && touch /var/lib/nodewise/settings.journal
    for package in nodewise-libnuma1 nodewise-libnuma-dev; do
        if is_installed $package; then get purge $package; fi
    done
    get remove nodewise
    [ ! -e /usr/bin/nodewise ] || fail "the command is left"
    [ -e /var/lib/nodewise/settings.journal ] || fail "the journal went with remove"
    get purge nodewise
    [ ! -e /var/lib/nodewise ] || fail "the journal is left after purge"
    files >/tmp/files.after
    if comm -13 /tmp/files.before /tmp/files.after | grep nodewise; then
        fail "these are left"
    fi
}

steps="reading_package_lists installing_from_a_file upgrading using_it_as_an_ordinary_user reading_its_pages completing_in_shells
    taking_the_place_of_numactl"
# Servers and compilers would be emulated for minutes, and say nothing more about the packages.
[ "$run" = emulated ] || steps="$steps taking_the_place_of_libnuma compiling_with_it"
for step in $steps removing_and_purging; do
    step $step
done
