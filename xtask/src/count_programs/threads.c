/* Programs whose lines can be worked out, by the first word: stream, chase, first, sharing, queue. Two threads each. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pages.h"

#define BYTES (16ul << 20)
#define LINES (BYTES / 64)
#define THREADS 2

struct line {
	struct line *next;
	volatile long words[7];
};

static pthread_barrier_t begin;
static struct line *shared;
static volatile long counters[8] __attribute__((aligned(64)));
static volatile long handed;
static const char *kind;

static struct line *memory(void)
{
	void *start = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (start == MAP_FAILED)
		exit(9);
	keep(start, BYTES);
	return start;
}

static void fill(struct line *lines)
{
	for (size_t at = 0; at < LINES; at++)
		lines[at].words[0] = 1;
}

/* Five rounds over a part of the lines, each read once in each. */
static long rounds(struct line *lines, size_t count)
{
	long sum = 0;

	for (int round = 0; round < 5; round++)
		for (size_t at = 0; at < count; at++)
			sum += lines[at].words[0];
	return sum;
}

/* The lines in scattered order: 40,503 is odd, so that each has its turn. */
static long chase(struct line *lines)
{
	struct line *line = lines;

	for (size_t at = 0; at < LINES; at++)
		lines[at * 40503 % LINES].next = &lines[(at + 1) * 40503 % LINES];
	for (size_t step = 0; step < 5 * LINES; step++)
		line = line->next;
	return line == lines;
}

static void *work(void *of)
{
	long number = (long)of;

	pthread_barrier_wait(&begin);
	if (!strcmp(kind, "stream")) {
		struct line *own = memory();
		fill(own);
		return (void *)rounds(own, LINES);
	}
	if (!strcmp(kind, "chase"))
		return (void *)chase(memory());
	if (!strcmp(kind, "first"))
		return (void *)rounds(shared + number * (LINES / THREADS), LINES / THREADS);
	if (!strcmp(kind, "sharing"))
		for (int count = 0; count < 2000000; count++)
			counters[number]++;
	if (!strcmp(kind, "queue"))
		for (size_t at = 0; at < LINES; at++) {
			if (number == 0) {
				shared[at].words[0] = (long)at;
				handed = (long)at + 1;
				continue;
			}
			while (handed <= (long)at)
				sched_yield();
			if (shared[at].words[0] != (long)at)
				exit(8);
		}
	return 0;
}

int main(int count, char **words)
{
	pthread_t threads[THREADS];

	kind = count > 1 ? words[1] : "stream";
	shared = memory();
	if (!strcmp(kind, "first"))
		fill(shared);
	pthread_barrier_init(&begin, 0, THREADS);
	for (long number = 0; number < THREADS; number++)
		if (pthread_create(&threads[number], 0, work, (void *)number))
			return 7;
	for (int number = 0; number < THREADS; number++)
		pthread_join(threads[number], 0);
	report(kind);
	return 0;
}
