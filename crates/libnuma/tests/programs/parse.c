/* Lists of nodes and CPUs. */
#include "show.h"

/* The program's own warnings: those of the library come once each. */
#ifdef __cplusplus
extern "C"
#endif
void numa_warn(int number, char *format, ...)
{
	__builtin_va_list arguments;

	__builtin_va_start(arguments, format);
	printf("warning %d: ", number);
	vprintf(format, arguments);
	puts("");
	__builtin_va_end(arguments);
}

int main(void)
{
	const char *lists[] = {
		"", "0", "!0", "+0", "1", "0-1", "2-1", "1-0", "all", "!all", "0,all", "+all", "+1", "+0-1", "!+0", "!!0",
		"++0", "+!0", " 0", "0 ", "0x0", "00", "0x1", "01", "-1", "0-", "0,", ",", ",0", "foo", "all,0", "ALL",
		"99", "0-99", "5000", "18446744073709551616", "0-0x1", "0--1", "!", "0;1", "0-1-2", "0,2", "0,,2", "2,1,0",
		"0-2,3", "0-3", "!1-2", "+1-3", "3-", "nosuch:x", "netdev:", "netdev:lo", "netdev:nosuch", "netdev:a/b",
		"netdev:a.b", "netdev: lo", "block:", "block:nosuch", "block:a/b", "file:", "file:/nosuch", "pci:", "pci:zz",
		"pci:ff:1f.7", "ip:", "ip:no.such.host.invalid", "ip:127.0.0.1", "0,netdev:lo", "netdev:lo,0",
	};

	start();
	for (unsigned i = 0; i < sizeof lists / sizeof *lists; i++) {
		printf("-- \"%s\"\n", lists[i]);
		show_mask("nodes", numa_parse_nodestring(lists[i]));
		show_mask("CPUs", numa_parse_cpustring(lists[i]));
		/* Nodes relative to all: the number that none has differs. */
		if (lists[i][0] != '+' && lists[i][1] != '+')
			show_mask("all nodes", numa_parse_nodestring_all(lists[i]));
		show_mask("all CPUs", numa_parse_cpustring_all(lists[i]));
	}
	return 0;
}
