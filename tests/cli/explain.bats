#!/usr/bin/env bats
# calibctl explain, on policies and databases that are made up: needs neither a daemon nor measurements.

# Verbs with their arguments are split on purpose; messages hold shell characters; bats sets stderr.
# shellcheck disable=SC2086,SC2016,SC2154

bats_require_minimum_version 1.5.0

load calibctl_common

setup_file() {
	make_subjects
}

@test "explain: the rule alone where there is no database" {
	need_x86
	[ ! -e /var/lib/pageclear/calibrd.db ] || skip "this host has a database"
	run -0 "$CTL" --policy "$T/native.yaml" explain 3K cold --prior flushed
	holds "answer     sse2nt: 16-byte non-temporal stores"
	says "sse2nt for 2 KiB - no limit, 2.91x, crossover 1.5 KiB - 3 KiB"
	says "measured   no database: there is no /var/lib/pageclear/calibrd.db"
	lacks "if_wrong"
}

@test "explain: sizes at and around the crossover" {
	need_x86
	for size in 2047 0 256; do
		run -0 ctl explain "$size" cold --prior flushed --json
		jq -e '.answer.kernel == "libc" and .answer.rule.to == 2048' <<<"$output"
	done
	for size in 2048 2K "2 KiB" 16E; do
		[ "$size" != 16E ] || size=15.99E
		run -0 ctl explain "$size" cold --prior flushed --json
		jq -e '.answer.kernel == "sse2nt" and .answer.rule.to == null' <<<"$output"
	done
	run -0 ctl explain 256 cold --prior flushed
	holds "memset in the caller"
	run -0 ctl explain 257 cold --prior flushed
	lacks "memset in the caller"
}

@test "explain: medians, ratios, spread and noise as measured" {
	need_x86
	run -0 ctl explain 1M cold --prior flushed
	holds "1 MiB   (noise floor 2 %)"
	holds "sse2nt *  41.9 us  25.0  2.50x  2.45x - 2.55x over 3 epochs"
	holds "libc       105 us  10.0  1.00x"
	says "cached said, flushed true: libc instead of sse2nt costs 2.50x at 1 MiB"
	says "flushed said, cached true: sse2nt instead of libc costs 4.00x at 1 MiB"
	run -0 ctl explain 1M cold --prior flushed --json
	jq -e '.measured.sizes | length == 1 and .[0].bytes == 1048576 and .[0].kernels[0].kernel == "sse2nt"' <<<"$output"
	jq -e '[.measured.if_wrong[].cost] == [2.5, 4]' <<<"$output"
	jq -e '.measured.sizes[0].noise_floor | . > 0.0200 and . < 0.0204' <<<"$output"
}

@test "explain: the nearest measured sizes on both sides, one beyond the ends" {
	need_x86
	run -0 ctl explain 2M cold --json
	jq -e '[.measured.sizes[].bytes] == [1048576, 4194304]' <<<"$output"
	run -0 ctl explain 1G cold --json
	jq -e '[.measured.sizes[].bytes] == [4194304]' <<<"$output"
	run -0 ctl explain 1 cold --json
	jq -e '[.measured.sizes[].bytes] == [4096]' <<<"$output"
}

@test "explain: small flushed sizes were asked for in two ways" {
	need_x86
	run -0 ctl explain 4K cold --prior flushed
	holds "alone"
	holds "sse2nt *   164 ns  25.0  123 ns  2.00x"
	run -0 ctl explain 1M cold --prior flushed
	lacks "alone"
}

@test "explain: an unknown prior is probed for from probe.from on, where it matters" {
	need_x86
	run -0 ctl explain 256K cold
	says "libc if it is cached, sse2nt if it is flushed"
	jq -e .probes <<<"$(ctl explain 256K cold --json)"
	for question in "255K cold" "256K hot" "256K scrub" "256K cold --prior cached"; do
		jq -e '.probes | not' <<<"$(ctl explain $question --json)"
	done
}

@test "explain: hot pays for the first read, scrub for what it displaces" {
	need_x86
	run -0 ctl explain 1M --prior cached
	holds "hot (this CPU uses it right after)"
	holds "libc *  41.9 us"
	holds "if_wrong   cached said, flushed true: nothing, libc either way"
	run -0 ctl explain 64K scrub
	holds "displaced"
	holds "18.0 us"
	lacks "if_wrong"
	run -0 ctl explain 8K scrub
	says "movnti for 4 KiB - 64 KiB, pinned"
}

@test "explain: a kernel that can't run here is replaced, chunks are told" {
	need_x86
	run -0 ctl explain 2G scrub
	holds "answer     libc"
	says "unheard_of for 1 GiB - no limit, not known to this version: libc stands in"
	run -0 ctl explain 64M cold --prior cached
	says "in pieces of 2 MiB"
}

@test "explain: which measured number of threads answers" {
	need_x86
	run -0 ctl explain 1M cold --threads 8
	says "threads    8 asked for: measured with 1 thread, the most there is"
	run -0 ctl explain 1M cold
	lacks "asked for"
	sed -e '/^  - intent: cold/,$!d' -e 's/threads: 1/threads: 4/' "$T/native.yaml" | cat "$T/native.yaml" - >"$T/four.yaml"
	run -0 "$CTL" --policy "$T/four.yaml" --database "$T/good.db" explain 1M cold --threads 2
	says "threads    2 asked for: measured with 4 threads, the next number from there up"
	run -0 "$CTL" --policy "$T/four.yaml" --database "$T/good.db" explain 1M cold --threads 8
	says "threads    8 asked for: measured with 4 threads, the most there is"
	run -0 "$CTL" --policy "$T/four.yaml" --database "$T/good.db" explain 1M cold --threads 8 --json
	jq -e '.answer.threads == 4 and .question.threads == 8' <<<"$output"
}

@test "explain: spot checks, where there are any" {
	need_x86
	run -0 ctl explain 4M cold --prior flushed
	lacks "spot check"
	"$B/tool-calibctl_database" "$T/spots.db" "$TOPOLOGY" spots
	run -0 "$CTL" --policy "$T/native.yaml" --database "$T/spots.db" explain 4M cold --prior flushed
	says "spot check sse2nt in pieces of 64 KiB costs 1.50x of the whole extent at once"
	says "sse2nt in pieces of 2 MiB costs 0.50x of the whole extent at once"
	says "the last piece first costs 2.00x of the first one first"
	says "sse2nt on base pages costs 0.80x of libc on them"
	run -0 "$CTL" --policy "$T/native.yaml" --database "$T/spots.db" explain 4M cold --prior flushed --json
	jq -e '.measured.spot_checks | .kernel == "sse2nt" and .chunks[0].over_whole.ratio == 1.5 and .backward_over_forward.ratio == 2' \
		<<<"$output"
	run -0 "$CTL" --policy "$T/native.yaml" --database "$T/spots.db" explain 4M scrub --json
	jq -e '.measured.spot_checks.chunks | all(.[]; .over_whole == null)' <<<"$output"
}

@test "explain: the database of another topology says nothing" {
	need_x86
	run -0 "$CTL" --policy "$T/native.yaml" --database "$T/other.db" explain 4K
	says "no finished calibration of topology $TOPOLOGY"
}

@test "a database that can't be read: the rule, the reason, exit status 3" {
	need_x86
	head -c 100000 /dev/zero >"$T/zeros.db"
	sqlite3 "$T/foreign.db" 'CREATE TABLE theirs (x)'
	cp "$T/good.db" "$T/newer.db"
	sqlite3 "$T/newer.db" 'PRAGMA user_version = 99'
	for database in nowhere zeros foreign newer; do
		run -3 --separate-stderr "$CTL" --policy "$T/native.yaml" --database "$T/$database.db" explain 4K
		holds "rule       unknown: libc"
		[[ $stderr == *"$database.db"* ]]
		run -3 "$CTL" --policy "$T/native.yaml" --database "$T/$database.db" kernels
		run -3 "$CTL" --policy "$T/native.yaml" --database "$T/$database.db" status
		says "! $T/$database.db"
		run -3 --separate-stderr "$CTL" --policy "$T/native.yaml" --database "$T/$database.db" explain 4K --json
		jq -e '.measured == null and (.not_measured_because | length > 0)' <<<"$output"
	done
	[ ! -e "$T/nowhere.db" ]
	cmp "$T/zeros.db" <(head -c 100000 /dev/zero)
}
