#!/usr/bin/env bats
# Calibrations that are disturbed on purpose, each beside a good policy: a busy neighbour, one that streams through
# memory, a CPU quota, processes that are stopped for a while. Each must end in `noisy`, or with the policy that was
# there, or with one whose choices cost no more; never in a wrong one. Measures seven times, of quick effort.

# bats sets output; calibrd_common sets the rest; the commands of `launch` have arguments of their own.
# shellcheck disable=SC2016,SC2030,SC2031,SC2153,SC2154

load ../cli/calibrd_common

# The good policy. Where others keep this machine busy even it is noisy: then it is called good, and what follows is
# compared with it all the same.
setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || return
	make_folder
	cp "$B/tool-memory_hog" "$W/"
	D=$W/known/calibrd.db P=$W/known/policy.yaml measure_known "$W/known.log" once
	figure "undisturbed: $(grep -o 'quality: .*' "$W/known.log")"
	call_it_good "$W/known/calibrd.db"
	D=$W/known/calibrd.db P=$W/known/policy.yaml once 2>>"$W/known.log"
	grep -qx 'quality: good' "$W/known/policy.yaml"
}

teardown() {
	end_all
	[ -z "${GROUP:-}" ] || until_true rmdir "$GROUP"
}

teardown_file() {
	rm -rf "$W"
}

figure() {
	echo "# $*" >&3
}

is_running() {
	! is_gone "$1"
}

newest() {
	ask "$D" "SELECT $1 FROM calibration ORDER BY id DESC LIMIT 1"
}

# Measuring beside the good policy: CALIBRATION, its process, and WORKER. With arguments: started by these.
measuring() {
	LOG=$BATS_TEST_TMPDIR/log
	copy_known
	launch "$LOG" "$@" "$CALIBRD" --once --force --effort quick --database "$D" --policy "$P"
	until_said "$LOG" "measuring: [0-9]* %"
	CALIBRATION=$PID
	WORKER=$(child_of "$CALIBRATION")
	[ -n "$WORKER" ]
}

# A CPU that the worker is not on, in OTHER.
need_other_cpu() {
	local mine
	mine=$(cut -d ' ' -f 39 "/proc/$WORKER/stat")
	OTHER=$(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
		awk -F- -v mine="$mine" '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) if (i != mine) { print i; exit } }')
	[ -n "$OTHER" ] || skip "one CPU: there is no other core"
}

# Waits for the calibration's end and says what it came to. What other choices cost is judged on the undisturbed
# measurements: wrong are those that each of their passes finds more than 5 % dearer, over more than half an octave, by
# which any crossover may move.
unharmed() {
	PID=$CALIBRATION
	reap
	figure "$1: $(newest "coalesce(quality, state) || ' (' || coalesce(reasons, '') || ')'")"
	if [ "$STATUS" -ne 0 ] || [ "$(newest quality)" = noisy ]; then
		cmp "$P" "$W/known/policy.yaml"
		[ "$STATUS" -ne 0 ] || grep -q "the new measurements are noisy .*: the good policy of before stays" "$LOG"
		return
	fi
	[ "$(newest quality)" = good ]
	run --separate-stderr "$CTL" --database "$W/known/calibrd.db" diff "$W/known/policy.yaml" "$P" --json
	[ "$status" -le 1 ]
	figure "$1: other choices in $(jq -c '[.tables[] | [.intent, .prior, .threads, .cost.verdict, .cost.share, .cost.octaves]]' <<<"$output")"
	jq -e '[.tables[].cost | select(.verdict == "more" and .least > 0.05 and .octaves > 0.5)] == []' <<<"$output"
}

# --- neighbours ------------------------------------------------------------------------------------------------------

# With two CPUs the neighbour is all others; of many it is one that nobody minds.
noisy_of_two() {
	[ "$(nproc)" -gt 2 ] || {
		[ "$(newest quality)" = noisy ]
		[[ $(newest reasons) == *"other processes kept the other"* ]]
	}
}

@test "a spinner on another core" {
	measuring
	need_other_cpu
	launch "$BATS_TEST_TMPDIR/spinner" taskset -c "$OTHER" bash -c 'while :; do :; done' "$W"
	local spinner=$PID
	unharmed "a spinner"
	is_running "$spinner"
	noisy_of_two
}

@test "a hog that streams through memory on another core" {
	measuring
	need_other_cpu
	launch "$BATS_TEST_TMPDIR/hog" taskset -c "$OTHER" "$W/tool-memory_hog" 512
	local hog=$PID
	unharmed "a memory hog"
	is_running "$hog"
	noisy_of_two
}

# --- a quota ---------------------------------------------------------------------------------------------------------

# Half a CPU, in a GROUP of its own: version 2 of control groups, or 1 where that has the controller.
half_a_cpu() {
	local name=pageclear-$$
	if mkdir "/sys/fs/cgroup/cpu/$name" 2>/dev/null; then
		GROUP=/sys/fs/cgroup/cpu/$name
		echo 100000 >"$GROUP/cpu.cfs_period_us"
		echo 50000 >"$GROUP/cpu.cfs_quota_us"
	elif mkdir "/sys/fs/cgroup/$name" 2>/dev/null; then
		GROUP=/sys/fs/cgroup/$name
		[ -e "$GROUP/cpu.max" ] || echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
		echo "50000 100000" >"$GROUP/cpu.max"
	else
		return 1
	fi
}

@test "half a CPU: a quota is seen, said, and makes it noisy" {
	half_a_cpu 2>/dev/null || skip "no control group with a CPU quota to be had (not root, or a container without)"
	measuring bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' quota "$GROUP"
	unharmed "half a CPU"
	newest surroundings | grep -x "quota_cpus=0.5"
	# On a busy machine half a CPU may be more than its share, and the quota never be felt.
	if newest surroundings | awk -F= '$1 == "throttled" && $2 > 0.01 { felt = 1 } END { exit !felt }'; then
		[ "$STATUS" -ne 0 ] || [[ $(newest reasons) == *"a CPU quota of 0.5 CPUs stopped this group"* ]]
		cmp "$P" "$W/known/policy.yaml"
	else
		figure "the quota was not felt: this machine is too busy"
	fi
}

# --- stopped in the middle -------------------------------------------------------------------------------------------

stopped_for_a_while() {
	until_said "$LOG" "measuring: [3-9][0-9] %"
	kill -STOP "$1"
	sleep 3
	kill -CONT "$1"
}

@test "the worker is stopped for three seconds" {
	measuring
	stopped_for_a_while "$WORKER"
	unharmed "a stopped worker"
}

# Its pipe fills, and the worker waits for it.
@test "the parent is stopped for three seconds" {
	measuring
	stopped_for_a_while "$CALIBRATION"
	unharmed "a stopped parent"
}
