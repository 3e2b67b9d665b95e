#!/usr/bin/env bats
# calibctl bench on this host, as briefly as it goes, and the comparison with perf on a perf that is not one. What the
# figures are is nobody's business here. B is the build folder.

# Messages hold shell characters; bats sets stderr.
# shellcheck disable=SC2016,SC2154

bats_require_minimum_version 1.5.0

load calibrd_common

setup_file() {
	export B=${B:-build}
	export CTL=$B/calibctl
}

misused() {
	wrong_usage "calibctl bench: $1" "Try 'calibctl help bench'" "$CTL" bench "${@:2}"
}

# Runs bench and keeps its stdout in $T/out.
bench() {
	"$CTL" bench "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err"
}

# As RFC 4180 has it: CRLF, a header, and as many fields in each row. Prints "NAMES ROWS".
parse_csv() {
	python3 - "$1" <<-'END'
		import csv, sys
		raw = open(sys.argv[1], newline="").read()
		assert raw.endswith("\r\n") and raw.count("\n") == raw.count("\r\n"), "line ends"
		rows = list(csv.DictReader(raw.splitlines(keepends=True), restkey="more", restval=None, strict=True))
		for row in rows:
		    assert "more" not in row and None not in row.values(), row
		    for name, value in row.items():
		        if value and name.endswith(("_ns", "_us", "_line", "_share", "stdev", "gb_per_s", "bytes", "samples")):
		            float(value)
		print(",".join(rows[0]), len(rows))
	END
}

# Kernels that run here and those that do not, from another verb.
kernels_here() {
	"$CTL" kernels --json | jq "[.kernels[] | select(.runs_here == $1)] | length"
}

a_kernel_that_does_not_run() {
	"$CTL" kernels --json | jq -r '[.kernels[] | select(.runs_here | not)][0].name // empty'
}

# --- wrong usage -----------------------------------------------------------------------------------------------------

@test "wrong options are named" {
	misused "'tabel' is none of table, xen, hugepage" tabel
	misused "unexpected argument 'xen'" table xen
	misused "unknown option '--size'" --size 4K
	misused "--sizes: 'x' is no size" --sizes x
	misused "--sizes: '' is no size" --sizes 4K,
	misused "--sizes: there is nothing to measure in 0" --sizes 4K,0
	misused "--sizes: '17E' is more than 64 bits hold" --sizes 17E
	misused "--sizes: 1 EiB is more than the" --sizes 4K,1E
	misused "--sizes: 1 EiB is more than the" xen --sizes 1E
	misused "--sizes: hugepage measures 2 MiB" hugepage --sizes 4K
	misused "--sizes needs a value" --sizes
	misused "--prior 'wet' is none of cached, flushed" --prior wet
	misused "--prior 'unknown' is none of cached, flushed" --prior unknown
	misused "--format 'xml' is none of text, csv, json" --format xml
	misused "--json and --format csv contradict each other" --json --format csv
}

@test "wrong numbers of runs are named" {
	for runs in 0 x -1 1001 1x " 1" 99999999999999999999 1.5; do
		misused "--runs '$runs' is no number from 1 to 1000" --runs="$runs"
	done
}

@test "unknown kernels are named" {
	misused "--kernels: no kernel is called 'warp9'" --kernels libc,warp9
	misused "--kernels: no kernel is called ''" --kernels libc,,libc
	misused "--kernels: no kernel is called 'LIBC'" xen --kernels LIBC
	misused "--kernels needs a value" --kernels
}

@test "help tells the three tables and every option" {
	run -0 "$CTL" help bench
	for word in table xen hugepage --sizes --kernels --prior --runs --format --json; do
		holds "  $word"
	done
}

# --- table -----------------------------------------------------------------------------------------------------------

@test "table: text has a row a size and a column a kernel for both priors" {
	bench --sizes 4K,64K --runs 2 --kernels libc
	output=$(cat "$BATS_TEST_TMPDIR/out")
	holds "mean of 2 runs"
	holds "cached   ("
	holds "flushed   ("
	[ "$(grep -cE '^  4 KiB +(\*[0-9.]+ \+-[0-9.]+ \([0-9.]+ %\)|-)' <<<"$output")" = 2 ]
	[ "$(grep -cE '^  64 KiB ' <<<"$output")" = 2 ]
	run ! grep -q ' $' "$BATS_TEST_TMPDIR/out"
}

@test "table: csv has a row a cell, with those that are not measured" {
	bench --sizes 4K,64K --runs 2 --prior flushed --format csv
	read -r names rows < <(parse_csv "$BATS_TEST_TMPDIR/out")
	[ "$names" = prior,size_bytes,kernel,gb_per_s,stdev_gb_per_s,relative_stdev,runs,samples,tainted,best,note ]
	[ "$rows" = $((2 * ($(kernels_here true) + $(kernels_here false)))) ]
	[ "$(grep -c ',needs\|needs ' "$BATS_TEST_TMPDIR/out")" = $((2 * $(kernels_here false))) ]
}

@test "table: json, by either option" {
	bench --sizes 4K --runs 2 --kernels libc --json
	jq -e '.bench == "table" and .runs == 2 and .stopped == false and (.cells | length) == 2
		and (.cells[0] | .kernel == "libc" and .size_bytes == 4096 and .samples > 0)
		and (.host.topology | test("^[0-9a-f]{12}$"))' "$BATS_TEST_TMPDIR/out"
	bench --sizes 4K --runs 1 --kernels libc --prior cached --format json
	jq -e '(.cells | length) == 1 and .cells[0].stdev_gb_per_s == null and .cells[0].prior == "cached"' "$BATS_TEST_TMPDIR/out"
}

@test "a kernel that cannot run here is told, and alone it is a problem" {
	kernel=$(a_kernel_that_does_not_run)
	[ -n "$kernel" ] || skip "every kernel runs here"
	bench --sizes 4K --runs 1 --kernels "libc,$kernel"
	output=$(cat "$BATS_TEST_TMPDIR/out")
	holds "left out   $kernel: cannot run here: needs "
	for kind in table xen hugepage; do
		run -1 --separate-stderr "$CTL" bench $kind --runs 1 --kernels "$kernel"
		holds "left out   $kernel: cannot run here: needs "
		run -1 --separate-stderr "$CTL" bench $kind --runs 1 --kernels "$kernel" --json
		[ "$(jq -r '.not_measured[0].kernel' <<<"$output")" = "$kernel" ]
		[ "$(jq '.cells | length' <<<"$output")" = 0 ]
		run -1 --separate-stderr "$CTL" bench $kind --runs 1 --kernels "$kernel" --format csv
		holds "$kernel,"
	done
}

# --- xen -------------------------------------------------------------------------------------------------------------

@test "xen: text has a block a cache and prior" {
	bench xen --runs 2 --kernels libc
	output=$(cat "$BATS_TEST_TMPDIR/out")
	holds "L1D, cached (warm): clear "
	holds "L1D, flushed (cold): clear "
	holds "L2, cached (warm): clear "
	holds "L2, flushed (cold): clear "
	[ "$(grep -c '^  kernel  *clear  *pre  *post  *displaced' <<<"$output")" = 4 ]
	[ "$(grep -c '^  libc ' <<<"$output")" = 4 ]
}

@test "xen: csv and json, the victim twice the target" {
	bench xen --runs 2 --kernels libc --format csv
	read -r names rows < <(parse_csv "$BATS_TEST_TMPDIR/out")
	[[ $names == victim,victim_bytes,target_bytes,prior,kernel,clear_ns,* ]]
	[ "$rows" = 4 ]
	bench xen --runs 2 --kernels libc --json --prior flushed
	jq -e '.bench == "xen" and (.cells | length) == 2
		and all(.cells[]; .victim_bytes == 2 * .target_bytes and .samples > 0 and .prior == "flushed")' \
		"$BATS_TEST_TMPDIR/out"
	bench xen --runs 1 --kernels libc --sizes 10K --json
	jq -e '.cells[0] | .victim == "10 KiB" and .target_bytes == 10240 and .victim_bytes == 20480' "$BATS_TEST_TMPDIR/out"
}

# --- hugepage --------------------------------------------------------------------------------------------------------

@test "hugepage: text has both kinds of pages, and says where the deviation comes from" {
	bench hugepage --runs 2 --kernels libc
	output=$(cat "$BATS_TEST_TMPDIR/out")
	holds "a huge page of 2 MiB"
	holds "2 MiB of base pages (control)"
	holds "Where the deviation comes from"
	holds "of the variance "
	holds "backward against forward: "
	[ "$(grep -c '^  libc ' <<<"$output")" = 10 ]
}

@test "hugepage: csv and json, shares that add up to 1" {
	bench hugepage --runs 2 --kernels libc --format csv
	read -r names rows < <(parse_csv "$BATS_TEST_TMPDIR/out")
	[[ $names == page,prior,kernel,chunk_bytes,direction,mappings,samples,tainted,mean_us,median_us,stdev_us,* ]]
	[ "$rows" = 10 ]
	bench hugepage --runs 2 --kernels libc --json
	jq -e '.bench == "hugepage" and (.cells | length) == 10 and .raced == false
		and ([.cells[].chunk_bytes] | unique) == [4096, 65536, 2097152]
		and all(.cells[]; .samples == 50)
		and all(.cells[]; .shares | [.warm_up, .clock, .placement, .rest | select(. != null)] | add | . > 0.999 and . < 1.001)
		and (.summaries | length) == 2' "$BATS_TEST_TMPDIR/out"
}

@test "hugepage: without a list, libc and the best of each family" {
	bench hugepage --runs 1 --json
	jq -e '.raced and ([.cells[].kernel] | unique | length) >= 1 and any(.cells[]; .kernel == "libc")' "$BATS_TEST_TMPDIR/out"
}

# --- all -------------------------------------------------------------------------------------------------------------

@test "a locale with a decimal comma changes neither csv nor json" {
	locale=$(locale -a | grep -iE '^(de|fr|es|it|nl|pl|sv|cs)_.*\.utf-?8$' | head -n 1)
	if [ -z "$locale" ]; then
		command -v localedef >/dev/null || skip "no locale with a decimal comma"
		localedef -i de_DE -f UTF-8 "$BATS_TEST_TMPDIR/de_DE.UTF-8" 2>/dev/null || skip "no locale with a decimal comma can be made"
		export LOCPATH=$BATS_TEST_TMPDIR
		locale=de_DE.UTF-8
	fi
	[ "$(LC_ALL=$locale printf '%.1f' 1,5)" = 1,5 ]
	LC_ALL=$locale bench --sizes 4K --runs 2 --kernels libc --format csv
	parse_csv "$BATS_TEST_TMPDIR/out"
	LC_ALL=$locale bench --sizes 4K --runs 2 --kernels libc --json
	jq -e '.cells | length == 2' "$BATS_TEST_TMPDIR/out"
}

@test "a signal ends it in its own name, with what was measured so far" {
	"$CTL" bench --sizes 4K,64K --runs 1000 --kernels libc --json >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
	# Until the third of the runs has begun.
	for _ in $(seq 300); do
		grep -q 'run 3 of' "$BATS_TEST_TMPDIR/err" && break
		sleep 0.1
	done
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	[ "$status" = 143 ]
	jq -e '.stopped and .runs >= 3 and .runs < 1000 and (.cells | length) == 4' "$BATS_TEST_TMPDIR/out"
}

@test "csv: what has no room in it is said on standard error" {
	local err=$BATS_TEST_TMPDIR/err out=$BATS_TEST_TMPDIR/out kind
	for kind in "table --sizes 4K" "xen --sizes 4K" hugepage; do
		: >"$err"
		# Kinds with their options are split on purpose.
		# shellcheck disable=SC2086
		"$CTL" bench $kind --runs 1000 --kernels libc --format csv >"$out" 2>"$err" 3>&- &
		pid=$!
		until_said "$err" 'run 2 of'
		kill -TERM "$pid"
		wait "$pid" || true
		grep -qx 'calibctl bench: stopped early: fewer runs than asked for' "$err"
		parse_csv "$out"
	done
	# 41: PR_SET_THP_DISABLE.
	python3 - "$CTL" bench hugepage --runs 1 --kernels libc --format csv >"$out" 2>"$err" <<-'END'
		import ctypes, os, sys
		assert ctypes.CDLL(None).prctl(41, 1, 0, 0, 0) == 0
		os.execv(sys.argv[1], sys.argv[1:])
	END
	grep -qE '^calibctl bench: (the OS gave no huge pages, or not all|this OS does not tell whether)' "$err"
	parse_csv "$out"
}

@test "csv: sizes that are left out for want of memory are said on standard error" {
	need_namespace
	# 1 MiB, and what the meter takes besides.
	scarce $((4 * 11 * 1024)) "$CTL" bench --runs 1 --kernels libc --prior cached --format csv >"$BATS_TEST_TMPDIR/out" \
		2>"$BATS_TEST_TMPDIR/err"
	grep -qx 'calibctl bench: larger sizes are left out: too little memory is available' "$BATS_TEST_TMPDIR/err"
	read -r _ rows < <(parse_csv "$BATS_TEST_TMPDIR/out")
	[ "$rows" = 5 ]
}

@test "SIGINT ends it as well" {
	# Shells start what runs in the background with SIGINT ignored.
	run python3 - "$CTL" <<-'END'
		import signal, subprocess, sys
		p = subprocess.Popen([sys.argv[1], "bench", "--sizes", "4K", "--runs", "1000", "--kernels", "libc"],
		                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
		                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
		while "run 2 of" not in p.stderr.readline():
		    pass
		p.send_signal(signal.SIGINT)
		out, err = p.communicate(timeout=60)
		assert p.returncode == -signal.SIGINT, p.returncode
		assert "stopped early" in out, out
	END
	echo "$output"
	[ "$status" = 0 ]
}

@test "a signal that was ignored at the start stays ignored" {
	run python3 - "$CTL" <<-'END'
		import signal, subprocess, sys
		p = subprocess.Popen([sys.argv[1], "bench", "--sizes", "4K", "--runs", "1000", "--kernels", "libc"],
		                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
		                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
		while "run 2 of" not in p.stderr.readline():
		    pass
		p.send_signal(signal.SIGINT)
		while "run 4 of" not in p.stderr.readline():
		    pass
		p.send_signal(signal.SIGTERM)
		out, err = p.communicate(timeout=60)
		assert p.returncode == -signal.SIGTERM, p.returncode
		assert "stopped early" in out, out
	END
	echo "$output"
	[ "$status" = 0 ]
}

@test "what cannot be written is said, and is no failure to measure" {
	for format in text csv json; do
		run -3 bash -c '"$1" bench --sizes 4K,64K --runs 1 --format "$2" 2>&1 >/dev/full' bench "$CTL" "$format"
		holds "calibctl: standard output: No space left on device"
		[[ $output != *"cannot measure"* ]]
	done
}

# --- perf ------------------------------------------------------------------------------------------------------------

# Says what perf 6.1 says, twice as fast as anything is, and keeps how it was called.
fake_perf() {
	printf '%s\n' '#!/bin/sh' 'echo "$*" >>"$0.calls"' \
		"echo \"# function 'default' (Default memset() provided by glibc)\"" "echo $1" >"$BATS_TEST_TMPDIR/fake"
	chmod +x "$BATS_TEST_TMPDIR/fake"
}

@test "the comparison with perf: medians, ratios, and what makes the difference" {
	[ -x "$B/bench-perf" ] || skip "make benches has not been run"
	fake_perf 999000000000.5
	run -0 --separate-stderr env PERF="$BATS_TEST_TMPDIR/fake" PERF_RUNS=2 PERF_SIZES='4096 1048576' tests/bench/run perf
	holds "medians of 2 interleaved runs"
	[ "$(grep -cE '^(4 KiB|1 MiB) +999\.00 ' <<<"$output")" = 2 ]
	[ "$(grep -cE 'KiB: (the meter says 0\.|each of the meter.s samples was disturbed)' <<<"$output")" = 1 ]
	[ "$(wc -l <"$BATS_TEST_TMPDIR/fake.calls")" = 4 ]
	grep -qx 'bench -f simple mem memset -f default -s 4096B -l 131072' "$BATS_TEST_TMPDIR/fake.calls"
	grep -qx 'bench -f simple mem memset -f default -s 1048576B -l 512' "$BATS_TEST_TMPDIR/fake.calls"
}

@test "the comparison with perf: nothing to explain where both agree, and the value where that is it" {
	table=$BATS_TEST_TMPDIR/table
	for run in 0 1 2; do
		echo "4096 $run 50 5$run 51 52 52 51 51"
		echo "67108864 $run 20 21 21 40 40 41 41"
	done >"$table"
	run -0 awk -f tests/bench/perf.awk "$table"
	[[ $output =~ 4\ KiB\ +50.00\ +51.00\ +1.02 ]]
	holds "medians of 3 interleaved runs"
	[[ $output != *"4 KiB: "* ]]
	[[ $output != *busy* ]]
	holds "64 MiB: the meter says 2.05x of perf; most of that (1.90x) is the value: "
	# Time that others took is told apart.
	echo "4096 0 20 20 50 50 50 50 50" >"$table"
	run -0 awk -f tests/bench/perf.awk "$table"
	holds "this host was busy"
	holds "4 KiB: the meter says 2.50x of perf; most of that (2.50x) is time that other processes took"
	run -1 awk -f tests/bench/perf.awk /dev/null
}

@test "the comparison with perf: where the meter saw nothing undisturbed" {
	printf '%s\n' "4096 0 50 51 51 52 52 51 -" "4096 1 50 51 51 52 52 51 51" "65536 0 50 51 51 52 52 51 -" >"$BATS_TEST_TMPDIR/table"
	run -0 awk -f tests/bench/perf.awk "$BATS_TEST_TMPDIR/table"
	[[ $output =~ 4\ KiB\ .*\ 51.00\ +1.02 ]]
	[[ $output =~ 64\ KiB\ .*\ 51.00\ +-\ +- ]]
	holds "64 KiB: each of the meter's samples was disturbed, and dropped"
}

@test "bench's report: unknown parts are refused before anything is measured, and failures are shown" {
	mkdir "$BATS_TEST_TMPDIR/bin"
	printf '%s\n' '#!/bin/sh' 'echo "calibrd: error: no such luck" >&2' 'exit 3' >"$BATS_TEST_TMPDIR/bin/calibrd"
	chmod +x "$BATS_TEST_TMPDIR/bin/calibrd"
	for part in ls '' 'probe shapes'; do
		B=$BATS_TEST_TMPDIR/bin run -2 tests/bench/run calibration "$part"
		[[ $output == "tests/bench/run: no part is called '$part'; there are calibration restart regret builtin verify cost probe forms shapes table xen hugepage perf; and only when named agree row efforts "* ]]
	done
	for part in calibration restart regret builtin verify cost agree row efforts; do
		B=$BATS_TEST_TMPDIR/bin run -3 tests/bench/run "$part"
		holds "calibrd: error: no such luck"
	done
}

@test "a perf that is not there, or fails, is said" {
	run -0 --separate-stderr env PERF=/nonexistent/perf tests/bench/run perf
	output=$stderr
	holds "NOTHING WAS COMPARED WITH PERF"
	run -1 --separate-stderr env PERF=false tests/bench/run perf
	output=$stderr
	holds "false bench mem memset of 4096 bytes failed"
}
