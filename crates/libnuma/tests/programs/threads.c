/* Many threads that ask for everything that is read when it is asked for. */
#include <pthread.h>

#include "show.h"

#define THREADS 16

static pthread_barrier_t barrier;

static void *ask(void *wrong)
{
	long *count = (long *)wrong;

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 60; i++) {
		struct bitmask *cpus = numa_allocate_cpumask();

		if (numa_node_to_cpus(0, cpus) < 0 || numa_bitmask_weight(cpus) == 0)
			++*count;
		numa_bitmask_free(cpus);
		if (numa_node_of_cpu(0) != 0 || numa_distance(0, 0) != 10)
			++*count;
		if (numa_num_configured_cpus() < 1 || numa_pagesize() < 4096)
			++*count;
		if (numa_has_preferred_many() < 0 || numa_has_home_node() < 0)
			++*count;
		numa_set_bind_policy(i & 1);
		numa_set_strict(i & 1);
		if (i % 20 == 0)
			numa_node_to_cpu_update();
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	long wrong[THREADS] = { 0 }, sum = 0;

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_create(threads + i, NULL, ask, wrong + i);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		sum += wrong[i];
	}
	puts(sum ? "wrong" : "good");
	return sum != 0;
}
