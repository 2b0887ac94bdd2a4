/*
 * Sums up an array by a thread on each node, with memory from where the first word says:
 *
 *   local        each thread allocates its part on its own node
 *   onnode       the first thread allocates each part on the node of the thread that sums it up
 *   interleaved  parts take turns on all nodes
 *   careless     the first thread allocates and fills everything, on the first node, as most programs do
 *
 * The phase "sum" is what the test in the Makefile counts.
 */
#include <nodewise.h>
#include <numa.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (8ul << 20)
#define ROUNDS 6
#define MOST_NODES 64

enum placement { LOCAL, ONNODE, INTERLEAVED, CARELESS, PLACEMENTS };
static const char *const names[PLACEMENTS] = { "local", "onnode", "interleaved", "careless" };

struct part {
	pthread_t thread;
	int node;
	long *numbers;
	long sum;
};

static enum placement placement;
static pthread_barrier_t filled;

static void fill(struct part *part)
{
	for (size_t at = 0; at < BYTES / sizeof *part->numbers; at++)
		part->numbers[at] = 1;
}

static void *sum(void *of)
{
	struct part *part = of;

	if (numa_run_on_node(part->node)) {
		perror("numa_run_on_node");
		exit(1);
	}
	if (placement == LOCAL)
		part->numbers = numa_alloc_local(BYTES);
	if (!part->numbers) {
		fprintf(stderr, "no memory on node %d\n", part->node);
		exit(1);
	}
	if (placement != CARELESS)
		fill(part);
	/* All memory is filled before the first line is counted. */
	if (pthread_barrier_wait(&filled) == PTHREAD_BARRIER_SERIAL_THREAD)
		nodewise_phase("sum");
	pthread_barrier_wait(&filled);
	for (int round = 0; round < ROUNDS; round++)
		for (size_t at = 0; at < BYTES / sizeof *part->numbers; at++)
			part->sum += part->numbers[at];
	return NULL;
}

int main(int count, char **words)
{
	struct part parts[MOST_NODES] = { 0 };
	int used = 0;
	long total = 0;

	while (placement < PLACEMENTS && (count != 2 || strcmp(words[1], names[placement])))
		placement++;
	if (placement == PLACEMENTS || numa_available() < 0) {
		fprintf(stderr, "usage: %s local|onnode|interleaved|careless, on a kernel with NUMA\n", words[0]);
		return 2;
	}
	for (int node = 0; node <= numa_max_node() && used < MOST_NODES; node++)
		if (numa_bitmask_isbitset(numa_all_nodes_ptr, node))
			parts[used++].node = node;
	/* The scheduler can move a thread while it fills, and then each part would lie on two nodes. */
	if (placement == CARELESS && numa_run_on_node(parts[0].node)) {
		perror("numa_run_on_node");
		return 1;
	}
	pthread_barrier_init(&filled, NULL, used);
	for (int at = 0; at < used; at++) {
		if (placement == ONNODE)
			parts[at].numbers = numa_alloc_onnode(BYTES, parts[at].node);
		if (placement == INTERLEAVED)
			parts[at].numbers = numa_alloc_interleaved(BYTES);
		if (placement == CARELESS && (parts[at].numbers = malloc(BYTES)))
			fill(&parts[at]);
	}
	for (int at = 0; at < used; at++)
		if (pthread_create(&parts[at].thread, NULL, sum, &parts[at]))
			return 1;
	for (int at = 0; at < used; at++) {
		pthread_join(parts[at].thread, NULL);
		total += parts[at].sum;
	}
	nodewise_phase("");
	printf("%s: %ld numbers\n", names[placement], total);
	return total == (long)(used * ROUNDS * (BYTES / sizeof total)) ? 0 : 1;
}
