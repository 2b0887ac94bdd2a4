/*
 * Runs programs one after the other, each in a phase of its name for nodewise lab --count, and says on which nodes their
 * anonymous memory was, seen again and again while they ran: watch [WORD...] -- NAME LINE [NAME LINE]...
 * The words start each line of a shell, such as those of numactl. Lines of output for each program: its name and its exit
 * status; and its name, a process, a kind of mapping and pages by node.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nodewise.h"

#define NODES 16
#define WORDS 32
#define FOUND 128
/* The least time between two looks at a program, in nanoseconds. */
#define PAUSE 50000000L
/* How many times as long as a look the pause after it lasts: a look at many pages is slow in a guest that counts. */
#define REST 20

static cpu_set_t all, last;

/* Pages by node that no file has, of a process and a kind of its mappings: the sum of all looks. */
struct pages {
	char process[16];
	const char *kind;
	long by_node[NODES];
};

static struct pages found[FOUND];
static int count_found;

/* Those of a process and a kind; where there is no room left, the last. */
static struct pages *find(const char *process, const char *kind)
{
	struct pages *new;

	for (int at = 0; at < count_found; at++)
		if (!strcmp(found[at].process, process) && found[at].kind == kind)
			return &found[at];
	new = &found[count_found < FOUND - 1 ? count_found++ : count_found];
	snprintf(new->process, sizeof new->process, "%s", process);
	new->kind = kind;
	return new;
}

/* Looks at a process. */
static void look_at(const char *process)
{
	static const char *const kinds[] = {" heap", " stack", ""};
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *maps;

	snprintf(path, sizeof path, "/proc/%.16s/numa_maps", process);
	maps = fopen(path, "r");
	if (!maps)
		return;
	while (getline(&line, &room, maps) > 0) {
		char *word, *rest = line;
		struct pages *pages;
		int node, kind = 0;
		long count;

		if (!strstr(line, " anon=") || strstr(line, " file="))
			continue;
		while (!strstr(line, kinds[kind]))
			kind++;
		pages = find(process, *kinds[kind] ? kinds[kind] + 1 : "anonymous");
		while ((word = strsep(&rest, " \n")))
			if (sscanf(word, "N%d=%ld", &node, &count) == 2 && node >= 0 && node < NODES)
				pages->by_node[node] += count;
	}
	free(line);
	fclose(maps);
}

/* Looks at a process and at all that it has started. */
static void look(const char *process)
{
	char path[64], child[16];
	struct dirent *thread;
	DIR *threads;

	look_at(process);
	snprintf(path, sizeof path, "/proc/%.16s/task", process);
	threads = opendir(path);
	if (!threads)
		return;
	while ((thread = readdir(threads))) {
		FILE *children;

		if (thread->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "/proc/%.16s/task/%.16s/children", process, thread->d_name);
		children = fopen(path, "r");
		while (children && fscanf(children, "%15s", child) == 1)
			look(child);
		if (children)
			fclose(children);
	}
	closedir(threads);
}

/* Looks at a program, and sleeps for a time that leaves the CPU to it. */
static void look_and_rest(pid_t program)
{
	struct timespec before, after, pause;
	char process[16];
	long took;

	clock_gettime(CLOCK_MONOTONIC, &before);
	snprintf(process, sizeof process, "%d", (int)program);
	look(process);
	clock_gettime(CLOCK_MONOTONIC, &after);
	took = (after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec;
	took = took * REST > PAUSE ? took * REST : PAUSE;
	pause.tv_sec = took / 1000000000L;
	pause.tv_nsec = took % 1000000000L;
	nanosleep(&pause, NULL);
}

/* Becomes a program, in its phase. */
static void become(char **words, int count, char *name, char *line)
{
	char *argv[WORDS + 4];
	int null = open("/dev/null", O_WRONLY);

	dup2(null, 1);
	memcpy(argv, words, count * sizeof *words);
	argv[count] = "sh";
	argv[count + 1] = "-c";
	argv[count + 2] = line;
	argv[count + 3] = NULL;
	nodewise_phase(name);
	execvp(argv[0], argv);
	_exit(127);
}

static void run(char **words, int count, char *name, char *line)
{
	int status;
	pid_t child = fork();

	if (child < 0)
		exit(3);
	if (!child)
		become(words, count, name, line);
	/* The program may run on all CPUs; its watch is on the last. */
	sched_setaffinity(0, sizeof last, &last);
	while (waitpid(child, &status, WNOHANG) == 0)
		look_and_rest(child);
	sched_setaffinity(0, sizeof all, &all);
	printf("watched %s %d\n", name, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	for (int at = 0; at < count_found; at++) {
		printf("pages %s %s %s", name, found[at].process, found[at].kind);
		for (int node = 0; node < NODES; node++)
			printf(" %ld", found[at].by_node[node]);
		printf("\n");
	}
	count_found = 0;
	memset(found, 0, sizeof found);
	fflush(stdout);
}

int main(int count, char **words)
{
	int own = 1;

	while (own < count && strcmp(words[own], "--"))
		own++;
	if (own > WORDS || (count - own) % 2 == 0) {
		fprintf(stderr, "usage: watch [WORD...] -- NAME LINE [NAME LINE]...\n");
		return 2;
	}
	sched_getaffinity(0, sizeof all, &all);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &last);
	for (int at = own + 1; at + 1 < count; at += 2)
		run(words + 1, own - 1, words[at], words[at + 1]);
	return 0;
}
