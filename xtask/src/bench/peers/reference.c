/* Plain loops and chases that nodewise is compared with: what anybody would write, as the compiler
 * makes it.
 *
 *   reference OPERATION BYTES small|huge MILLISECONDS CPU[,CPU...] SEED
 *
 * Passes over arrays of doubles: read write copy scale add triad update memcpy memset. BYTES is all of
 * the memory; every thread fills its part itself and passes over it until the time is up. Prints GB/s
 * (10^9 bytes) as STREAM counts: what is named is counted.
 *
 * Chases, on the first CPU: "chase", through all lines in random order, and "window", which leaves a
 * window of 256 KiB only when all of its lines were visited. Prints the median of ns per load over
 * blocks of 65,536 loads.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LINE = 64, WINDOW = 256 * 1024, BLOCK = 65536, HUGE_PAGE = 2 * 1024 * 1024 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void sit(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) fail("sched_setaffinity");
}

/* Memory that begins at a huge page, in pages of the wanted kind. */
static char *memory(size_t bytes, int huge) {
    char *start = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) fail("mmap");
    start += -(uintptr_t)start % HUGE_PAGE;
    if (madvise(start, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE)) fail("madvise");
    return start;
}

/* ---- passes ---- */

static uint64_t pass_read(const uint64_t *restrict a, size_t words) {
    uint64_t sum = 0;
    for (size_t at = 0; at < words; at++) sum += a[at];
    return sum;
}
static void pass_write(double *restrict a, size_t words, double s) {
    for (size_t at = 0; at < words; at++) a[at] = s;
}
static void pass_copy(double *restrict a, const double *restrict b, size_t words) {
    for (size_t at = 0; at < words; at++) a[at] = b[at];
}
static void pass_scale(double *restrict a, const double *restrict b, size_t words, double s) {
    for (size_t at = 0; at < words; at++) a[at] = s * b[at];
}
static void pass_add(double *restrict a, const double *restrict b, const double *restrict c, size_t words) {
    for (size_t at = 0; at < words; at++) a[at] = b[at] + c[at];
}
static void pass_triad(double *restrict a, const double *restrict b, const double *restrict c, size_t words,
                       double s) {
    for (size_t at = 0; at < words; at++) a[at] = b[at] + s * c[at];
}
static void pass_update(double *restrict a, size_t words, double s) {
    for (size_t at = 0; at < words; at++) a[at] += s;
}

static const struct {
    const char *name;
    int arrays;
    int counted;
} OPERATIONS[] = {
    {"read", 1, 1}, {"write", 1, 1}, {"memset", 1, 1}, {"copy", 2, 2},   {"memcpy", 2, 2},
    {"scale", 2, 2}, {"add", 3, 3},  {"triad", 3, 3},  {"update", 1, 2},
};

static int operation;
static double seconds;
static pthread_barrier_t together;
static volatile uint64_t sink;

struct part {
    char *start;
    size_t bytes;
    int cpu;
    double rate;
};

static void *work(void *argument) {
    struct part *part = argument;
    sit(part->cpu);
    const char *name = OPERATIONS[operation].name;
    size_t words = part->bytes / OPERATIONS[operation].arrays / sizeof(double) / 8 * 8;
    double *a = (double *)part->start, *b = a + words, *c = b + words;
    for (size_t at = 0; at < words * OPERATIONS[operation].arrays; at++) a[at] = (double)(at % 1000 + 1);
    pthread_barrier_wait(&together);
    double begin = now(), end;
    size_t passes = 0;
    do {
        double s = (double)(passes % 100) + 2.0;
        if (!strcmp(name, "read")) sink += pass_read((uint64_t *)a, words);
        else if (!strcmp(name, "write")) pass_write(a, words, s);
        else if (!strcmp(name, "memset")) memset(a, (int)s, words * sizeof(double));
        else if (!strcmp(name, "copy")) pass_copy(a, b, words);
        else if (!strcmp(name, "memcpy")) memcpy(a, b, words * sizeof(double));
        else if (!strcmp(name, "scale")) pass_scale(a, b, words, s);
        else if (!strcmp(name, "add")) pass_add(a, b, c, words);
        else if (!strcmp(name, "triad")) pass_triad(a, b, c, words, s);
        else pass_update(a, words, s);
        __asm__ volatile("" ::"r"(a) : "memory");
        passes++;
        end = now();
    } while (end - begin < seconds);
    double bytes = (double)passes * (double)words * sizeof(double) * OPERATIONS[operation].counted;
    part->rate = bytes / (end - begin) / 1e9;
    return NULL;
}

static void passes(size_t bytes, int huge, const int *cpus, int threads) {
    char *start = memory(bytes, huge);
    struct part parts[1024];
    pthread_t ids[1024];
    size_t each = bytes / threads / 4096 * 4096;
    pthread_barrier_init(&together, NULL, threads);
    for (int at = 0; at < threads; at++) {
        parts[at] = (struct part){start + each * at, each, cpus[at], 0};
        if (pthread_create(&ids[at], NULL, work, &parts[at])) fail("pthread_create");
    }
    double rate = 0;
    for (int at = 0; at < threads; at++) {
        pthread_join(ids[at], NULL);
        rate += parts[at].rate;
    }
    printf("GB/s: %.4f\n", rate);
}

/* ---- chases ---- */

static uint64_t state;

/* xorshift64*, Vigna 2016; its high bits. */
static size_t below(size_t limit) {
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return (size_t)(((unsigned __int128)(state * 0x2545F4914F6CDD1DULL) * limit) >> 64);
}

static void shuffle(uint32_t *items, size_t count) {
    for (size_t last = count; last > 1; last--) {
        size_t other = below(last);
        uint32_t item = items[last - 1];
        items[last - 1] = items[other], items[other] = item;
    }
}

/* Lines in the order in which they are visited. */
static uint32_t *order_of(size_t lines, int windowed) {
    uint32_t *order = malloc(lines * sizeof *order);
    if (!order) fail("malloc");
    for (size_t at = 0; at < lines; at++) order[at] = (uint32_t)at;
    if (!windowed) {
        shuffle(order, lines);
        return order;
    }
    size_t window = WINDOW / LINE, windows = (lines + window - 1) / window;
    uint32_t *turn = malloc(windows * sizeof *turn), *all = malloc(lines * sizeof *all);
    if (!turn || !all) fail("malloc");
    for (size_t at = 0; at < windows; at++) turn[at] = (uint32_t)at;
    shuffle(turn, windows);
    size_t filled = 0;
    for (size_t at = 0; at < windows; at++) {
        size_t first = turn[at] * window, count = first + window > lines ? lines - first : window;
        shuffle(order + first, count);
        memcpy(all + filled, order + first, count * sizeof *all);
        filled += count;
    }
    free(order), free(turn);
    return all;
}

static int by_value(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static void chase(size_t bytes, int huge, int cpu, int windowed) {
    sit(cpu);
    size_t lines = bytes / LINE;
    char *start = memory(bytes, huge);
    uint32_t *order = order_of(lines, windowed);
    for (size_t at = 0; at < lines; at++)
        *(void **)(start + (size_t)order[at] * LINE) = start + (size_t)order[(at + 1) % lines] * LINE;
    free(order);
    static double blocks[100000];
    size_t taken = 0;
    void **at = (void **)start;
    for (int warm = 0; warm < BLOCK; warm++) at = *at;
    double begin = now(), last = begin;
    while (taken < 100000 && last - begin < seconds) {
        for (int load = 0; load < BLOCK; load += 32) {
            at = *at, at = *at, at = *at, at = *at, at = *at, at = *at, at = *at, at = *at;
            at = *at, at = *at, at = *at, at = *at, at = *at, at = *at, at = *at, at = *at;
            at = *at, at = *at, at = *at, at = *at, at = *at, at = *at, at = *at, at = *at;
            at = *at, at = *at, at = *at, at = *at, at = *at, at = *at, at = *at, at = *at;
        }
        __asm__ volatile("" ::"r"(at) : "memory");
        double moment = now();
        blocks[taken++] = (moment - last) / BLOCK * 1e9;
        last = moment;
    }
    qsort(blocks, taken, sizeof *blocks, by_value);
    printf("ns: %.5f\n", taken % 2 ? blocks[taken / 2] : (blocks[taken / 2 - 1] + blocks[taken / 2]) / 2);
}

int main(int count, char **words) {
    if (count != 7) return fprintf(stderr, "usage: see the head of the source\n"), 2;
    size_t bytes = strtoull(words[2], NULL, 10);
    int huge = !strcmp(words[3], "huge"), threads = 0, cpus[1024];
    seconds = strtod(words[4], NULL) / 1000;
    for (char *cpu = strtok(words[5], ","); cpu && threads < 1024; cpu = strtok(NULL, ",")) {
        cpus[threads++] = atoi(cpu);
    }
    state = strtoull(words[6], NULL, 10) * 2 + 1;
    if (!threads || bytes < LINE) return fprintf(stderr, "no CPU, or no memory\n"), 2;
    if (!strcmp(words[1], "chase") || !strcmp(words[1], "window")) {
        chase(bytes, huge, cpus[0], !strcmp(words[1], "window"));
        return 0;
    }
    for (size_t at = 0; at < sizeof OPERATIONS / sizeof *OPERATIONS; at++) {
        operation = (int)at;
        if (!strcmp(words[1], OPERATIONS[at].name)) return passes(bytes, huge, cpus, threads), 0;
    }
    return fprintf(stderr, "%s is no operation\n", words[1]), 2;
}
