/* The parts of the topology module by themselves: sets, dumps, the child, and what is believed of its message. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrd/topology_parts.h"
#include "kernels/cpu.h"
#include "tests/unit/harness.h"

/* --- sets ------------------------------------------------------------------------------------------------ */

static void check_list(const char *text, unsigned count, const char *printed)
{
	struct topology_set set;
	char again[64];

	CU_ASSERT_FATAL(topology_set_parse_list(&set, text));
	CU_ASSERT_EQUAL(topology_set_count(&set), count);
	topology_set_print(&set, again, sizeof(again));
	CU_ASSERT_STRING_EQUAL(again, printed);
}

static void test_lists(void)
{
	static const char *const wrong[] = {
		"a", "-1", "1-", "3-1", "1,,2", "1,", ",1", "0-8192", "9999999999999999999999", "1 2", "+1"};
	struct topology_set set;

	check_list("", 0, "");
	check_list("0", 1, "0");
	check_list("0-3,8,10-11", 7, "0-3,8,10-11");
	check_list("63-64,8191", 3, "63-64,8191");
	check_list("2,1,0,1", 3, "0-2");
	check_list("0-8191", 8192, "0-8191");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CU_ASSERT_FALSE(topology_set_parse_list(&set, wrong[i]));
}

static void test_maps(void)
{
	struct topology_set set;

	CU_ASSERT_FATAL(topology_set_parse_map(&set, "ff,00000001"));
	CU_ASSERT_EQUAL(topology_set_count(&set), 9);
	CU_ASSERT_TRUE(topology_set_has(&set, 0) && topology_set_has(&set, 32) && topology_set_has(&set, 39));
	CU_ASSERT_FALSE(topology_set_has(&set, 40));
	CU_ASSERT_EQUAL(topology_set_next(&set, 1), 32);
	CU_ASSERT_EQUAL(topology_set_next(&set, 40), TOPOLOGY_SET_MAX);
	CU_ASSERT_FALSE(topology_set_parse_map(&set, ""));
	CU_ASSERT_FALSE(topology_set_parse_map(&set, "0x3"));
}

static void test_long_print(void)
{
	struct topology_set set = {0};
	char text[32];

	for (unsigned i = 0; i < 100; i += 2)
		topology_set_add(&set, i);
	topology_set_print(&set, text, sizeof(text));
	CU_ASSERT(strlen(text) < sizeof(text));
	CU_ASSERT_STRING_EQUAL(text + strlen(text) - 3, "...");
}

/* --- dumps ----------------------------------------------------------------------------------------------- */

static const char two_cpus[] = "------[ Logical CPU #0 ]------\n"
			       "CPUID 00000000: 00000010-68747541-444D4163-69746E65 [AuthenticAMD]\n"
			       "CPUID 00000001: 00A00F11-00020800-7EF8320B-178BFBFF\n"
			       "CPUID 00000007: 00000000-219C97A9-0040069C-00000010 [SL 00]\n"
			       "CPUID 00000007: 00000000-FFFFFFFF-FFFFFFFF-FFFFFFFF [SL 01]\n"
			       "CPUID 0000000D: 00000207-00000340-00000988-00000000 [SL 00]\n"
			       "CPUID 80000000  \t80000021-68747541-444D4163-69746E65\n"
			       "CPUID 80000002  \t20444D41-43595045-00000000-00000000\n"
			       "CPUID 80000008: 00003030-111EF657-0000400F-00010000\n"
			       "CPU#001 AffMask: 0x0000000000000002\n"
			       "CPUID 00000000: 00000010-68747541-444D4163-69746E65\n"
			       "CPUID 00000001: 00A00F12-00020800-7EF8320B-178BFBFF\n";

static void test_dump(void)
{
	struct topology_dump dump;
	char text[64];

	CU_ASSERT_EQUAL_FATAL(topology_dump_parse(&dump, two_cpus), 0);
	CU_ASSERT_EQUAL(dump.cpus, 2);
	CU_ASSERT_EQUAL_FATAL(dump.core_count, 2);
	CU_ASSERT_STRING_EQUAL(dump.cores[0].signature, "AuthenticAMD 25/1/1");
	CU_ASSERT_STRING_EQUAL(dump.cores[1].signature, "AuthenticAMD 25/1/2");
	CU_ASSERT_EQUAL(topology_leaf(&dump.first, 7, 1)[2], 0xffffffff);
	CU_ASSERT_EQUAL(topology_leaf(&dump.first, 0x11, 0)[0], 0);
	CU_ASSERT_EQUAL(topology_leaves_features(&dump.first),
	                PC_CPU_AVX | PC_CPU_AVX2 | PC_CPU_CLZERO | PC_CPU_ERMS | PC_CPU_FSRM | PC_CPU_CLFLUSHOPT);
	topology_leaves_name(&dump.first, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "AMD EPYC");
	topology_leaves_hypervisor(&dump.first, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "");
}

static void test_serialised_dump(void)
{
	static const char text[] = "version=0.6.2\nbasic_cpuid[0]=00000007 756e6547 6c65746e 49656e69\n"
				   "basic_cpuid[1]=000306c3 00100800 fffa3203 bfebfbff\nbasic_cpuid[7]=0 200 0 0\n"
				   "ext_cpuid[0]=80000008 0 0 0\next_cpuid[8]=0 1 0 0\nintel_fn4[0]=1 2 3 4\n";
	struct topology_dump dump;

	CU_ASSERT_EQUAL_FATAL(topology_dump_parse(&dump, text), 0);
	CU_ASSERT_STRING_EQUAL(dump.cores[0].signature, "GenuineIntel 6/60/3");
	/* AVX needs leaf 0Dh to say which state can be saved; this dump has none. */
	CU_ASSERT_EQUAL(topology_leaves_features(&dump.first), PC_CPU_ERMS | PC_CPU_CLZERO);
}

static void test_no_dump(void)
{
	static const char *const texts[] = {"",
	                                    "\n\n\n",
	                                    "CPUID 0000000",
	                                    "CPUID 00000000: 1-2-3",
	                                    "basic_cpuid[0]=1 2 3",
	                                    "basic_cpuid[99999999999999999999]",
	                                    "CPUID 00000000: zz-zz-zz-zz"};
	struct topology_dump dump;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CU_ASSERT_EQUAL(topology_dump_parse(&dump, texts[i]), -EBADMSG);
}

/* --- the child ------------------------------------------------------------------------------------------- */

static const struct topology_limits limits = {.deadline_ms = 20000, .most = 100000};

static void say_argument(int fd, const void *argument)
{
	CU_ASSERT(write(fd, argument, strlen(argument)) > 0);
	printf("!");
	fflush(stdout);
}

static void fall(int fd, const void *number)
{
	CU_ASSERT(write(fd, "before", 6) == 6);
	raise(*(const int *)number);
}

static void hang(int fd, const void *unused)
{
	(void)fd;
	(void)unused;
	for (;;)
		pause();
}

static void flood(int fd, const void *unused)
{
	char piece[4096] = "";

	(void)unused;
	while (write(fd, piece, sizeof(piece)) > 0)
		continue;
}

static void fail(int fd, const void *unused)
{
	(void)fd;
	(void)unused;
	_exit(3);
}

static struct topology_report run(void (*work)(int, const void *), const void *argument, struct topology_limits within)
{
	struct topology_report report;

	CU_ASSERT_EQUAL_FATAL(topology_child_run(&report, work, argument, within), 0);
	CU_ASSERT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	return report;
}

static void test_child(void)
{
	static char buffer[256];
	struct topology_report report;

	/* What the parent has not written yet must not come out of the child. CUnit leaves stdout unbuffered. */
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	printf("(held back)");
	report = run(say_argument, "hello", limits);
	fflush(stdout);
	setvbuf(stdout, NULL, _IONBF, 0);
	CU_ASSERT_EQUAL(report.end, TOPOLOGY_EXITED);
	CU_ASSERT_STRING_EQUAL(report.bytes, "hello!");
	CU_ASSERT_EQUAL(report.len, 6);
	free(report.bytes);
	report = run(fail, NULL, limits);
	CU_ASSERT(report.end == TOPOLOGY_DIED && report.signal == 0);
	free(report.bytes);
}

static void on_signal(int number)
{
	(void)number;
	_exit(0);
}

static void test_child_dies(void)
{
	static const int numbers[] = {SIGFPE, SIGSEGV, SIGUSR1, SIGTERM};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		void (*before)(int) = signal(numbers[i], on_signal);
		struct topology_report report = run(fall, &numbers[i], limits);

		signal(numbers[i], before);
		CU_ASSERT_EQUAL(report.end, TOPOLOGY_DIED);
		CU_ASSERT_EQUAL(report.signal, numbers[i]);
		CU_ASSERT_STRING_EQUAL(report.bytes, "before");
		free(report.bytes);
	}
}

static void test_child_hangs(void)
{
	struct topology_report report = run(hang, NULL, (struct topology_limits){.deadline_ms = 100, .most = 10});

	CU_ASSERT_EQUAL(report.end, TOPOLOGY_HUNG);
	free(report.bytes);
	report = run(flood, NULL, limits);
	CU_ASSERT_EQUAL(report.end, TOPOLOGY_FLOODED);
	CU_ASSERT(report.len <= limits.most + 1);
	free(report.bytes);
}

/* Somebody else reaps, or nobody needs to: the output still counts. */
static void test_child_unwaited(void)
{
	void (*before)(int) = signal(SIGCHLD, SIG_IGN);
	struct topology_report report = run(say_argument, "hello", limits);

	signal(SIGCHLD, before);
	CU_ASSERT_EQUAL(report.end, TOPOLOGY_EXITED);
	CU_ASSERT_STRING_EQUAL(report.bytes, "hello!");
	free(report.bytes);
}

/* --- the message ----------------------------------------------------------------------------------------- */

static const char raw_text[] = "version=0\n";
static char message[sizeof(raw_text) + sizeof(struct topology_cpuid)];

/* What the child sends for this host or, where libcpuid is not had, what it might. */
static struct topology_cpuid *fill_message(void)
{
	struct topology_cpuid *answer = malloc(sizeof(*answer));

	CU_ASSERT_PTR_NOT_NULL_FATAL(answer);
	memset(answer, 0, sizeof(*answer));
	answer->magic = 0x70634944;
	answer->type_count = 1;
	answer->cpus_read = 4;
	strcpy(answer->name, "Some CPU");
	strcpy(answer->types[0].vendor, "GenuineIntel");
	answer->types[0].family = 6;
	answer->types[0].model = 60;
	answer->types[0].kind = '-';
	answer->types[0].threads = 4;
	return answer;
}

static enum topology_outcome send_message(const struct topology_cpuid *answer, struct topology_cpuid *got)
{
	size_t text_len;

	memcpy(message, raw_text, sizeof(raw_text));
	memcpy(message + sizeof(raw_text), answer, sizeof(*answer));
	return topology_cpuid_parse(got, &text_len, message, sizeof(message));
}

static void test_message(void)
{
	struct topology_cpuid *good = fill_message(), got;

	good->types[0].caches[TOPOLOGY_L3].kib = -7;
	CU_ASSERT_EQUAL(send_message(good, &got), TOPOLOGY_IDENTIFIED);
	CU_ASSERT_STRING_EQUAL(got.types[0].vendor, "GenuineIntel");
	CU_ASSERT_EQUAL(got.types[0].caches[TOPOLOGY_L3].kib, -1);
	free(good);
}

/* A child that could not load the library says so, and is believed no more than that. */
static void test_message_of_trouble(void)
{
	struct topology_cpuid *answer = fill_message(), got;

	strcpy(answer->trouble, "libcpuid.so.0: no such file");
	CU_ASSERT_EQUAL(send_message(answer, &got), TOPOLOGY_ABSENT);
	CU_ASSERT_STRING_EQUAL(got.trouble, "libcpuid.so.0: no such file");
	CU_ASSERT_EQUAL(got.type_count, 0);
	CU_ASSERT_STRING_EQUAL(got.name, "");
	free(answer);
}

#define REFUSED(change)                                                                                                \
	do {                                                                                                           \
		answer = fill_message();                                                                               \
		change;                                                                                                \
		CU_ASSERT_EQUAL(send_message(answer, &got), TOPOLOGY_KILLED);                                          \
		CU_ASSERT_EQUAL(got.type_count, 0);                                                                    \
		free(answer);                                                                                          \
	} while (0)

static void test_message_refused(void)
{
	struct topology_cpuid *answer, got;

	REFUSED(answer->magic++);
	REFUSED(answer->type_count = 0);
	REFUSED(answer->type_count = TOPOLOGY_CORE_TYPES + 1);
	REFUSED(answer->type_count = 2);
	REFUSED(memset(answer->name, 'x', sizeof(answer->name)));
	REFUSED(memset(answer->types[0].vendor, 'x', sizeof(answer->types[0].vendor)));
	REFUSED(answer->types[0].vendor[3] = '\n');
	REFUSED(answer->types[0].family = -1);
	REFUSED(answer->types[0].model = 256);
	REFUSED(answer->types[0].stepping = 16);
	REFUSED(answer->types[0].kind = 0);
	REFUSED(memset(answer->trouble, 'x', sizeof(answer->trouble)));
	REFUSED(strcpy(answer->trouble, "no\nsense"));
}

static void test_message_cut(void)
{
	struct topology_cpuid *good = fill_message(), got;
	size_t text_len;

	send_message(good, &got);
	for (size_t len = 0; len < sizeof(message); len++) {
		enum topology_outcome outcome = topology_cpuid_parse(&got, &text_len, message, len);

		CU_ASSERT_EQUAL(outcome, len <= sizeof(raw_text) ? TOPOLOGY_SILENT : TOPOLOGY_KILLED);
		CU_ASSERT_EQUAL(text_len, len >= sizeof(raw_text) ? strlen(raw_text) : 0);
	}
	message[2] = '\x1b';
	CU_ASSERT_EQUAL(topology_cpuid_parse(&got, &text_len, message, sizeof(message)), TOPOLOGY_IDENTIFIED);
	CU_ASSERT_EQUAL(text_len, 0);
	free(good);
}

/* Whatever bytes come: what is believed keeps to its bounds. */
static void test_message_noise(void)
{
	struct topology_cpuid *good = fill_message(), got;
	uint32_t random = 1;
	unsigned believed = 0;

	for (unsigned i = 0; i < 20000; i++) {
		size_t text_len;

		send_message(good, &got);
		for (unsigned j = 0; j < 3; j++) {
			random = random * 1664525 + 1013904223;
			message[(random >> 8) % sizeof(message)] = (char)random;
		}
		if (topology_cpuid_parse(&got, &text_len, message, sizeof(message)) != TOPOLOGY_IDENTIFIED)
			continue;
		believed++;
		CU_ASSERT(got.type_count >= 1 && got.type_count <= TOPOLOGY_CORE_TYPES);
		CU_ASSERT(got.types[0].threads >= -1 && got.types[0].threads <= TOPOLOGY_SET_MAX);
		CU_ASSERT(got.types[0].model >= 0 && got.types[0].model < 256);
	}
	CU_ASSERT(believed > 0);
	free(good);
}

static const struct unit_test tests[] = {
	{"lists of CPUs", test_lists},
	{"maps of CPUs", test_maps},
	{"long lists are cut", test_long_print},
	{"dump", test_dump},
	{"serialised dump", test_serialised_dump},
	{"no dump", test_no_dump},
	{"child", test_child},
	{"child that dies", test_child_dies},
	{"child that hangs or floods", test_child_hangs},
	{"child that nobody waits for", test_child_unwaited},
	{"message", test_message},
	{"message of trouble", test_message_of_trouble},
	{"message refused", test_message_refused},
	{"message cut short", test_message_cut},
	{"message with noise", test_message_noise},
};

UNIT_MAIN("topology_parts", tests)
