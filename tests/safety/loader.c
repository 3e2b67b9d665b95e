/*
 * loader ROUNDS LIBRARY: opens and closes libpolicy again and again, in several threads, while others fork: what it
 * left with libc must not be called once it is gone. loader --stale LIBRARY: the same for a library that leaves more
 * than it may (stale.c), which must not end well.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, SIZE = 70000 };

static const char *library;
static unsigned long rounds;

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	_exit(1);
}

static void fork_once(const char *when)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		alarm(30);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		fail("a child %s ended with status %d", when, status);
}

/* By its name, as a function of any type. */
static void *need(void *handle, const char *name)
{
	void *found = dlsym(handle, name);

	if (found == NULL)
		fail("%s", dlerror());
	return found;
}

static void use_once(unsigned turn)
{
	static __thread unsigned char bytes[SIZE];
	void *handle = dlopen(library, RTLD_NOW | (turn % 2 == 0 ? RTLD_LOCAL : RTLD_GLOBAL));
	void (*zero)(void *, size_t, unsigned);
	int (*reload)(void);
	int (*status)(char *, size_t);
	char text[100];

	if (handle == NULL)
		fail("%s", dlerror());
	*(void **)&zero = need(handle, "pageclear_zero");
	*(void **)&reload = need(handle, "pageclear_reload");
	*(void **)&status = need(handle, "pageclear_status");
	memset(bytes, 1, SIZE);
	zero(bytes, SIZE, turn % 3);
	if (bytes[0] != 0 || memcmp(bytes, bytes + 1, SIZE - 1) != 0)
		fail("not all is zero");
	if (reload() < 0 || status(text, sizeof(text)) < 0 || text[0] == '\0')
		fail("it does not work");
	fork_once("of one who has it open");
	if (dlclose(handle) != 0)
		fail("%s", dlerror());
}

static void must_be_gone(void)
{
	if (dlopen(library, RTLD_NOW | RTLD_NOLOAD) != NULL)
		fail("it is still there");
}

static void *use_often(void *unused)
{
	for (unsigned i = 0; i < rounds; i++)
		use_once(i);
	return unused;
}

static atomic_bool stop;

/* One who never has it open. */
static void *fork_often(void *unused)
{
	while (!stop)
		fork_once("of one who has nothing open");
	return unused;
}

/* Alone: it goes each time, and takes all that it allocated along. */
static void alone(void)
{
	size_t before = 0;

	for (unsigned i = 0; i < 40; i++) {
		use_once(i);
		must_be_gone();
		fork_once("after it has gone");
		if (i == 10)
			before = mallinfo2().uordblks;
	}
	if (mallinfo2().uordblks > before)
		fail("%zu bytes stay behind", mallinfo2().uordblks - before);
}

static void together(void)
{
	pthread_t threads[THREADS], forker;

	if (pthread_create(&forker, NULL, fork_often, NULL) != 0)
		fail("no thread");
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, use_often, NULL) != 0)
			fail("no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	stop = 1;
	pthread_join(forker, NULL);
	must_be_gone();
	fork_once("after all have closed it");
}

int main(int argc, char **argv)
{
	library = argv[argc - 1];
	alarm(120);
	if (argc == 3 && strcmp(argv[1], "--stale") == 0) {
		void *handle = dlopen(library, RTLD_NOW);

		if (handle == NULL || dlclose(handle) != 0)
			fail("%s", dlerror());
		must_be_gone();
		fork_once("after it has gone");
		return 0;
	}
	if (argc != 3)
		fail("usage: loader ROUNDS LIBRARY | --stale LIBRARY");
	rounds = strtoul(argv[1], NULL, 10);
	alone();
	together();
	puts("done");
	return 0;
}
