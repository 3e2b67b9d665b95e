/*
 * tool-policy_readers FOLDER READERS PUBLICATIONS: so many processes open, ask and close FOLDER/policy.yaml without a
 * pause, as programs do through libpolicy, while it is published so many times, as calibrd does. One line of figures
 * and exit status 0 if no reader ever met an error, or a policy that nobody published.
 */
#include <pageclear/policy.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrd/publish.h"
#include "kernels/cpu.h"
#include "libpolicy/policy.h"

/* The two policies that follow each other: by where the second rule begins and what it takes. */
enum { EVEN = 8192, ODD = 65536 };

/* Shared by all processes. */
struct tally {
	atomic_ulong begun, opened, even, odd, failed; /* begun: readers that have read once */
	atomic_bool stop;
	char failure[128]; /* the first one, in words */
};

static struct tally *tally;
static char *published; /* what stands there: so that nothing counts as edited */

static void fail(const char *what, int code)
{
	if (atomic_fetch_add(&tally->failed, 1) == 0)
		snprintf(tally->failure, sizeof(tally->failure), "%s: %s", what, strerror(-code));
	atomic_store(&tally->stop, true);
}

/* What the policy says tells which of the two it is, as a whole. */
static void look_into(const struct pageclear_policy *policy)
{
	struct pageclear_query query = {
		.size = sizeof(query), .intent = PAGECLEAR_COLD | PAGECLEAR_FLUSHED, .threads = 1};
	struct pageclear_choice choice = {.size = sizeof(choice)};
	int r;

	query.len = 1 << 20;
	r = pageclear_policy_choose(policy, &query, &choice);
	if (r < 0)
		fail("choose", r);
	else if (choice.from == EVEN)
		atomic_fetch_add(&tally->even, 1);
	else if (choice.from == ODD)
		atomic_fetch_add(&tally->odd, 1);
	else
		fail("a policy that nobody published", 0);
}

static void read_on(const char *path)
{
	const struct pageclear_policy *policy;
	bool first = true;

	while (!atomic_load(&tally->stop)) {
		int r = pageclear_policy_open(&policy, path);

		if (r < 0) {
			fail("open", r);
			return;
		}
		look_into(policy);
		pageclear_policy_close(policy);
		atomic_fetch_add(&tally->opened, 1);
		if (first)
			atomic_fetch_add(&tally->begun, 1);
		first = false;
	}
}

static char *recorded(void *record, uint64_t generation)
{
	(void)record;
	(void)generation;
	return published != NULL ? strdup(published) : NULL;
}

static int publish_one(const char *path, bool odd, struct pc_why *why)
{
	struct pc_rule rules[] = {{.from = 0, .kernel = "libc"},
	                          {.from = odd ? ODD : EVEN, .kernel = "libc", .pinned = true}};
	struct pc_table table = {PAGECLEAR_COLD, PC_FLUSHED, 1, 2, rules};
	struct pc_document document = {.version = "0",
	                               .written = "2026-11-30T10:42:07Z",
	                               .quality = "good",
	                               .topology = "3f9ac2d14b07",
	                               .cpu_count = 1,
	                               .table_count = 1,
	                               .tables = &table};
	struct publish_request request = {.target = {.path = path, .recorded = recorded}, .document = &document};
	struct publish_result result;
	int r;

	snprintf(document.arch, sizeof(document.arch), "%s", pc_arch);
	pc_cpu_signature(document.cpus[0], sizeof(document.cpus[0]));
	r = publish(&request, &result, why);
	free(published);
	published = result.yaml;
	return r;
}

static int publish_all(const char *path, unsigned long count)
{
	struct pc_why why = {""};

	for (unsigned long i = 0; i < count && !atomic_load(&tally->stop); i++) {
		int r = publish_one(path, i % 2 != 0, &why);

		if (r != 0) {
			fprintf(stderr, "publication %lu: %s\n", i, r == 1 ? "not written" : why.text);
			return 1;
		}
	}
	return 0;
}

static int start_readers(const char *path, unsigned readers)
{
	for (unsigned i = 0; i < readers; i++) {
		pid_t child = fork();

		if (child < 0)
			return -1;
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			nice(10); /* at the publisher's own, so many would leave it a turn now and then */
			read_on(path);
			_exit(0);
		}
	}
	while (atomic_load(&tally->begun) < readers && !atomic_load(&tally->stop))
		usleep(1000);
	return 0;
}

static int run(const char *path, unsigned readers, unsigned long publications)
{
	struct pc_why why = {""};
	int status, failed = publish_one(path, true, &why) < 0;

	if (failed)
		fprintf(stderr, "%s\n", why.text);
	if (!failed && start_readers(path, readers) < 0) {
		perror("fork");
		failed = 1;
	}
	if (!failed)
		failed = publish_all(path, publications);
	atomic_store(&tally->stop, true);
	while (wait(&status) > 0)
		failed |= status != 0;
	free(published);
	return failed;
}

int main(int argc, char **argv)
{
	char path[4096];

	if (argc != 4) {
		fprintf(stderr, "usage: %s FOLDER READERS PUBLICATIONS\n", argv[0]);
		return 2;
	}
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tally == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	snprintf(path, sizeof(path), "%s/policy.yaml", argv[1]);
	int failed = run(path, (unsigned)strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
	printf("%lu opened, %lu even, %lu odd, %lu failed %s\n", atomic_load(&tally->opened), atomic_load(&tally->even),
	       atomic_load(&tally->odd), atomic_load(&tally->failed), tally->failure);
	return failed || atomic_load(&tally->failed) > 0;
}
