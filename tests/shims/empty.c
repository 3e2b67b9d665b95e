/* What calling a shared library costs when it does nothing: tests/bench/cost.c measures beside it. */
__attribute__((visibility("default"))) int shim_empty(const void *policy, const void *query, void *choice);

int shim_empty(const void *policy, const void *query, void *choice)
{
	(void)policy;
	(void)query;
	(void)choice;
	return 0;
}
