/* A library that leaves a fork handler with libc and does not say whose it is: shows what loader.c is afraid of. */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);

static void after_fork(void)
{
}

__attribute__((constructor)) static void start(void)
{
	__register_atfork(0, 0, after_fork, 0);
}
