#!/usr/bin/env bats
# The daemon and its measuring child: kernels that fault, a child that is killed, stopped or verifies in vain. The daemon
# stays, says why, and the policy stands. No test looks at a time.

# bats sets output and stderr; calibrd_common sets the rest.
# shellcheck disable=SC2030,SC2031,SC2153,SC2154

load calibrd_common

setup_file() {
	make_folder
}

teardown_file() {
	end_all
	rm -rf "$W"
}

# A daemon with a program of its own, which waits for nobody: daemon PROGRAM [LINE OF CONFIGURATION ...]
daemon() {
	local program=$1
	shift
	LOG=$BATS_TEST_TMPDIR/log
	printf 'effort: quick\ndatabase: %s\npolicy: %s\nquiet: {wait_seconds: 0}\n' "$D" "$P" >"$N/c.yaml"
	[ $# -eq 0 ] || printf '%s\n' "$@" >>"$N/c.yaml"
	launch "$LOG" "$program" --config "$N/c.yaml"
}

worker_of() {
	WORKER=$(child_of "$1")
	[ -n "$WORKER" ] && [ "$(cat "/proc/$WORKER/comm" 2>/dev/null)" = calibrd-worker ]
}

# It answers, and it ends as it should.
lives_on() {
	kill -0 "$PID"
	kill -HUP "$PID"
	until_said "$LOG" "configuration read again"
	kill -TERM "$PID"
	reap
	[ "$STATUS" -eq 0 ]
	is_sound "$D"
}

@test "kernels that fault, hang or clear wrongly: the daemon leaves them out, publishes, and stays" {
	[ -x "$W/calibrd-faulty" ] || skip "calibrd-faulty was not built"
	new_folder
	daemon "$W/calibrd-faulty"
	until_said "$LOG" "published generation 1\|too slow or too busy"
	output=$(cat "$LOG")
	skip_if_too_busy
	holds "left out, since their trial failed on this host: t_sigill t_segv t_wrong t_canary t_hang"
	[ "$(ask "$D" "SELECT faulted FROM calibration")" = "t_sigill t_segv t_wrong t_canary t_hang" ]
	without t_ "$P"
	without "error:" "$LOG"
	lives_on
}

@test "a child that is killed: said with its signal, nothing is published, the daemon stays" {
	new_folder
	daemon "$CALIBRD"
	until_true worker_of "$PID"
	until_true grep -qx 1000 "/proc/$WORKER/oom_score_adj" # the first to go where memory runs short
	kill -KILL "$WORKER"
	until_said "$LOG" "error: the measuring process was killed by signal 9 (Killed)"
	until_true is_gone "$WORKER"
	[ "$(ask "$D" "SELECT state FROM calibration ORDER BY id DESC LIMIT 1")" = failed ]
	[ ! -e "$P" ]
	lives_on
}

@test "a child that is stopped ends with its daemon all the same, asked or not" {
	for signal in TERM KILL; do
		new_folder
		daemon "$CALIBRD"
		until_true worker_of "$PID"
		kill -STOP "$WORKER"
		kill "-$signal" "$PID"
		reap
		until_true is_gone "$WORKER"
	done
}

@test "a trial that hangs ends with its worker" {
	[ -x "$W/calibrd-faulty" ] || skip "calibrd-faulty was not built"
	trial_of() { # the last kernel's: t_hang burns its time for five seconds
		worker_of "$PID" && TRIAL=$(child_of "$WORKER") && [ -n "$TRIAL" ] && [ "$TRIAL" = "${SEEN:-}" ] || {
			SEEN=${TRIAL:-}
			return 1
		}
	}
	new_folder
	daemon "$W/calibrd-faulty"
	until_true trial_of
	kill -KILL "$WORKER"
	until_true is_gone "$TRIAL"
	lives_on
}

@test "a duty cycle: the child rests, and what comes of it is published" {
	new_folder
	daemon "$CALIBRD" 'duty: {most_percent: 60}'
	until_said "$LOG" "published generation 1\|too slow or too busy"
	output=$(cat "$LOG")
	skip_if_too_busy
	lives_on
}
