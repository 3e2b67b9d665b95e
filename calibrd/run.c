/* The parent's side of measuring; see run.h. */
#include "calibrd/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrd/stats.h"
#include "calibrd/trial.h"

/* Only async-signal-safe calls between fork and exec. */
static void __attribute__((noreturn)) become_worker(int in, int out)
{
	char *const arguments[] = {"calibrd", "--worker", NULL};
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
		execv("/proc/self/exe", arguments);
	_exit(127);
}

static void close_both(const int ends[2])
{
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
}

/* Leaves the child's pid and the parent's end of each pipe. */
static int spawn(pid_t *pid, int *records, int *orders)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1}, r = 0;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || (*pid = fork()) < 0)
		r = -errno;
	if (r < 0) {
		close_both(in);
		close_both(out);
		return r;
	}
	if (*pid == 0)
		become_worker(in[0], out[1]);
	close(in[0]);
	close(out[1]);
	*orders = in[1];
	*records = out[0];
	return 0;
}

static int cannot_start(struct pc_why *why, int r)
{
	return pc_why(why, r, "cannot start the measuring process: %s", strerror(-r));
}

int run_start(struct run *run, const struct order *asked, struct pc_why *why)
{
	struct order order = *asked;
	pid_t pid = -1;
	int records = -1, orders = -1, r;

	*run = (struct run){.pid = -1, .records = -1, .orders = -1};
	order.parent = getpid();
	r = spawn(&pid, &records, &orders);
	if (r < 0)
		return cannot_start(why, r);
	r = run_watch(run, order.task, pid, records, orders, why);
	if (r < 0)
		return r;
	/* Smaller than a pipe's buffer: written whole or, if the child died already, EPIPE. */
	return write(orders, &order, sizeof(order)) == (ssize_t)sizeof(order) ? 0 : cannot_start(why, -errno);
}

int run_watch(struct run *run, enum order_task task, pid_t pid, int records, int orders, struct pc_why *why)
{
	*run = (struct run){.task = task, .pid = pid, .records = records, .orders = orders};
	return fcntl(records, F_SETFL, O_NONBLOCK) < 0 ? cannot_start(why, -errno) : 0;
}

/* Far above what the fullest plan has (512 blocks of at most 13 kernels, phases and ways apart): keeping them sorted is
 * the parent's time. */
enum { SERIES_MOST = 1 << 15 };

/* -EPROTO: of a kernel that has not passed its trial. */
static int take_sample(struct run *run, const struct record *record)
{
	if ((run->passed >> record->u.sample.key.kernel & 1) == 0 || run->data.count > SERIES_MOST)
		return -EPROTO;
	return dataset_add(&run->data, &record->u.sample.key, &record->u.sample.value, record->u.sample.tainted != 0);
}

/* -EPROTO: of a kernel that has been tried already. */
static int take_trial(struct run *run, const struct record *record)
{
	uint32_t bit = 1u << record->u.trial.kernel;

	if (((run->passed | run->faulted) & bit) != 0)
		return -EPROTO;
	if (record->u.trial.trial == TRIAL_PASSED)
		run->passed |= bit;
	else
		run->faulted |= bit;
	return 0;
}

static int take_words(struct run *run, const struct record_piece *piece)
{
	if (!record_assemble(&run->words, sizeof(run->words), run->words_held, piece))
		return -EPROTO;
	run->words_held += sizeof(piece->bytes);
	record_clean_words(&run->words);
	return 0;
}

static int take_report(struct run *run, const struct record_piece *piece)
{
	if (!record_assemble(&run->report, sizeof(run->report), run->report_held, piece))
		return -EPROTO;
	run->report_held += sizeof(piece->bytes);
	if (run->report_held < sizeof(run->report))
		return 0;
	run->verified = record_report_is_sane(&run->report);
	return run->verified ? 0 : -EPROTO;
}

static bool is_asked_for(enum order_task task, uint32_t kind)
{
	if (kind == RECORD_SAMPLE || kind == RECORD_KNEE || kind == RECORD_PROBE)
		return task == ORDER_CALIBRATE;
	return kind != RECORD_REPORT || task == ORDER_VERIFY;
}

/* -EPROTO: out of its order, or senseless as a whole. */
static int take(struct run *run, const struct record *record)
{
	switch (record->kind) {
	case RECORD_SAMPLE:
		return take_sample(run, record);
	case RECORD_PROBE:
		return probe_set_add(&run->probes, &record->u.probe);
	case RECORD_KNEE:
		if (run->knee_count < COST_EPOCHS)
			run->knees[run->knee_count++] = record->u.knee.bytes;
		return 0;
	case RECORD_PROGRESS:
		run->epoch = record->u.progress.epoch;
		run->epochs = record->u.progress.epochs;
		run->share = record->u.progress.share;
		return 0;
	case RECORD_TRIAL:
		return take_trial(run, record);
	case RECORD_WORDS:
		return take_words(run, &record->u.piece);
	case RECORD_REPORT:
		return take_report(run, &record->u.piece);
	default:
		run->ended = true;
		run->error = record->u.end.error;
		run->taints = record->u.end.taints;
		return 0;
	}
}

/* What the records say of a child that has ended well. */
static int judge_records(const struct run *run, struct pc_why *why)
{
	if (run->error < 0)
		return pc_why(why, run->error, "%s%s",
		              run->words.text[0] != '\0' ? run->words.text : "measuring failed: ",
		              run->words.text[0] != '\0' ? "" : strerror(-run->error));
	if (run->task == ORDER_VERIFY && !run->verified)
		return pc_why(why, -EPROTO, "the measuring process ended without a verdict");
	return 1;
}

/* What the child's end and its last record say together. */
static int judge(const struct run *run, int status, struct pc_why *why)
{
	if (WIFSIGNALED(status))
		return pc_why(why, -ECHILD, "the measuring process was killed by signal %d (%s)", WTERMSIG(status),
		              strsignal(WTERMSIG(status)));
	if (run->held > 0)
		return pc_why(why, -EPROTO, "the measuring process ended within a record");
	if (!run->ended || (WEXITSTATUS(status) != 0 && run->error == 0))
		return pc_why(why, -ECHILD, "the measuring process ended early with exit code %d", WEXITSTATUS(status));
	return judge_records(run, why);
}

static int reap(struct run *run, int *status, struct pc_why *why)
{
	if (run->pid <= 0)
		return pc_why(why, -ECHILD, "the measuring process is gone already");
	kill(run->pid, SIGKILL);
	while (waitpid(run->pid, status, 0) < 0)
		if (errno != EINTR)
			return pc_why(why, -errno, "cannot wait for the measuring process: %s", strerror(errno));
	run->pid = -1;
	return 0;
}

/* Reaps the child after its pipe has ended. Its exit is what closes the pipe, so the kill only meets a child that
 * closed it and lives on: nobody may wait for that one. */
static int conclude(struct run *run, struct pc_why *why)
{
	int status = 0, r = reap(run, &status, why);

	return r < 0 ? r : judge(run, status, why);
}

/* How the child ends after its last record is nobody's business, since it is killed. */
int run_cut(struct run *run, struct pc_why *why)
{
	int status = 0, r = reap(run, &status, why);

	return r < 0 ? r : judge_records(run, why);
}

static int take_whole(struct run *run, struct pc_why *why)
{
	struct record record;
	uint32_t number = run->number++;
	int r;

	memcpy(&record, run->partial, sizeof(record));
	r = run->ended || !record_is_sane(&record, number) || !is_asked_for(run->task, record.kind)
	            ? -EPROTO
	            : take(run, &record);
	if (r == -EPROTO)
		return pc_why(why, r, "the measuring process sent a record that makes no sense (number %u)", number);
	return r < 0 ? pc_why(why, r, "no memory for the measurements") : 0;
}

static int take_all(struct run *run, const unsigned char *data, size_t size, struct pc_why *why)
{
	int r = 0;

	while (size > 0 && r == 0) {
		size_t room = sizeof(run->partial) - run->held, part = room < size ? room : size;

		memcpy(run->partial + run->held, data, part);
		run->held += part;
		data += part;
		size -= part;
		if (run->held < sizeof(run->partial))
			break;
		run->held = 0;
		r = take_whole(run, why);
	}
	return r;
}

int run_read(struct run *run, struct pc_why *why)
{
	unsigned char data[256 * sizeof(struct record)];
	ssize_t got = read(run->records, data, sizeof(data));

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got < 0)
		return pc_why(why, -errno, "cannot read from the measuring process: %s", strerror(errno));
	if (got == 0)
		return conclude(run, why);
	return take_all(run, data, (size_t)got, why);
}

void run_free(struct run *run)
{
	if (run->pid > 0) {
		kill(run->pid, SIGKILL);
		while (waitpid(run->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (run->records >= 0)
		close(run->records);
	if (run->orders >= 0)
		close(run->orders);
	dataset_clear(&run->data);
	probe_set_clear(&run->probes);
	*run = (struct run){.pid = -1, .records = -1, .orders = -1};
}

uint64_t run_knee(const struct run *run)
{
	double bytes[COST_EPOCHS];
	size_t seen = 0;

	for (size_t i = 0; i < run->knee_count; i++)
		if (run->knees[i] > 0)
			bytes[seen++] = (double)run->knees[i];
	if (seen == 0 || 2 * seen < run->knee_count)
		return 0;
	return (uint64_t)stats_median(bytes, seen) / 4096 * 4096;
}

double run_tainted(const struct run *run)
{
	double all = 0, tainted = 0;

	for (size_t i = 0; i < run->data.count; i++) {
		tainted += run->data.series[i].tainted;
		all += run->data.series[i].tainted + run->data.series[i].count;
	}
	return all > 0 ? tainted / all : 0;
}
