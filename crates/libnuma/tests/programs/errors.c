/* numa_error and numa_warn of the library, and a program that has its own. */
#include "show.h"

#ifdef OWN
#ifdef __cplusplus
extern "C" {
#endif
void numa_error(char *where)
{
	printf("own numa_error: %s\n", where);
}

void numa_warn(int number, char *format, ...)
{
	(void)format;
	printf("own numa_warn: %d\n", number);
}
#ifdef __cplusplus
}
#endif
#endif

int main(int count, char **words)
{
	start();
	if (count > 1 && words[1][0] == 'e')
		numa_exit_on_error = 1;
	if (count > 1 && words[1][0] == 'w')
		numa_exit_on_warn = 1;
	run(numa_warn(3, (char *)"a warning of %s and %d", "text", 7));
	run(numa_warn(3, (char *)"the same again"));
	run(numa_set_membind(numa_no_nodes_ptr));
	run(numa_parse_nodestring("99"));
	run(numa_parse_nodestring("98"));
	errno = ENOENT;
	numa_error((char *)"called by the program");
	show(errno);
	return 0;
}
