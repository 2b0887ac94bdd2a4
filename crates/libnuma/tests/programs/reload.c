/* A program that loads and unloads the library again and again loses no memory. */
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>

enum { WARM = 100, CYCLES = 10000 };

/* Loads the library, uses what it keeps, and unloads it. */
static int cycle(void)
{
	void *library = dlopen("libnuma.so.1", RTLD_NOW);
	int (*available)(void), (*distance)(int, int), (*node_of_cpu)(int);

	if (!library)
		return 0;
	available = (int (*)(void))dlsym(library, "numa_available");
	distance = (int (*)(int, int))dlsym(library, "numa_distance");
	node_of_cpu = (int (*)(int))dlsym(library, "numa_node_of_cpu");
	if (!available || !distance || !node_of_cpu)
		return 0;
	available();
	distance(0, 0);
	node_of_cpu(0);
	return dlclose(library) == 0 && !dlopen("libnuma.so.1", RTLD_NOW | RTLD_NOLOAD);
}

int main(void)
{
	size_t before = 0;
	int at;

	for (at = 0; at < WARM + CYCLES; at++) {
		if (at == WARM)
			before = mallinfo2().uordblks;
		if (!cycle()) {
			printf("cycle %d: %s\n", at, dlerror());
			return 1;
		}
	}
	printf("lost %ld\n", (long)mallinfo2().uordblks - (long)before);
	return 0;
}
