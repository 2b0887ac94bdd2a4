/* A program with its own numa_warn: it gets the formats of the originals, and arguments that fit them. */
#include <numa.h>
#include <stdarg.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C"
#endif
void numa_warn(int number, char *format, ...)
{
	char text[500];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	printf("%d|%s|%s|", number, format, text);
}

int main(void)
{
	static const char *const nodes[] = {"999", "0-999", "0-", "foo", "netdev:a/b", "netdev:nosuch", "file:/nosuch",
					    "pci:zz", "pci:ff:1f.7"};
	static const char *const cpus[] = {"9999", "0-9999", "0-", "foo"};
	struct bitmask *mask;
	size_t at;

	for (at = 0; at < sizeof nodes / sizeof *nodes; at++)
		numa_parse_nodestring(nodes[at]);
	for (at = 0; at < sizeof cpus / sizeof *cpus; at++)
		numa_parse_cpustring(cpus[at]);
	mask = numa_allocate_nodemask();
	numa_bitmask_setbit(mask, 999);
	numa_bitmask_setbit(mask, 0);
	numa_run_on_node_mask(mask);
	return 0;
}
