#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node 450
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif

#define PAGE 4096UL
#define HUGE (512 * PAGE)
#define MOST 8192
#define MAYBE_UNUSED __attribute__((unused))

typedef unsigned long word;

/* Pages one after the other that are on one node; -1: that are missing. */
struct run {
    int count, node;
};

/* A node mask with the words that its highest node needs. */
struct mask {
    word words[32], maxnode;
};

struct child {
    pid_t pid;
    int line;
};

static int differences;
static char **arguments;
static const char *group = "/sys/fs/cgroup/nodewise-check";

static void quit(const char *what)
{
    fprintf(stderr, "cannot run: %s: %s\n", what, strerror(errno));
    exit(2);
}

MAYBE_UNUSED static int put(const char *path, const char *text)
{
    int file = open(path, O_WRONLY);
    if (file < 0)
        return -1;
    ssize_t written = write(file, text, strlen(text));
    close(file);
    return written < 0 ? -1 : 0;
}

MAYBE_UNUSED static void must_put(const char *path, const char *text)
{
    if (put(path, text))
        quit(path);
}

static const char *answer_text(int number)
{
    return number ? strerror(number) : "success";
}

MAYBE_UNUSED static void answered(const char *call, long result, int expected)
{
    int seen = result < 0 ? errno : 0;
    printf("%s: %s", call, answer_text(seen));
    if (seen != expected) {
        printf("   <- expected: %s", answer_text(expected));
        differences++;
    }
    printf("\n");
}

MAYBE_UNUSED static struct mask nodes(const char *list)
{
    struct mask mask = {{0}, 0};
    while (*list) {
        char *end;
        word first = strtoul(list, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (; first <= last; first++) {
            word width = (first / 64 + 1) * 64 + 1;
            mask.words[first / 64] |= 1UL << first % 64;
            if (mask.maxnode < width)
                mask.maxnode = width;
        }
        list = *end ? end + 1 : end;
    }
    return mask;
}

MAYBE_UNUSED static long run_on(pid_t thread, int cpu)
{
    word words[128] = {0};
    words[cpu / 64] = 1UL << cpu % 64;
    return syscall(SYS_sched_setaffinity, thread, sizeof words, words);
}

MAYBE_UNUSED static long set_policy(int mode, const char *list)
{
    struct mask mask = nodes(list);
    return syscall(SYS_set_mempolicy, mode, mask.maxnode ? mask.words : NULL, mask.maxnode);
}

MAYBE_UNUSED static long bind_pages(word start, word step, word first, word count, int mode, const char *list, int flags)
{
    struct mask mask = nodes(list);
    return syscall(SYS_mbind, start + first * step, count * step, mode, mask.maxnode ? mask.words : NULL,
                   mask.maxnode, flags);
}

MAYBE_UNUSED static long set_home(word start, word first, word count, int node)
{
    return syscall(SYS_set_mempolicy_home_node, start + first * PAGE, count * PAGE, node, 0);
}

MAYBE_UNUSED static long migrate(const char *from, const char *to)
{
    struct mask old = nodes(from), new = nodes(to);
    word maxnode = old.maxnode > new.maxnode ? old.maxnode : new.maxnode;
    return syscall(SYS_migrate_pages, 0, maxnode, maxnode ? old.words : NULL, maxnode ? new.words : NULL);
}

MAYBE_UNUSED static long move(word start, word step, const int *numbers, const int *targets, int count)
{
    static void *pages[MOST];
    static int status[MOST];
    for (int at = 0; at < count; at++)
        pages[at] = (void *)(start + numbers[at] * step);
    return syscall(SYS_move_pages, 0, count, pages, targets, status, 2);
}

/* The addresses decide whose turn a page is: the same are needed, and a new start has other ones in use. */
static word map(word address, word bytes, int flags, int file, word offset)
{
    void *start = mmap((void *)address, bytes, PROT_READ | PROT_WRITE, flags | (address ? MAP_FIXED_NOREPLACE : 0),
                       file, offset);
    if (start != MAP_FAILED && address && start != (void *)address) {
        munmap(start, bytes);
        errno = EEXIST;
        return 0;
    }
    return start == MAP_FAILED ? 0 : (word)start;
}

static word must_map(word address, word bytes, int flags, int file, word offset)
{
    word start = map(address, bytes, flags, file, offset);
    if (!start && errno == EEXIST) {
        const char *tries = getenv("TRIES");
        char next[16];
        snprintf(next, sizeof next, "%d", tries ? atoi(tries) + 1 : 1);
        if (atoi(next) < 200) {
            setenv("TRIES", next, 1);
            execv("/proc/self/exe", arguments);
        }
    }
    if (!start)
        quit("mmap");
    return start;
}

MAYBE_UNUSED static word map_small(word address, word pages)
{
    word start = must_map(address, pages * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise((void *)start, pages * PAGE, MADV_NOHUGEPAGE);
    return start;
}

MAYBE_UNUSED static word map_huge(word address, word pages)
{
    word start = must_map(address, pages * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (madvise((void *)start, pages * PAGE, MADV_HUGEPAGE))
        quit("MADV_HUGEPAGE");
    return start;
}

/* Small pages on both sides: the kernel would make one mapping of neighbours that are alike. */
MAYBE_UNUSED static word map_plain(word address, word pages)
{
    word start = must_map(address - HUGE, pages * PAGE + 2 * HUGE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise((void *)start, HUGE, MADV_NOHUGEPAGE);
    madvise((void *)(start + HUGE + pages * PAGE), HUGE, MADV_NOHUGEPAGE);
    return start + HUGE;
}

/* The turns of a file begin at the number of its inode, but before 6.7 not those of pages that mbind moves: takes a file whose inode
   gives up to eight nodes the same turns. For weights another page of it is the first: a multiple of as many pages further on. */
#define FILE_TURNS 840
MAYBE_UNUSED static word map_file(word address, word pages, word inode, word first, word period)
{
    struct stat status;
    word turns = period < FILE_TURNS ? period : FILE_TURNS;
    int file = -1;
    for (int tries = 0; tries < 3 * FILE_TURNS; tries++) {
        close(file);
        file = syscall(SYS_memfd_create, "pages", 0);
        if (file < 0 || fstat(file, &status))
            quit("memfd_create");
        if (status.st_ino % turns == inode % turns)
            break;
    }
    first += (inode % period + period - status.st_ino % period) % period;
    if (ftruncate(file, (first + pages) * PAGE))
        quit("ftruncate");
    return must_map(address, pages * PAGE, MAP_SHARED, file, first * PAGE);
}

MAYBE_UNUSED static void write_pages(word start, const int *numbers, int count)
{
    for (int at = 0; at < count; at++)
        *(volatile char *)(start + numbers[at] * PAGE) = 1;
}

MAYBE_UNUSED static void print_nodes(const int *nodes, int count)
{
    const char *comma = "";
    for (int first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && nodes[end] == nodes[first];)
            end++;
        if (nodes[first] < 0)
            continue;
        printf("%s%d-%d on node %d", comma, first, end - 1, nodes[first]);
        comma = ", ";
    }
    printf(*comma ? "\n" : "no pages\n");
}

MAYBE_UNUSED static void located(const char *what, pid_t process, word start, word step, const struct run *runs, int count)
{
    static void *pages[MOST];
    static int seen[MOST], expected[MOST];
    int all = 0;
    for (int run = 0; run < count; run++)
        for (int page = 0; page < runs[run].count; page++, all++) {
            expected[all] = runs[run].node;
            pages[all] = (void *)(start + all * step);
        }
    if (syscall(SYS_move_pages, process, all, pages, NULL, seen, 0))
        quit("move_pages");
    for (int page = 0; page < all; page++)
        if (seen[page] < 0)
            seen[page] = -1;
    int same = !memcmp(seen, expected, all * sizeof *seen);
    printf("%s: kernel    ", what);
    print_nodes(seen, all);
    printf("%s: expected  ", what);
    print_nodes(expected, all);
    if (!same) {
        printf("%s   <- differs\n", what);
        differences++;
    }
}

MAYBE_UNUSED static void policy(const char *what, word address, int flags, int expected, const char *list)
{
    struct mask wanted = nodes(list);
    word words[32] = {0};
    int mode = 0;
    if (syscall(SYS_get_mempolicy, flags == 4 ? NULL : &mode, words, 1025, address, flags))
        quit("get_mempolicy");
    if (mode == expected && !memcmp(words, wanted.words, sizeof words))
        return;
    printf("%s: mode %#x, nodes", what, mode);
    for (int node = 0; node < 1024; node++)
        if (words[node / 64] >> node % 64 & 1)
            printf(" %d", node);
    printf("   <- expected: mode %#x, nodes %s\n", expected, list);
    differences++;
}

MAYBE_UNUSED static struct child fork_child(void)
{
    int lines[2];
    word words[32] = {0};
    /* Pages that wait for their place in the kernel's lists have one user more, and are copied for it. */
    if (syscall(SYS_get_mempolicy, NULL, words, 1025, 0, 4) || syscall(SYS_migrate_pages, 0, 1025, words, words) < 0)
        quit("migrate_pages");
    fflush(stdout);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, lines))
        quit("socketpair");
    pid_t pid = fork();
    if (pid < 0)
        quit("fork");
    if (!pid) {
        word address;
        close(lines[0]);
        while (read(lines[1], &address, sizeof address) == sizeof address) {
            int error = madvise((void *)address, PAGE, MADV_POPULATE_WRITE) ? errno : 0;
            if (write(lines[1], &error, sizeof error) < 0)
                break;
        }
        _exit(0);
    }
    close(lines[1]);
    return (struct child){pid, lines[0]};
}

MAYBE_UNUSED static long child_writes(const struct child *child, word address)
{
    int error = ECHILD;
    if (write(child->line, &address, sizeof address) < 0 || read(child->line, &error, sizeof error) < 0)
        error = errno;
    errno = error;
    return error ? -1 : 0;
}

MAYBE_UNUSED static void end_child(const struct child *child)
{
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    close(child->line);
}

MAYBE_UNUSED static void start_program(const char *number)
{
    int status = 0;
    for (int tries = 0; tries < 200; tries++) {
        fflush(stdout);
        pid_t pid = fork();
        if (!pid) {
            execl("/proc/self/exe", arguments[0], "--program", number, (char *)NULL);
            _exit(2);
        }
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
            quit("fork");
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 77)
            break;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
        quit("a program that was started");
    differences += WEXITSTATUS(status);
}

MAYBE_UNUSED static int program_pages(word address, word count, const struct run *runs, int length)
{
    word start = map(address, count * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!start)
        return 77;
    madvise((void *)start, count * PAGE, MADV_NOHUGEPAGE);
    for (word page = 0; page < count; page++)
        *(volatile char *)(start + page * PAGE) = 1;
    located("pages of a program that was started", 0, start, PAGE, runs, length);
    fflush(stdout);
    return differences ? 1 : 0;
}

MAYBE_UNUSED static void pool(int node, const char *file, word pages, int check)
{
    char path[128], text[32];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/%s", node, file);
    if (!check) {
        snprintf(text, sizeof text, "%lu", pages);
        must_put(path, text);
        return;
    }
    FILE *stream = fopen(path, "r");
    word free = 0;
    if (!stream || fscanf(stream, "%lu", &free) != 1)
        quit(path);
    fclose(stream);
    printf("free huge pages of node %d: %lu", node, free);
    if (free != pages) {
        printf("   <- expected: %lu", pages);
        differences++;
    }
    printf("\n");
}

MAYBE_UNUSED static void whole_pool(word pages)
{
    char text[32];
    snprintf(text, sizeof text, "%lu", pages);
    must_put("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", text);
}

struct thread {
    sem_t go, done;
    void (*stretch)(void);
};

static struct thread threads[8];

static void *thread_body(void *own)
{
    struct thread *thread = own;
    for (;;) {
        while (sem_wait(&thread->go))
            continue;
        thread->stretch();
        sem_post(&thread->done);
    }
    return NULL;
}

/* It has the policy and the CPUs of the thread that starts it. */
MAYBE_UNUSED static void start_thread(int number)
{
    pthread_t started;
    sem_init(&threads[number].go, 0, 0);
    sem_init(&threads[number].done, 0, 0);
    if (pthread_create(&started, NULL, thread_body, &threads[number]))
        quit("pthread_create");
}

/* The first is the one that runs main. */
MAYBE_UNUSED static void go_on_in(int number, void (*stretch)(void))
{
    if (!number) {
        stretch();
        return;
    }
    threads[number].stretch = stretch;
    sem_post(&threads[number].go);
    while (sem_wait(&threads[number].done))
        continue;
}

/* Six counters in the kernel's order. Nothing here takes a page after the first call. */
MAYBE_UNUSED static void counters(int node, word *values)
{
    static char path[64], text[512];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/numastat", node);
    int file = open(path, O_RDONLY);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (length < 0)
        quit(path);
    close(file);
    text[length] = 0;
    char *rest = text;
    for (int at = 0; at < 6; at++) {
        rest += strcspn(rest, " ");
        values[at] = strtoul(rest, &rest, 10);
        rest += strspn(rest, "\n");
    }
}

MAYBE_UNUSED static void counted(int node, const word *before, const word *after, const word *gains, const word *rooms)
{
    static const char *names[] = {"numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node"};
    for (int at = 0; at < 6; at++) {
        word more = rooms[at], gained = after[at] - before[at];
        printf("%s of node %d: gained %lu", names[at], node, gained);
        if (gained < gains[at] || gained > gains[at] + more) {
            printf("   <- expected: %lu, and at most %lu more", gains[at], more);
            differences++;
        }
        printf("\n");
    }
}

static int idle(void *nothing)
{
    (void)nothing;
    for (;;)
        poll(NULL, 0, -1);
    return 0;
}

/* A cpuset with all nodes. Its changes reach each thread: the calls were played beside another one. */
MAYBE_UNUSED static void enter_cpuset(const char *cpus, const char *mems)
{
    char path[128], own[16];
    static char stack[65536] __attribute__((aligned(16)));
    must_put("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset");
    if (mkdir(group, 0755) && errno != EEXIST)
        quit(group);
    snprintf(path, sizeof path, "%s/cpuset.cpus", group);
    must_put(path, cpus);
    snprintf(path, sizeof path, "%s/cpuset.mems", group);
    must_put(path, mems);
    if (clone(idle, stack + sizeof stack, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
              NULL) < 0)
        quit("clone");
    snprintf(path, sizeof path, "%s/cgroup.procs", group);
    snprintf(own, sizeof own, "%d", getpid());
    must_put(path, own);
}

MAYBE_UNUSED static void restrict_to(const char *mems)
{
    char path[128];
    snprintf(path, sizeof path, "%s/cpuset.mems", group);
    printf("cpuset.mems = %s\n", mems);
    must_put(path, mems);
}

MAYBE_UNUSED static void leave_cpuset(void)
{
    char own[16];
    snprintf(own, sizeof own, "%d", getpid());
    put("/sys/fs/cgroup/cgroup.procs", own);
    rmdir(group);
}

MAYBE_UNUSED static int finish(void)
{
    printf(differences ? "the kernel differs in %d places\n" : "the kernel does what is expected\n", differences);
    return differences ? 1 : 0;
}
