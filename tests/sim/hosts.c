/* Simulated hosts; see hosts.h. */
#include "tests/sim/hosts.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

void host_latency(struct sim_host *host, uint64_t l2_bytes, uint64_t llc_bytes, double l2_ns, double llc_ns,
                  double memory_ns)
{
	host->latency_ns.count = 0;
	sim_point(&host->latency_ns, l2_bytes, l2_ns);
	sim_point(&host->latency_ns, l2_bytes / 2 * 3, llc_ns);
	sim_point(&host->latency_ns, llc_bytes, llc_ns);
	sim_point(&host->latency_ns, llc_bytes / 2 * 3, memory_ns);
}

/* GB/s at 256 B, 16 KiB, 64 KiB, 4 MiB and 16 MiB. */
static void set_speeds(struct sim_host *host, unsigned kernel, enum pc_prior prior, const double *gb_per_s)
{
	static const uint64_t sizes[] = {256, 16 * KIB, 64 * KIB, 4 * MIB, 16 * MIB};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		sim_point(&host->kernel[kernel].gb_per_s[prior], sizes[i], gb_per_s[i]);
}

/* A temporal clear of 1 MiB took a 256 KiB victim from 9 to 17 ns a line, one round the caches from 9 to 10. */
static void set_displacement(struct sim_host *host, unsigned kernel, bool round_caches)
{
	static const double lines[] = {512, 8192, 65536};

	for (unsigned victim = 0; victim < SIM_VICTIMS; victim++) {
		host->kernel[kernel].displaces[victim].bytes = victim == 0 ? 32 * KIB : MIB;
		host->kernel[kernel].displaces[victim].ns = lines[victim] * (round_caches ? 1 : 8);
	}
}

static void empty_guest(struct sim_host *host, const char *name)
{
	*host = (struct sim_host){
		.name = name,
		.l1_bytes = 32 * KIB,
		.l2_bytes = 512 * KIB,
		.llc_bytes = 8 * MIB,
		.read_gb_per_s = {[PC_CACHED] = 40, [PC_FLUSHED] = 12},
		.load_ns = {[PC_CACHED] = 12, [PC_FLUSHED] = 120},
	};
	host_latency(host, 512 * KIB, 8 * MIB, 4, 11, 130);
}

void host_zen3(struct sim_host *host)
{
	static const struct {
		const char *name;
		bool round_caches;
		double cached[5], flushed[5], single_gb_per_s;
	} rows[] = {
		{"libc", false, {50, 61, 57, 41, 12}, {6, 7, 9, 11, 10}, 1},
		{"stosq", false, {20, 61, 43, 45, 12}, {5, 6, 9, 11, 10}, 0.9},
		{"sse2", false, {40, 50, 45, 38, 12}, {6, 7, 9, 11, 10}, 1},
		{"movnti", true, {1.5, 7, 6, 20, 21}, {1.4, 28, 24, 30, 30}, 2},
		{"avxnt", true, {2, 8, 7, 23, 22}, {1.5, 35, 27, 32, 31}, 3},
		{"clzero", true, {2.5, 7, 7, 23, 23}, {1.5, 48, 29, 32, 31}, 3.2},
	};

	empty_guest(host, "Zen 3 guest");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned kernel = sim_kernel(host, rows[i].name);

		if (kernel == pc_kernel_count)
			continue;
		set_speeds(host, kernel, PC_CACHED, rows[i].cached);
		set_speeds(host, kernel, PC_FLUSHED, rows[i].flushed);
		set_displacement(host, kernel, rows[i].round_caches);
		/* One call alone: 256 B at so much; by 16 KiB the work behind it no longer tells. */
		sim_point(&host->kernel[kernel].single_gb_per_s, 256, rows[i].single_gb_per_s);
		sim_point(&host->kernel[kernel].single_gb_per_s, 16 * KIB, rows[i].flushed[1]);
	}
}

void host_alike(struct sim_host *host)
{
	static const double same[5] = {10, 10, 10, 10, 10};

	empty_guest(host, "all alike");
	host->read_gb_per_s[PC_CACHED] = host->read_gb_per_s[PC_FLUSHED] = 12;
	for (unsigned k = 0; k < pc_kernel_count; k++) {
		host->kernels |= 1u << k;
		set_speeds(host, k, PC_CACHED, same);
		set_speeds(host, k, PC_FLUSHED, same);
		set_displacement(host, k, false);
	}
}
