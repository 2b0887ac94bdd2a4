//! The programs: what each needs, how it is prepared on the host, and how it is started in the guest.

/// A real program.
pub struct Program {
    pub name: &'static str,
    /// A program or file that must be there, and Debian's package that has it.
    pub needs: &'static [(&'static str, &'static str)],
    /// Lines of a shell on the host, in the program's folder.
    pub prepare: &'static str,
    /// Functions of the guest's script.
    pub functions: &'static str,
    /// Options of `nodewise run` for its bad placement: away from its memory, or an old rule that does not suit it.
    pub bad: &'static str,
    /// Whether doctor has to be silent beside it, too.
    pub is_ordinary: bool,
}

/// CPUs of one node and memory of another, as a copied line of numactl does.
const AWAY: &str = "--cpunodebind=0 --membind=2";
/// The old rule for databases and Java.
const INTERLEAVED: &str = "--cpunodebind=1 --interleave=all";

pub const PROGRAMS: &[Program] = &[
    Program {
        name: "redis",
        needs: &[("redis-server", "redis-server"), ("redis-benchmark", "redis-tools")],
        prepare: "",
        functions: "
start() {
    \"$@\" redis-server --port 0 --unixsocket $WORK/redis.sock --save '' --appendonly no --enable-debug-command yes > log 2>&1 &
    PID=$!
}
ready() {
    until_works redis-cli -s $WORK/redis.sock ping
    redis-cli -s $WORK/redis.sock debug populate 50000 key 1000
}
load() { redis-benchmark -s $WORK/redis.sock -t get,set -r 50000 -c 4 -l -q; }
",
        bad: AWAY,
        is_ordinary: true,
    },
    Program {
        name: "nginx",
        needs: &[("nginx", "nginx-light"), ("curl", "curl")],
        prepare: "
cat > nginx.conf <<'END'
worker_processes 1;
error_log stderr;
pid /tmp/advise-programs/nginx.pid;
events { worker_connections 64; }
http {
    access_log off;
    client_body_temp_path /tmp/advise-programs/body;
    proxy_temp_path /tmp/advise-programs/proxy;
    fastcgi_temp_path /tmp/advise-programs/fastcgi;
    uwsgi_temp_path /tmp/advise-programs/uwsgi;
    scgi_temp_path /tmp/advise-programs/scgi;
    server {
        listen 127.0.0.1:8080;
        root /tmp/advise-programs;
        sendfile off;
        output_buffers 32 1m;
    }
}
END
",
        functions: "
start() {
    head -c 32000000 /dev/urandom > page
    \"$@\" nginx -c $HERE/nginx.conf -g 'daemon off; user root;' > log 2>&1 &
    PID=$!
}
ready() { until_works curl -s -o /dev/null http://127.0.0.1:8080/nginx.pid; }
load() {
    # Slow clients hold buffers: without them a worker has no memory of its own.
    for client in 1 2; do curl -s --limit-rate 50k -o /dev/null http://127.0.0.1:8080/page & done
    while :; do curl -s -o /dev/null http://127.0.0.1:8080/page; done
}
# The master is as large as its worker, and idle.
subject() { busiest nginx; }
",
        bad: AWAY,
        is_ordinary: true,
    },
    Program {
        name: "python",
        needs: &[("/usr/bin/python3", "python3-minimal")],
        prepare: "",
        functions: "
start() {
    \"$@\" /usr/bin/python3 $HERE/job.py > log 2>&1 &
    PID=$!
}
ready() { sleep 5; }
",
        bad: INTERLEAVED,
        is_ordinary: true,
    },
    Program {
        name: "leak",
        needs: &[("gcc", "gcc")],
        prepare: "gcc -O1 -o leak leak.c",
        functions: "
start() {
    \"$@\" $HERE/leak &
    PID=$!
}
",
        bad: AWAY,
        is_ordinary: false,
    },
    Program {
        name: "pingpong",
        needs: &[("gcc", "gcc")],
        prepare: "gcc -O1 -pthread -o pingpong pingpong.c",
        functions: "
start() {
    \"$@\" $HERE/pingpong &
    PID=$!
}
",
        bad: AWAY,
        is_ordinary: false,
    },
    Program {
        name: "shm-pair",
        needs: &[("gcc", "gcc")],
        prepare: "gcc -O1 -o shm_pair shm_pair.c",
        functions: "
start() {
    \"$@\" $HERE/shm_pair &
    PID=$!
}
",
        bad: AWAY,
        is_ordinary: false,
    },
    Program {
        name: "compile",
        needs: &[("gcc", "gcc")],
        prepare: "
awk 'BEGIN {
    for (n = 0; n < 30000; n++)
        printf \"int f%d(int a, int b) { int s = b; for (int i = 0; i < a; i++) s = s * %d + i / (b + 1); return s; }\\n\", n, n
}' > large.c
",
        functions: "
start() {
    \"$@\" gcc -O1 -c $HERE/large.c -o $WORK/large.o &
    PID=$!
}
ready() { until_works pgrep -x cc1; }
subject() { largest cc1; }
stop() { pkill -x cc1; kill $PID 2> /dev/null; }
",
        bad: AWAY,
        is_ordinary: true,
    },
    Program {
        name: "sqlite",
        needs: &[("sqlite3", "sqlite3")],
        prepare: "",
        functions: "
start() {
    echo \"PRAGMA cache_size=-65536; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
        INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
        SELECT i, hex(randomblob(400)) FROM n;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000000)
        SELECT sum(length(b)) FROM n JOIN t ON t.a = 1 + n.i * 7919 % 40000;\" > script
    \"$@\" sqlite3 :memory: < script > log 2>&1 &
    PID=$!
}
ready() { sleep 10; }
",
        bad: AWAY,
        is_ordinary: true,
    },
    Program {
        name: "postgres",
        needs: &[("/usr/lib/postgresql/15/bin/postgres", "postgresql-15")],
        prepare: "
if [ ! -e pg/PG_VERSION ] || [ ! -e pg.ready ]; then
    rm -rf pg && mkdir -m 700 pg && chown postgres pg
    as='setpriv --reuid=postgres --regid=postgres --clear-groups'
    bin=/usr/lib/postgresql/15/bin
    $as $bin/initdb -D $PWD/pg --no-sync -A trust
    $as $bin/pg_ctl -D $PWD/pg -o \"-c listen_addresses='' -k $PWD/pg\" -w start
    $as $bin/pgbench -h $PWD/pg -i -s 3 postgres
    $as $bin/pg_ctl -D $PWD/pg -w stop
    touch pg.ready
fi
",
        functions: "
bin=/usr/lib/postgresql/15/bin
as='setpriv --reuid=postgres --regid=postgres --clear-groups'
start() {
    chmod 777 $WORK
    # A guest cannot write to files of the host.
    [ -e $WORK/pg ] || cp -a $HERE/pg $WORK/pg
    \"$@\" $as $bin/postgres -D $WORK/pg -c shared_buffers=64MB -c listen_addresses= -c huge_pages=off -k $WORK \
        > log 2>&1 &
    PID=$!
}
ready() { until_works $bin/pg_isready -h $WORK; }
load() { $as $bin/pgbench -h $WORK -n -S -c 2 -T 3600 postgres; }
# The server of a client: workers of autovacuum are larger, and end.
subject() { pgrep -o -f '^postgres: postgres postgres'; }
# SIGTERM would wait for the clients.
stop() { kill -INT $PID; }
",
        bad: INTERLEAVED,
        is_ordinary: true,
    },
    Program {
        name: "mariadb",
        needs: &[("mariadbd", "mariadb-server-core"), ("mariadb", "mariadb-client-core")],
        prepare: "
if [ ! -e maria.ready ]; then
    rm -rf maria && mkdir -p maria/mysql
    echo 'CREATE DATABASE test;' | mariadbd --no-defaults --bootstrap --user=root --datadir=$PWD/maria --skip-grant-tables
    touch maria.ready
fi
",
        functions: "
sql() { mariadb --no-defaults -S $WORK/maria -u root \"$@\"; }
start() {
    [ -e $WORK/data ] || cp -a $HERE/maria $WORK/data
    \"$@\" mariadbd --no-defaults --user=root --datadir=$WORK/data --socket=$WORK/maria --skip-networking \
        --skip-grant-tables --innodb-buffer-pool-size=64M > log 2>&1 &
    PID=$!
}
ready() {
    until_works sql -e 'select 1'
    [ -e $WORK/filled ] || sql test -e 'create table t (a int primary key auto_increment, b varchar(400)) engine=innodb;
        insert into t (b) select repeat(\"x\", 400) from seq_1_to_60000' && touch $WORK/filled
}
# One client: on an emulated CPU most of the time of a short one is its start.
load() { yes 'select sum(length(b)) from t;' | sql test; }
",
        bad: INTERLEAVED,
        is_ordinary: true,
    },
    Program {
        name: "java",
        needs: &[("javac", "openjdk-17-jdk-headless")],
        prepare: "javac Service.java",
        functions: "
start() {
    \"$@\" java -Xms96m -Xmx96m -XX:+UseSerialGC -cp $HERE Service > log 2>&1 &
    PID=$!
}
ready() { until_works grep -q ready log; }
",
        bad: INTERLEAVED,
        is_ordinary: true,
    },
    Program {
        name: "mpirun",
        needs: &[("mpicc", "libopenmpi-dev"), ("mpirun", "openmpi-bin")],
        prepare: "mpicc -O1 -o stream_mpi stream_mpi.c",
        functions: "
start() {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 HOME=$WORK
    \"$@\" mpirun --oversubscribe --bind-to none --mca btl self,vader -np 2 $HERE/stream_mpi > log 2>&1 &
    PID=$!
}
ready() { until_works pgrep -x stream_mpi; }
subject() { largest stream_mpi; }
stop() { kill $PID; pkill -x stream_mpi; }
",
        bad: AWAY,
        is_ordinary: true,
    },
    Program {
        name: "x265",
        needs: &[("x265", "x265"), ("/usr/bin/python3", "python3-minimal")],
        prepare: "
/usr/bin/python3 - <<'END'
import random
random.seed(1)
with open('film.y4m', 'wb') as film:
    film.write(b'YUV4MPEG2 W640 H360 F25:1 C420\\n')
    for frame in range(100):
        film.write(b'FRAME\\n' + random.randbytes(640 * 360 * 3 // 2))
END
",
        functions: "
start() {
    \"$@\" x265 --input $HERE/film.y4m --y4m --preset slow --pools 2 -o /dev/null > log 2>&1 &
    PID=$!
}
ready() { sleep 10; }
",
        bad: AWAY,
        is_ordinary: true,
    },
];
