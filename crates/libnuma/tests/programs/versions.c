/* Symbols by dlsym and dlvsym, and what the library keeps to itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
	void *library = dlopen("libnuma.so.1", RTLD_NOW);
	void *first, *second, *plain;

	if (!library) {
		puts(dlerror());
		return 1;
	}
	first = dlvsym(library, "numa_node_to_cpus", "libnuma_1.1");
	second = dlvsym(library, "numa_node_to_cpus", "libnuma_1.2");
	plain = dlsym(library, "numa_node_to_cpus");
	if (!first || !second || first == second || plain != second)
		puts("numa_node_to_cpus is wrong");
	else if (dlvsym(library, "numa_available", "libnuma_1.2") || !dlvsym(library, "numa_available", "libnuma_1.1"))
		puts("numa_available is wrong");
	else if (!dlvsym(library, "numa_fail_alloc_on_error", "libnuma_2.2"))
		puts("numa_fail_alloc_on_error is missing");
	else if (dlsym(library, "nodewise_v1_numa_bind") || dlsym(library, "nodewise_libnuma_thread"))
		puts("a symbol of our own can be seen");
	else
		puts("good");
	return dlclose(library);
}
