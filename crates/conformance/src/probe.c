
/* Plays scripts that are written line by line, and prints each answer, each policy and the node of each page. */

#define MAPPINGS 64
#define WORDS 4096
/* Addresses that no kernel gives by itself, the same in every start: they decide whose turn a page is. */
#define FIRST_PLACE 0x100000000000UL
#define PLACE 0x100000000UL
#define PROGRAM_PLACE 0x200000000000UL
#define NEXT_PLACE 0x180000000000UL
/* Turns after which every policy begins again, with up to 16 of them. */
#define PERIOD 720720UL

struct mapping {
    word start, pages, step;
};

static struct mapping mappings[MAPPINGS];
static int mapping_count, thread_count = 1, thread_now, thread_next, has_child;
static struct child child;
static int names[8];
static const char *script = "?";
static int call_number;
static char line[1 << 16], text[1 << 16];
static char *words[WORDS];
static int word_count;

static int number(int at)
{
    return at < word_count ? atoi(words[at]) : 0;
}

static const char *list(int at)
{
    return at < word_count && strcmp(words[at], "none") ? words[at] : "";
}

static struct mapping *mapping(int at)
{
    int which = number(at);
    if (which < 0 || which >= mapping_count) {
        errno = EINVAL;
        quit(line);
    }
    return &mappings[which];
}

static void told(const char *what, long result)
{
    printf("%s %d answer %s: %s\n", script, call_number, what, answer_text(result < 0 ? errno : 0));
}

static void print_run(const char **comma, int first, int end)
{
    printf(end - first > 1 ? "%s%d-%d" : "%s%d", *comma, first, end - 1);
    *comma = ", ";
}

static void show_pages(const char *what, pid_t process, const struct mapping *of)
{
    static void *pages[MOST];
    static int seen[MOST];
    int count = of->pages;
    const char *comma = "";
    for (int page = 0; page < count; page++)
        pages[page] = (void *)(of->start + page * PAGE);
    printf("%s %d pages %s: ", script, call_number, what);
    if (syscall(SYS_move_pages, process, count, pages, NULL, seen, 0)) {
        printf("%s\n", strerror(errno));
        return;
    }
    for (int first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && seen[end] == seen[first];)
            end++;
        if (seen[first] == -ENOENT)
            continue;
        print_run(&comma, first, end);
        if (seen[first] < 0)
            printf(" %s", strerror(-seen[first]));
        else
            printf(" on node %d", seen[first]);
    }
    printf(*comma ? "\n" : "none\n");
}

struct seen_policy {
    word words[32];
    int mode, error;
};

static struct seen_policy policy_of(word address, int flags)
{
    struct seen_policy seen = {{0}, 0, 0};
    if (syscall(SYS_get_mempolicy, flags == 4 ? NULL : &seen.mode, seen.words, 1025, address, flags))
        seen.error = errno;
    return seen;
}

static void print_policy(const struct seen_policy *seen)
{
    if (seen->error) {
        printf(" %s", strerror(seen->error));
        return;
    }
    printf(" mode %#x", seen->mode);
    for (int node = 0; node < 1024; node++)
        if (seen->words[node / 64] >> node % 64 & 1)
            printf(" %d", node);
}

static void show_policies(int which)
{
    const struct mapping *of = &mappings[which];
    const char *comma = "";
    int first = 0;
    struct seen_policy last = policy_of(of->start, 2);
    printf("%s %d policy m%d: ", script, call_number, which);
    for (int page = of->step;; page += of->step) {
        int is_end = page >= (int)of->pages;
        struct seen_policy next;
        memset(&next, 0, sizeof next);
        if (!is_end)
            next = policy_of(of->start + page * PAGE, 2);
        if (!is_end && !memcmp(&next, &last, sizeof next))
            continue;
        print_run(&comma, first, is_end ? (int)of->pages : page);
        print_policy(&last);
        if (is_end)
            break;
        first = page;
        last = next;
    }
    printf("\n");
}

static void show(int with_policies)
{
    char what[64];
    struct seen_policy seen = policy_of(0, 0);
    printf("%s %d policy thread:", script, call_number);
    print_policy(&seen);
    printf("\n");
    for (int which = 0; which < mapping_count; which++) {
        snprintf(what, sizeof what, "m%d", which);
        show_pages(what, 0, &mappings[which]);
        if (has_child) {
            snprintf(what, sizeof what, "m%d of the child", which);
            show_pages(what, child.pid, &mappings[which]);
        }
        if (with_policies)
            show_policies(which);
    }
}

static void map_one(void)
{
    const char *kind = list(1);
    if (mapping_count == MAPPINGS || number(2) <= 0 || number(2) > MOST)
        quit("too many mappings or pages");
    word start = FIRST_PLACE + mapping_count * PLACE, pages = number(2), step = 1;
    if (!strcmp(kind, "huge")) {
        start = map_huge(start, pages);
        step = 512;
    } else if (!strcmp(kind, "file")) {
        start = map_file(start, pages, 0, number(3), PERIOD);
    } else {
        start = map_small(start + mapping_count * 7 % 64 * PAGE, pages);
    }
    mappings[mapping_count++] = (struct mapping){start, pages, step};
}

static void write_some(void)
{
    const struct mapping *of = mapping(1);
    for (int at = 2; at < word_count; at++) {
        int page = number(at);
        write_pages(of->start, &page, 1);
    }
}

static void child_writes_some(void)
{
    const struct mapping *of = mapping(1);
    for (int at = 2; at < word_count; at++)
        told("the child's write", child_writes(&child, of->start + number(at) * PAGE));
}

static void move_some(void)
{
    static void *pages[MOST];
    static int nodes[MOST], status[MOST];
    const struct mapping *of = mapping(1);
    int count = 0;
    for (int at = 2; at < word_count && count < MOST; at++, count++) {
        const char *node = strchr(words[at], '=');
        pages[count] = (void *)(of->start + number(at) * PAGE);
        nodes[count] = node ? atoi(node + 1) : 0;
    }
    memset(status, 0, sizeof status);
    told(text, syscall(SYS_move_pages, 0, count, pages, nodes, status, 2));
    printf("%s %d answer of each page:", script, call_number);
    for (int at = 0; at < count; at++)
        printf(" %d", status[at]);
    printf("\n");
}

/* New memory over a part, as it was. */
static void replace_some(void)
{
    const struct mapping *of = mapping(1);
    void *start = (void *)(of->start + number(2) * PAGE);
    void *new = mmap(start, number(3) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    told(text, new == MAP_FAILED ? -1 : 0);
    madvise(start, number(3) * PAGE, of->step > 1 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

/* More pages, here or there; anywhere with memory in the way. */
static void remap_some(void)
{
    struct mapping *of = mapping(1);
    word pages = number(2), old = of->start;
    static word moved;
    const char *where = list(3);
    void *new = MAP_FAILED, *after = NULL;
    if (!strcmp(where, "there")) {
        new = mremap((void *)old, of->pages * PAGE, pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(NEXT_PLACE + moved++ * PLACE));
    } else if (!strcmp(where, "behind")) {
        /* Without its own pages, of which the kernel would make one mapping. */
        after = mmap((void *)(old + of->pages * PAGE), PAGE, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        new = mremap((void *)old, of->pages * PAGE, pages * PAGE, MREMAP_MAYMOVE);
    } else {
        new = mremap((void *)old, of->pages * PAGE, pages * PAGE, 0);
    }
    told(text, new == MAP_FAILED ? -1 : 0);
    if (after)
        munmap(after, PAGE);
    if (new != MAP_FAILED)
        *of = (struct mapping){(word)new, pages, of->step};
}

static void program(void)
{
    fflush(stdout);
    char prefix[128];
    snprintf(prefix, sizeof prefix, "%s %d", script, call_number);
    pid_t pid = fork();
    if (!pid) {
        execl("/proc/self/exe", arguments[0], "--pages", prefix, list(1), (char *)NULL);
        _exit(2);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
        quit("a program that was started");
}

static int pages_of_program(const char *prefix, int count)
{
    struct mapping own = {map_small(PROGRAM_PLACE, count), count, 1};
    for (int page = 0; page < count; page++)
        write_pages(own.start, &page, 1);
    int length = strcspn(prefix, " ");
    char *name = strdup(prefix);
    name[length] = 0;
    script = name;
    call_number = prefix[length] ? atoi(prefix + length + 1) : 0;
    show_pages("the program", 0, &own);
    return 0;
}

/* A line, in its thread. */
static void perform(void)
{
    const char *call = words[0];
    int policies = 0;
    if (!strcmp(call, "map")) {
        map_one();
        policies = 1;
    } else if (!strcmp(call, "cpu")) {
        told(text, run_on(0, number(1)));
    } else if (!strcmp(call, "child-cpu")) {
        told(text, run_on(child.pid, number(1)));
    } else if (!strcmp(call, "write")) {
        write_some();
    } else if (!strcmp(call, "child-write")) {
        child_writes_some();
    } else if (!strcmp(call, "policy")) {
        told(text, set_policy(strtol(list(1), NULL, 0), list(2)));
    } else if (!strcmp(call, "bind")) {
        told(text, bind_pages(mapping(1)->start, PAGE, number(2), number(3), strtol(list(4), NULL, 0), list(5), number(6)));
        policies = 1;
    } else if (!strcmp(call, "home")) {
        told(text, set_home(mapping(1)->start, number(2), number(3), number(4)));
        policies = 1;
    } else if (!strcmp(call, "migrate")) {
        told(text, migrate(list(1), list(2)));
    } else if (!strcmp(call, "move")) {
        move_some();
    } else if (!strcmp(call, "keep")) {
        told(text, madvise((void *)mapping(1)->start, mapping(1)->pages * PAGE, MADV_DONTFORK));
    } else if (!strcmp(call, "replace")) {
        replace_some();
        policies = 1;
    } else if (!strcmp(call, "remap")) {
        remap_some();
        policies = 1;
    } else if (!strcmp(call, "drop")) {
        word start = mapping(1)->start + number(2) * PAGE;
        told(text, madvise((void *)start, number(3) * PAGE, MADV_DONTNEED));
    } else if (!strcmp(call, "program")) {
        program();
    } else if (!strcmp(call, "fork")) {
        child = fork_child();
        has_child = 1;
    } else if (!strcmp(call, "join")) {
        has_child = 0;
        end_child(&child);
    } else if (strcmp(call, "thread")) {
        errno = EINVAL;
        quit(text);
    }
    show(policies);
}

static void start_next(void)
{
    start_thread(thread_next);
}

/* The thread with this name, which the one so far starts where there is none yet. */
static void continue_in(int name)
{
    int thread = 0;
    while (thread < thread_count && names[thread] != name)
        thread++;
    if (thread == thread_count) {
        if (thread == 8)
            quit("too many threads");
        names[thread_count++] = name;
        thread_next = thread;
        go_on_in(thread_now, start_next);
    }
    thread_now = thread;
}

static int play(const char *path, long offset)
{
    FILE *scripts = fopen(path, "r");
    char name[64] = "";
    if (!scripts || fseek(scripts, offset, SEEK_SET))
        quit(path);
    while (fgets(line, sizeof line, scripts)) {
        line[strcspn(line, "\n")] = 0;
        snprintf(text, sizeof text, "%s", line);
        word_count = 0;
        for (char *next = strtok(line, " "); next && word_count < WORDS; next = strtok(NULL, " "))
            words[word_count++] = next;
        if (!word_count)
            continue;
        if (!strcmp(words[0], "script")) {
            if (*name)
                break;
            snprintf(name, sizeof name, "%s", list(1));
            script = name;
            continue;
        }
        if (!strcmp(words[0], "thread"))
            continue_in(number(1));
        call_number++;
        go_on_in(thread_now, perform);
    }
    printf("%s end\n", script);
    fflush(stdout);
    _exit(0);
}

static void settings(const char *huge_pages)
{
    put("/proc/sys/kernel/numa_balancing", "0");
    put("/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs", "4294967295");
    put("/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none", "0");
    put("/sys/kernel/mm/transparent_hugepage/shrink_underused", "0");
    put("/sys/kernel/mm/transparent_hugepage/enabled", huge_pages);
    put("/sys/kernel/mm/transparent_hugepage/defrag", "madvise");
}

/* Each script has a process of its own, which begins as this one did. */
static int play_all(const char *path)
{
    FILE *scripts = fopen(path, "r");
    long offset = 0;
    if (!scripts)
        quit(path);
    for (; fgets(line, sizeof line, scripts); offset = ftell(scripts)) {
        char place[32];
        int status = 0;
        if (strncmp(line, "script ", 7))
            continue;
        snprintf(place, sizeof place, "%ld", offset);
        fflush(stdout);
        pid_t pid = fork();
        if (!pid) {
            execl("/proc/self/exe", arguments[0], "--script", path, place, (char *)NULL);
            _exit(2);
        }
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
            quit("fork");
        if (status) {
            line[strcspn(line, "\n")] = 0;
            printf("%s 0 answer the process: status %#x\n", line + 7, status);
        }
    }
    return 0;
}

/* PROGRAM FILE [HUGE-PAGES]: plays the scripts of a file; with a word for transparent_hugepage/enabled after it has changed
   the settings of a guest. */
int main(int count, char **given)
{
    arguments = given;
    if (count == 4 && !strcmp(given[1], "--script"))
        return play(given[2], atol(given[3]));
    if (count == 4 && !strcmp(given[1], "--pages"))
        return pages_of_program(given[2], atoi(given[3]));
    if (count < 2 || count > 3) {
        fprintf(stderr, "usage: %s FILE [HUGE-PAGES]\n", given[0]);
        return 2;
    }
    if (count == 3)
        settings(given[2]);
    return play_all(given[1]);
}
